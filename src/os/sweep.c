/* SPDX-License-Identifier: MIT */
/* All processes that descend from this one: see sweep.h. */
#include "os/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

int sweep_add(struct sweep *s, struct descendant d) {
    if (s->count == s->cap) {
        uint32_t cap = s->cap == 0 ? 64 : 2 * s->cap;
        struct descendant *at = realloc(s->at, cap * sizeof *at);
        if (at == NULL)
            return -ENOMEM;
        s->at = at;
        s->cap = cap;
    }
    s->at[s->count++] = d;
    if (s->found != NULL)
        s->found(s->context, d);
    return 0;
}

static int add(struct sweep *s, pid_t pid, pid_t top) {
    return sweep_add(s, (struct descendant){.pid = pid, .top = top});
}

void sweep_fini(struct sweep *s) {
    free(s->at);
    *s = (struct sweep){0};
}

bool sweep_has(const struct sweep *s, pid_t pid) {
    for (uint32_t i = 0; i < s->count; i++)
        if (s->at[i].pid == pid)
            return true;
    return false;
}

void sweep_drop(struct sweep *s, pid_t pid) {
    for (uint32_t i = 0; i < s->count; i++)
        if (s->at[i].pid == pid)
            s->at[i--] = s->at[--s->count];
}

/* ---- where the kernel lists a task's children ---- */

/* `top` 0: they are our own. */
static int add_listed(struct sweep *s, const char *path, pid_t top) {
    FILE *f = fopen(path, "re");
    int pid, r = 0;
    if (f == NULL)
        return -errno;
    while (r == 0 && fscanf(f, "%d", &pid) == 1)
        r = add(s, pid, top == 0 ? pid : top);
    fclose(f);
    return r;
}

/* Each thread has children of its own. A process that is gone meanwhile has none. */
static int add_children_of(struct sweep *s, struct descendant parent) {
    char path[64];
    int r = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)parent.pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir != NULL && r != -ENOMEM && (e = readdir(dir)) != NULL;) {
        if (!text_is_digit(e->d_name[0]))
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", (int)parent.pid, e->d_name);
        r = add_listed(s, path, parent.top);
    }
    if (dir != NULL)
        closedir(dir);
    return r == -ENOMEM ? r : 0;
}

/* ---- where it does not: every process there is ---- */

struct kin {
    pid_t pid, parent;
};

/* False if there is no such process. */
static bool read_stat(const char *pid, char *ret_state, int *ret_parent) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *f = fopen(path, "re");
    /* The name in brackets may hold anything; the last bracket ends it. */
    char *end = f != NULL && fgets(line, sizeof line, f) != NULL ? strrchr(line, ')') : NULL;
    bool good = end != NULL && sscanf(end + 1, " %c %d", ret_state, ret_parent) == 2;
    if (f != NULL)
        fclose(f);
    return good;
}

static pid_t parent_of(const char *pid) {
    char state;
    int parent;
    return read_stat(pid, &state, &parent) ? parent : 0;
}

bool sweep_stopped(pid_t pid) {
    char text[16], state;
    int parent;
    snprintf(text, sizeof text, "%d", (int)pid);
    return read_stat(text, &state, &parent) && (state == 'T' || state == 't');
}

static int read_everyone(struct kin **ret_kin, uint32_t *ret_count) {
    struct kin *kin = NULL;
    uint32_t count = 0, cap = 0;
    DIR *dir = opendir("/proc");
    if (dir == NULL)
        return -errno;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (!text_is_digit(e->d_name[0]))
            continue;
        if (count == cap) {
            cap = cap == 0 ? 1024 : 2 * cap;
            struct kin *more = realloc(kin, cap * sizeof *kin);
            if (more == NULL)
                break;
            kin = more;
        }
        kin[count++] = (struct kin){.pid = atoi(e->d_name), .parent = parent_of(e->d_name)};
    }
    closedir(dir);
    *ret_kin = kin;
    *ret_count = count;
    return 0;
}

/* Generation by generation. */
static int add_kin(struct sweep *s, bool all) {
    struct kin *kin = NULL;
    uint32_t count = 0;
    pid_t self = getpid();
    int r = read_everyone(&kin, &count);
    if (r < 0)
        return r;
    for (uint32_t i = 0; r == 0 && i < count; i++)
        if (kin[i].parent == self)
            r = add(s, kin[i].pid, kin[i].pid);
    for (uint32_t i = 0; all && r == 0 && i < s->count; i++)
        for (uint32_t j = 0; r == 0 && j < count; j++)
            if (kin[j].parent == s->at[i].pid)
                r = add(s, kin[j].pid, s->at[i].top);
    free(kin);
    return r;
}

/* ---- either way ---- */

static int look(struct sweep *s, bool all) {
    s->count = 0;
    int r = add_listed(s, "/proc/thread-self/children", 0);
    if (r == -ENOENT)
        return add_kin(s, all);
    for (uint32_t i = 0; all && r == 0 && i < s->count; i++)
        r = add_children_of(s, s->at[i]);
    return r;
}

int sweep_children(struct sweep *s) {
    return look(s, false);
}

int sweep_all(struct sweep *s, void (*found)(void *, struct descendant), void *context) {
    s->found = found;
    s->context = context;
    int r = look(s, true);
    s->found = NULL;
    return r;
}

bool sweep_variable(pid_t pid, const char *name, uint64_t *ret_value) {
    char path[64], *word = NULL;
    size_t cap = 0, len = strlen(name);
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *f = fopen(path, "re");
    while (f != NULL && !found && getdelim(&word, &cap, '\0', f) > 0)
        found = strncmp(word, name, len) == 0 && word[len] == '=' &&
                text_scan_u64(word + len + 1, ret_value) > 0;
    free(word);
    if (f != NULL)
        fclose(f);
    return found;
}

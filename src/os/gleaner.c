/* SPDX-License-Identifier: MIT */
/* Files of a host that go up a tree: see gleaner.h. */
#include "os/gleaner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct find {
    char *path;
    size_t name; /* where in the path the name begins that it has at home */
    uint32_t number;
    int error; /* it is not a file: why nothing can be had */
};

struct gleaner {
    struct find *finds;
    uint32_t count, cap, next;
    int fd; /* of the one before `next`; -1: none is open */
    bool failed;
};

/* ---- What there is ----------------------------------------------------------------------------- */

static void add(struct gleaner *g, struct find f) {
    if (g->count == g->cap) {
        uint32_t cap = g->cap == 0 ? 16 : 2 * g->cap;
        struct find *finds = realloc(g->finds, cap * sizeof *finds);
        if (finds == NULL) {
            g->failed = true;
            free(f.path);
            return;
        }
        g->finds = finds;
        g->cap = cap;
    }
    g->finds[g->count++] = f;
}

static void look(struct gleaner *g, const char *path, size_t name, uint32_t number);

static void look_inside(struct gleaner *g, const char *folder, size_t name, uint32_t number) {
    DIR *d = opendir(folder);
    struct dirent *e;
    if (d == NULL) {
        add(g,
            (struct find){.path = strdup(folder), .name = name, .number = number, .error = errno});
        return;
    }
    while ((e = readdir(d)) != NULL) {
        char *path = NULL;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (asprintf(&path, "%s/%s", folder, e->d_name) < 0) {
            g->failed = true;
            break;
        }
        look(g, path, name, number);
        free(path);
    }
    closedir(d);
}

static void look(struct gleaner *g, const char *path, size_t name, uint32_t number) {
    struct stat st;
    int error = lstat(path, &st) < 0 ? errno : 0;
    if (error == 0 && S_ISDIR(st.st_mode))
        look_inside(g, path, name, number);
    else if (error != 0 || S_ISREG(st.st_mode))
        add(g, (struct find){.path = strdup(path), .name = name, .number = number, .error = error});
}

/* A link that the user names himself is followed. */
static void look_named(struct gleaner *g, char *path, uint32_t number) {
    struct stat st;
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        path[--len] = '\0';
    const char *slash = strrchr(path, '/');
    size_t name = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    bool there = stat(path, &st) == 0;
    if (there && S_ISREG(st.st_mode))
        add(g, (struct find){.path = strdup(path), .name = name, .number = number});
    else if (there && S_ISDIR(st.st_mode))
        look_inside(g, path, name, number);
    else
        look(g, path, name, number);
}

static void look_for(struct gleaner *g, struct bytes pattern, uint32_t number) {
    char *text = strndup((const char *)pattern.at, pattern.len);
    glob_t found = {0};
    if (text == NULL || glob(text, GLOB_NOCHECK, NULL, &found) != 0)
        g->failed = true;
    for (size_t i = 0; i < found.gl_pathc; i++)
        look_named(g, found.gl_pathv[i], number);
    globfree(&found);
    free(text);
}

struct gleaner *gleaner_new(const struct task *t) {
    struct gleaner *g = calloc(1, sizeof *g);
    if (g == NULL)
        return NULL;
    g->fd = -1;
    for (uint32_t i = 0; i < t->get_count; i++)
        look_for(g, t->get[i], i);
    return g;
}

void gleaner_free(struct gleaner *g) {
    if (g == NULL)
        return;
    if (g->fd >= 0)
        close(g->fd);
    for (uint32_t i = 0; i < g->count; i++)
        free(g->finds[i].path);
    free(g->finds);
    free(g);
}

/* ---- On its way -------------------------------------------------------------------------------- */

static bool tell_failure(const struct find *f, int error, struct room room, struct frame *ret) {
    int n = snprintf((char *)room.at, room.len, "%.3000s: %s", f->path != NULL ? f->path : "",
                     strerror(error));
    *ret = (struct frame){.kind = FRAME_FETCHED,
                          .flag = FETCHED_FAILED,
                          .number = f->number,
                          .body = bytes_of(room.at, (size_t)n)};
    return true;
}

static bool begin(struct gleaner *g, const struct find *f, struct room room, struct frame *ret) {
    struct stat st;
    const char *name = f->path != NULL ? f->path + f->name : "";
    size_t len = strlen(name);
    if (f->path == NULL || f->error != 0)
        return tell_failure(f, f->path == NULL ? ENOMEM : f->error, room, ret);
    g->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (g->fd < 0 || fstat(g->fd, &st) < 0)
        return tell_failure(f, errno, room, ret);
    if (len + 2 > room.len)
        return tell_failure(f, ENAMETOOLONG, room, ret);
    store_le16(room.at, (uint16_t)(st.st_mode & 0777));
    memcpy(room.at + 2, name, len);
    *ret = (struct frame){.kind = FRAME_FETCHED,
                          .flag = FETCHED_FILE,
                          .number = f->number,
                          .body = bytes_of(room.at, len + 2)};
    return true;
}

static bool go_on(struct gleaner *g, const struct find *f, struct room room, struct frame *ret) {
    ssize_t n;
    do
        n = read(g->fd, room.at, room.len);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        *ret = (struct frame){.kind = FRAME_FETCHED,
                              .flag = FETCHED_BYTES,
                              .number = f->number,
                              .body = bytes_of(room.at, (size_t)n)};
        return true;
    }
    int error = n < 0 ? errno : 0;
    close(g->fd);
    g->fd = -1;
    if (error != 0)
        return tell_failure(f, error, room, ret);
    *ret = (struct frame){.kind = FRAME_FETCHED, .flag = FETCHED_DONE, .number = f->number};
    return true;
}

bool gleaner_next(struct gleaner *g, struct room room, struct frame *ret) {
    if (g->failed) {
        g->failed = false;
        return tell_failure(&(struct find){.path = NULL}, ENOMEM, room, ret);
    }
    if (g->fd >= 0)
        return go_on(g, &g->finds[g->next - 1], room, ret);
    if (g->next == g->count)
        return false;
    return begin(g, &g->finds[g->next++], room, ret);
}

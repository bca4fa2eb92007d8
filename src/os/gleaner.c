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

enum { LOOKS_MAX = 64 }; /* at a time; each may take a while on a slow disk */

struct find {
    char *path;
    size_t name; /* where in the path the name begins that it has at home */
    uint32_t number;
    int error; /* it is not a file: why nothing can be had */
};

/* A folder that is being looked through. */
struct visit {
    DIR *dir;
    struct find at; /* itself */
};

struct gleaner {
    const struct task *task;
    uint32_t pattern; /* that is looked for next */
    size_t name_part; /* of the one before: its part that names begin with */
    glob_t found;     /* what it has matched */
    size_t match;     /* that is looked at next */
    struct visit *visits;
    uint32_t depth, cap;
    struct find now;
    int fd; /* of it; -1: it is not open */
    bool failed;
};

/* ---- What there is ----------------------------------------------------------------------------- */

static bool enter(struct gleaner *g, const struct find *f) {
    if (g->depth == g->cap) {
        uint32_t cap = g->cap == 0 ? 16 : 2 * g->cap;
        struct visit *visits = realloc(g->visits, cap * sizeof *visits);
        if (visits == NULL)
            return false;
        g->visits = visits;
        g->cap = cap;
    }
    DIR *dir = opendir(f->path);
    if (dir != NULL)
        g->visits[g->depth++] = (struct visit){.dir = dir, .at = *f};
    return dir != NULL;
}

static void leave(struct gleaner *g) {
    struct visit *v = &g->visits[--g->depth];
    closedir(v->dir);
    free(v->at.path);
}

/* Takes its path. True: it is what comes next. */
static bool look_at(struct gleaner *g, struct find f, bool follow) {
    struct stat st;
    if (f.path == NULL) {
        g->failed = true;
        return false;
    }
    bool there = (follow && stat(f.path, &st) == 0) || lstat(f.path, &st) == 0;
    f.error = there ? 0 : errno;
    if (there && S_ISDIR(st.st_mode)) {
        if (enter(g, &f))
            return false;
        f.error = errno;
    } else if (there && !S_ISREG(st.st_mode)) {
        free(f.path);
        return false;
    }
    g->now = f;
    return true;
}

static bool look_inside(struct gleaner *g) {
    struct visit *v = &g->visits[g->depth - 1];
    const struct dirent *e = readdir(v->dir);
    struct find f = v->at;
    if (e == NULL) {
        leave(g);
        return false;
    }
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
        return false;
    if (asprintf(&f.path, "%s/%s", v->at.path, e->d_name) < 0)
        f.path = NULL;
    return look_at(g, f, false);
}

/* A link that the user names himself is followed. */
static bool look_at_match(struct gleaner *g) {
    struct find f = {.path = strdup(g->found.gl_pathv[g->match++]), .number = g->pattern - 1};
    size_t len = f.path != NULL ? strlen(f.path) : 0;
    while (len > 1 && f.path[len - 1] == '/')
        f.path[--len] = '\0';
    size_t part = 0;
    for (size_t i = 0; i < len && part < g->name_part; i++)
        if (f.path[i] == '/') {
            f.name = i + 1;
            part++;
        }
    return look_at(g, f, true);
}

/* The first part of a pattern that matches several, or the last: slashes before it. */
static size_t part_of_names(const char *pattern) {
    size_t slashes = 0, len = strlen(pattern);
    while (len > 1 && pattern[len - 1] == '/')
        len--;
    size_t several = strcspn(pattern, "*?[");
    const char *next = several < len ? memchr(pattern + several, '/', len - several) : NULL;
    for (size_t i = 0; i < (next != NULL ? several : len); i++)
        slashes += pattern[i] == '/';
    return slashes;
}

static void look_for(struct gleaner *g) {
    struct bytes pattern = g->task->get[g->pattern++];
    char *text = strndup((const char *)pattern.at, pattern.len);
    globfree(&g->found);
    g->found = (glob_t){0};
    g->match = 0;
    if (text == NULL || glob(text, GLOB_NOCHECK, NULL, &g->found) != 0)
        g->failed = true;
    else
        g->name_part = part_of_names(text);
    free(text);
}

/* Until something is found, or others should have their turn. */
static enum gleaned find_next(struct gleaner *g) {
    for (int i = 0; i < LOOKS_MAX && !g->failed; i++) {
        bool found = false;
        if (g->depth > 0)
            found = look_inside(g);
        else if (g->match < g->found.gl_pathc)
            found = look_at_match(g);
        else if (g->pattern < g->task->get_count)
            look_for(g);
        else
            return GLEANED_ALL;
        if (found)
            return GLEANED_FRAME;
    }
    return GLEANED_NOT_YET;
}

struct gleaner *gleaner_new(const struct task *t) {
    struct gleaner *g = calloc(1, sizeof *g);
    if (g == NULL)
        return NULL;
    g->task = t;
    g->fd = -1;
    return g;
}

static void forget(struct gleaner *g) {
    if (g->fd >= 0)
        close(g->fd);
    g->fd = -1;
    free(g->now.path);
    g->now = (struct find){0};
}

void gleaner_free(struct gleaner *g) {
    if (g == NULL)
        return;
    forget(g);
    while (g->depth > 0)
        leave(g);
    free(g->visits);
    globfree(&g->found);
    free(g);
}

/* ---- On its way -------------------------------------------------------------------------------- */

static enum gleaned tell_failure(const struct find *f, int error, struct room room,
                                 struct frame *ret) {
    int n = snprintf((char *)room.at, room.len, "%.3000s: %s", f->path != NULL ? f->path : "",
                     strerror(error));
    *ret = (struct frame){.kind = FRAME_FETCHED,
                          .flag = FETCHED_FAILED,
                          .number = f->number,
                          .body = bytes_of(room.at, (size_t)n)};
    return GLEANED_FRAME;
}

static enum gleaned begin(struct gleaner *g, struct room room, struct frame *ret) {
    struct stat st;
    const struct find *f = &g->now;
    const char *name = f->path + f->name;
    size_t len = strlen(name);
    if (f->error != 0)
        return tell_failure(f, f->error, room, ret);
    if (len + 2 > room.len)
        return tell_failure(f, ENAMETOOLONG, room, ret);
    g->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (g->fd < 0 || fstat(g->fd, &st) < 0)
        return tell_failure(f, errno, room, ret);
    store_le16(room.at, (uint16_t)(st.st_mode & 0777));
    memcpy(room.at + 2, name, len);
    *ret = (struct frame){.kind = FRAME_FETCHED,
                          .flag = FETCHED_FILE,
                          .number = f->number,
                          .body = bytes_of(room.at, len + 2)};
    return GLEANED_FRAME;
}

static enum gleaned go_on(struct gleaner *g, struct room room, struct frame *ret) {
    ssize_t n;
    do
        n = read(g->fd, room.at, room.len);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        *ret = (struct frame){.kind = FRAME_FETCHED,
                              .flag = FETCHED_BYTES,
                              .number = g->now.number,
                              .body = bytes_of(room.at, (size_t)n)};
        return GLEANED_FRAME;
    }
    int error = n < 0 ? errno : 0;
    close(g->fd);
    g->fd = -1;
    if (error != 0)
        return tell_failure(&g->now, error, room, ret);
    *ret = (struct frame){.kind = FRAME_FETCHED, .flag = FETCHED_DONE, .number = g->now.number};
    return GLEANED_FRAME;
}

enum gleaned gleaner_next(struct gleaner *g, struct room room, struct frame *ret) {
    if (g->failed) {
        g->failed = false;
        return tell_failure(&(struct find){.path = NULL}, ENOMEM, room, ret);
    }
    if (g->fd >= 0)
        return go_on(g, room, ret);
    forget(g);
    enum gleaned found = find_next(g);
    return found == GLEANED_FRAME ? begin(g, room, ret) : found;
}

/* SPDX-License-Identifier: MIT */
/* A folder that is ours alone: see nest.h. */
#include "os/nest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int say(char why[NEST_WHY_MAX], int error, const char *path, const char *words) {
    snprintf(why, NEST_WHY_MAX, "%.180s: %s", path, words);
    return error;
}

static bool is_anothers(const struct stat *s) {
    return s->st_uid != 0 && s->st_uid != geteuid();
}

/* Others can make names in it. A group's bit is our own where users have groups of their own. */
static bool is_open(const struct stat *s) {
    bool own = s->st_uid == geteuid() && s->st_gid == getegid();
    return (s->st_mode & S_IWOTH) != 0 || ((s->st_mode & S_IWGRP) != 0 && !own);
}

static bool is_common(int folder) {
    struct stat s;
    return fstat(folder, &s) < 0 || is_anothers(&s) || is_open(&s);
}

/* The folder of that name in another; made if there is none, and that is wanted. */
static int enter(int folder, const char *name, bool make) {
    const int how = O_PATH | O_DIRECTORY | O_CLOEXEC;
    int fd = openat(folder, name, how | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT && !make)
        return -ENOENT;
    if (fd < 0 && errno == ENOENT && mkdirat(folder, name, 0700) < 0 && errno != EEXIST)
        return -errno;
    if (fd < 0)
        fd = openat(folder, name, is_common(folder) ? how | O_NOFOLLOW : how);
    return fd < 0 ? -errno : fd;
}

/* What others could do to what is in it. */
static int judge(int folder, bool last, const char *path, char why[NEST_WHY_MAX]) {
    struct stat s;
    if (fstat(folder, &s) < 0)
        return say(why, -errno, path, strerror(errno));
    if (last ? s.st_uid != geteuid() : is_anothers(&s))
        return say(why, -EPERM, path, "it is somebody else's; choose another folder");
    if (last && (s.st_mode & 077) != 0)
        return say(why, -EACCES, path, "others have access to it; chmod 700, or remove it");
    if (is_open(&s) && (s.st_mode & S_ISVTX) == 0)
        return say(why, -EACCES, path, "others can replace what is in it; choose another folder");
    return 0;
}

static const char *reason(int error) {
    return error == -ENOTDIR || error == -ELOOP ? "it is a link, or no folder" : strerror(-error);
}

static int walk(const char *path, bool make, char why[NEST_WHY_MAX]) {
    char part[PATH_MAX];
    size_t len = strlen(path), at = 0;
    int folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), r = folder < 0 ? -errno : 0;
    if (len >= sizeof part || path[0] != '/')
        r = say(why, -EINVAL, path, "it is no whole path");
    while (r == 0 && at < len) {
        char name[NAME_MAX + 1];
        size_t begin = at + strspn(path + at, "/"), n = strcspn(path + begin, "/");
        at = begin + n;
        if (n == 0)
            break;
        if (n > NAME_MAX)
            r = say(why, -ENAMETOOLONG, path, strerror(ENAMETOOLONG));
        if (r < 0)
            break;
        snprintf(name, sizeof name, "%.*s", (int)n, path + begin);
        snprintf(part, sizeof part, "%.*s", (int)at, path);
        int next = enter(folder, name, make);
        close(folder);
        folder = next;
        r = next < 0 ? say(why, next, part, reason(next))
                     : judge(next, path[at + strspn(path + at, "/")] == '\0', part, why);
    }
    if (folder >= 0)
        close(folder);
    return r;
}

int nest_make(const char *path, char why[NEST_WHY_MAX]) {
    return walk(path, true, why);
}

int nest_look(const char *path, char why[NEST_WHY_MAX]) {
    return walk(path, false, why);
}

void nest_leave(const char *path, int levels) {
    char part[PATH_MAX];
    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part)
        return;
    for (int i = 0; i < levels; i++) {
        char *slash = strrchr(part, '/');
        if (slash == NULL || slash == part || rmdir(part) < 0)
            return;
        *slash = '\0';
    }
}

/* SPDX-License-Identifier: MIT */
/* Whether the owner of this machine works there: see presence.h.
 *
 * The kernel sets the access time of a terminal when something is typed there, to within eight seconds. It does so for no other
 * device: what a desktop reads from /dev/input leaves no trace. */
#include "os/presence.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "wire/owner.h"

enum { ENTRIES_MAX = 4096 }; /* of a folder that are looked at */

static uint64_t ns_of(struct timespec t) {
    return t.tv_sec < 0 ? 0 : (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

typedef uint64_t time_of(const char *name, const struct stat *s);

/* The latest of what is in a folder. */
static uint64_t latest_in(const char *folder, time_of *of) {
    DIR *d = opendir(folder);
    const struct dirent *e;
    uint64_t latest = 0;
    if (d == NULL)
        return 0;
    for (int i = 0; i < ENTRIES_MAX && (e = readdir(d)) != NULL; i++) {
        struct stat s;
        if (e->d_name[0] != '.' && fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0)
            latest = later(latest, of(e->d_name, &s));
    }
    closedir(d);
    return latest;
}

static uint64_t read_at(const char *name, const struct stat *s) {
    (void)name;
    return ns_of(s->st_atim);
}

/* Consoles are tty1, tty2 ...; tty itself is whoever's terminal it is that looks. */
static uint64_t console_read_at(const char *name, const struct stat *s) {
    return strncmp(name, "tty", 3) == 0 && text_is_digit(name[3]) ? ns_of(s->st_atim) : 0;
}

static uint64_t used_at(const char *name, const struct stat *s) {
    (void)name;
    return later(ns_of(s->st_atim), ns_of(s->st_mtim));
}

uint64_t presence_typed(const char *dev) {
    char pts[PATH_MAX];
    snprintf(pts, sizeof pts, "%s/pts", dev);
    return later(latest_in(pts, read_at), latest_in(dev, console_read_at));
}

/* Our own looking into a folder is no access. */
uint64_t presence_used(const char *path) {
    struct stat s;
    if (stat(path, &s) < 0)
        return 0;
    if (!S_ISDIR(s.st_mode))
        return used_at(path, &s);
    return later(ns_of(s.st_mtim), latest_in(path, used_at));
}

/* The first line is about all processors: user, nice, system, idle, waiting for disks, interrupts of two kinds. */
uint64_t presence_busy(const char *stat) {
    unsigned long long user = 0, nice = 0, system = 0, hard = 0, soft = 0;
    uint64_t tick = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    if (sscanf(stat, "cpu %llu %llu %llu %*u %*u %llu %llu", &user, &nice, &system, &hard, &soft) !=
        5)
        return 0;
    return (user + nice + system + hard + soft) * tick;
}

static uint64_t read_busy(void) {
    char text[256];
    int fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
    return presence_busy(text);
}

/* One that lies ahead of us, as a clock was set, is now. */
static bool is_recent(uint64_t at, uint64_t quiet_ns) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t now = ns_of(t);
    return at > 0 && (at >= now || now - at < quiet_ns);
}

static void look_for(const struct owner_sign *s, struct input_gauged *ret) {
    char path[OWNER_TEXT_MAX];
    switch (s->kind) {
    case OWNER_KEYBOARD:
        ret->owner = ret->owner || is_recent(presence_typed("/dev"), s->quiet_ns);
        break;
    case OWNER_PATH:
        snprintf(path, sizeof path, "%.*s", (int)s->path.len, (const char *)s->path.at);
        ret->owner = ret->owner || is_recent(presence_used(path), s->quiet_ns);
        break;
    case OWNER_LOAD:
        ret->busy_ns = read_busy();
        break;
    }
}

void presence_look(struct bytes watch, struct input_gauged *ret) {
    struct owner_watch w;
    struct mistake wrong;
    ret->owner = false;
    ret->busy_ns = 0;
    if (watch.len == 0 || owner_read(watch, &w, &wrong) < 0)
        return;
    for (uint32_t i = 0; i < w.count; i++)
        look_for(&w.signs[i], ret);
}

/* SPDX-License-Identifier: MIT */
/* What a group of processes has used.
 *
 * The system tells it of each that ends, for nothing, with all that it has waited for. A cgroup knows processor time better: of
 * descendants that nobody has waited for, too. While they run, what /proc has of the group's own processes is added to
 * that of those that have ended. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/units.h"
#include "os/group.h"

enum { BLOCK = 512 }; /* that the system counts in */

static uint64_t ns_of(const struct timeval *t) {
    return (uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_usec * NS_PER_US;
}

void meter_ended(struct group *g, const struct rusage *r) {
    struct usage u = {.user_ns = ns_of(&r->ru_utime),
                      .system_ns = ns_of(&r->ru_stime),
                      .read_bytes = (uint64_t)r->ru_inblock * BLOCK,
                      .written_bytes = (uint64_t)r->ru_oublock * BLOCK,
                      .peak_bytes = (uint64_t)r->ru_maxrss * KIB};
    usage_add(&g->usage, &u);
}

/* ---- of those that live ---- */

/* A file of a process; "" if it cannot be read. */
static void read_file(pid_t pid, const char *name, char *text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        close(fd);
}

static uint64_t number_after(const char *text, const char *key) {
    const char *at = strstr(text, key);
    return at == NULL ? 0 : strtoull(at + strlen(key), NULL, 10);
}

/* Fields 14 to 17 are its user and system time, and those of what it has waited for; the name before them may hold anything. */
static void read_times(pid_t pid, struct usage *u) {
    char text[1024];
    unsigned long long user = 0, system = 0, user_below = 0, system_below = 0;
    uint64_t tick = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    read_file(pid, "stat", text, sizeof text);
    const char *at = strrchr(text, ')');
    if (at == NULL ||
        sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu", &user,
               &system, &user_below, &system_below) != 4)
        return;
    u->user_ns = (user + user_below) * tick;
    u->system_ns = (system + system_below) * tick;
}

static struct usage of_process(pid_t pid) {
    struct usage u = {0};
    char text[4096];
    read_times(pid, &u);
    read_file(pid, "status", text, sizeof text);
    u.peak_bytes = number_after(text, "VmHWM:") * KIB;
    read_file(pid, "io", text, sizeof text);
    u.read_bytes = number_after(text, "\nread_bytes: ");
    u.written_bytes = number_after(text, "\nwrite_bytes: ");
    return u;
}

struct usage meter_read(struct group *g) {
    struct usage all = g->usage;
    for (uint32_t i = 0; g->live > 0 && i < g->count; i++) {
        if (!g->processes[i].live)
            continue;
        struct usage u = of_process(g->processes[i].pid);
        usage_add(&all, &u);
    }
    if (g->cgroup != NULL)
        cgroup_usage(g->cgroup, &all);
    return all;
}

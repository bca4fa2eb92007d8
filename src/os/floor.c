/* SPDX-License-Identifier: MIT */
/* Starting and reaping with nothing on top: see floor.h.
 *
 * posix_spawn shares our memory with the child until it executes (vfork), so the size of this
 * process does not matter; it was the fastest of the ways to start a process. */
#include "os/floor.h"

#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"

struct share {
    const char *program;
    uint32_t count;
    uint32_t at_once;
    pid_t *pids; /* a ring of `at_once` */
    int error;
    pthread_t thread;
};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static int reap(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return status == 0 ? 0 : -EPROTO;
}

static void *work(void *arg) {
    struct share *s = arg;
    uint32_t started = 0, reaped = 0;
    char *argv[] = {(char *)s->program, NULL};
    while (started < s->count || reaped < started) {
        if (started < s->count && started - reaped < s->at_once && s->error == 0) {
            s->error =
                -posix_spawn(&s->pids[started % s->at_once], s->program, NULL, NULL, argv, environ);
            started += s->error == 0;
            continue;
        }
        if (reaped == started)
            break;
        int r = reap(s->pids[reaped++ % s->at_once]);
        if (s->error == 0)
            s->error = r;
    }
    return NULL;
}

static void share_out(struct share *shares, const struct floor_config *c, uint32_t threads,
                      pid_t *pids) {
    for (uint32_t i = 0; i < threads; i++) {
        uint32_t count = c->processes / threads + (i < c->processes % threads);
        uint32_t at_once = c->at_once / threads + (i < c->at_once % threads);
        if (c->at_once == 0 || at_once > count)
            at_once = count;
        if (at_once == 0) /* a share of nothing, or less than one each */
            at_once = 1;
        shares[i] =
            (struct share){.program = c->program, .count = count, .at_once = at_once, .pids = pids};
        pids += at_once;
    }
}

int floor_run(const struct floor_config *c, uint64_t *ret_ns) {
    struct share shares[FLOOR_THREADS_MAX];
    uint32_t threads = c->threads ? c->threads : FLOOR_THREADS;
    if (c->processes > FLOOR_PROCESSES_MAX || threads > FLOOR_THREADS_MAX)
        return -EINVAL;
    pid_t *pids = calloc((size_t)c->processes + threads, sizeof *pids);
    if (pids == NULL)
        return -ENOMEM;
    share_out(shares, c, threads, pids);
    uint32_t helpers = 0;
    int r = 0;
    uint64_t begin = now_ns();
    for (uint32_t i = 1; i < threads && r == 0; i++) {
        r = -pthread_create(&shares[i].thread, NULL, work, &shares[i]);
        helpers += r == 0;
    }
    if (r == 0)
        work(&shares[0]);
    for (uint32_t i = 1; i <= helpers; i++)
        pthread_join(shares[i].thread, NULL);
    uint64_t end = now_ns();
    for (uint32_t i = 0; i < threads && r == 0; i++)
        r = shares[i].error;
    free(pids);
    if (r == 0)
        *ret_ns = end - begin;
    return r;
}

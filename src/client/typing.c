/* SPDX-License-Identifier: MIT */
/* What is typed, on its way to the processes: see typing.h. */
#include "client/typing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/list.h"
#include "base/units.h"

enum { PART_BYTES = 64 * 1024 };

/* The first part may be there before the process is: it is not waited for as long. */
#define AGAIN_FIRST_NS (50 * NS_PER_MS)
#define AGAIN_MIN_NS   NS_PER_S
#define AGAIN_MAX_NS   (10 * NS_PER_S)
/* How often to look whether we are in the foreground by now. */
#define LOOK_NS (NS_PER_S / 2)

struct typing {
    struct source source; /* standard input */
    struct typing_config config;
    bool watched; /* in the loop */
    bool always;  /* ready at all times: a regular file */
    bool terminal;
    bool running;
    bool eof;
    bool moved; /* something was drained since the beginning */
    uint64_t run;
    uint64_t read;     /* bytes */
    uint64_t base;     /* drained by all; what is kept begins here */
    uint64_t *drained; /* by rank, if it is for all */
    uint64_t again_ns; /* so long without progress, then once more */
    uint64_t again_at;
    uint32_t window;
    uint8_t *ring; /* byte n is at n % window */
};

bool typing_possible(int fd) {
    struct stat st;
    if (fstat(fd, &st) < 0)
        return false;
    return !(S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3));
}

/* ---- sending ---- */

/* A part that is in one piece; the end goes with the last byte. */
static uint64_t send_part(struct typing *t, uint64_t from) {
    size_t at = (size_t)(from % t->window);
    uint64_t len = t->read - from;
    len = len > PART_BYTES ? PART_BYTES : len;
    len = len > t->window - at ? t->window - at : len;
    struct message_typed m = {.run = t->run,
                              .rank = t->config.rank,
                              .end = t->eof && from + len == t->read,
                              .offset = from,
                              .bytes = bytes_of(t->ring + at, (size_t)len)};
    session_typed(t->config.session, &m);
    return from + len;
}

static void send_from(struct typing *t, uint64_t from) {
    do
        from = send_part(t, from);
    while (from < t->read);
    if (t->again_at == 0)
        t->again_at = t->config.loop->now + t->again_ns;
}

void typing_again(struct typing *t) {
    if (!t->running || (t->base == t->read && !t->eof))
        return;
    t->again_at = 0;
    send_from(t, t->base);
}

/* ---- reading ---- */

static bool in_background(const struct typing *t) {
    if (!t->terminal)
        return false;
    pid_t front = tcgetpgrp(t->source.fd);
    return front >= 0 && front != getpgrp();
}

static void read_some(struct typing *t) {
    size_t at = (size_t)(t->read % t->window);
    size_t room = (size_t)(t->window - (t->read - t->base));
    room = room > t->window - at ? t->window - at : room;
    ssize_t n = read(t->source.fd, t->ring + at, room > PART_BYTES ? PART_BYTES : room);
    if (n < 0 && (errno == EINTR || errno == EAGAIN || (errno == EIO && t->terminal)))
        return;
    uint64_t from = t->read;
    if (n > 0)
        t->read += (uint64_t)n;
    else
        t->eof = true;
    send_from(t, from);
}

static void ready(struct source *source, uint32_t events) {
    struct typing *t = CONTAINER_OF(source, struct typing, source);
    (void)events;
    if (!in_background(t))
        read_some(t);
}

static void watch(struct typing *t, bool more) {
    if (t->always || t->watched == more)
        return;
    if (!more) {
        loop_remove(t->config.loop, &t->source);
    } else if (loop_add(t->config.loop, &t->source, EPOLLIN) < 0) {
        t->always = true;
        return;
    }
    t->watched = more;
}

void typing_settle(struct typing *t) {
    uint64_t now = t->config.loop->now;
    if (!t->running)
        return;
    bool room = !t->eof && t->read - t->base < t->window;
    bool behind = room && in_background(t);
    watch(t, room && !behind);
    while (t->always && !t->eof && t->read - t->base < t->window)
        read_some(t);
    if (behind)
        loop_wake_at(t->config.loop, now + LOOK_NS);
    if (t->again_at != 0 && t->again_at <= now) {
        t->again_ns = t->again_ns * 2 > AGAIN_MAX_NS ? AGAIN_MAX_NS : t->again_ns * 2;
        typing_again(t);
    }
    if (t->again_at != 0)
        loop_wake_at(t->config.loop, t->again_at);
}

/* ---- what was drained ---- */

/* The least of all ranks; those that read no more do not count. */
static uint64_t least(struct typing *t, uint32_t rank, uint64_t offset) {
    uint64_t all = UINT64_MAX;
    if (t->config.rank != RANK_ALL)
        return offset;
    if (rank >= t->config.procs)
        return t->base;
    if (offset > t->drained[rank])
        t->drained[rank] = offset;
    if (offset == t->base) /* it cannot be the one all wait for */
        return t->base;
    for (uint32_t i = 0; i < t->config.procs && all > t->base; i++)
        all = t->drained[i] < all ? t->drained[i] : all;
    return all;
}

void typing_drained(struct typing *t, const struct message_drained *m) {
    if (!t->running || m->run != t->run)
        return;
    uint64_t offset = least(t, m->rank, m->offset);
    if (offset == UINT64_MAX) {
        typing_stop(t);
        return;
    }
    if (offset <= t->base || offset > t->read)
        return;
    t->base = offset;
    t->moved = true;
    t->again_ns = AGAIN_MIN_NS;
    t->again_at = t->base < t->read || t->eof ? t->config.loop->now + t->again_ns : 0;
}

/* ---- beginning and end ---- */

void typing_begin(struct typing *t, uint64_t run) {
    if (run == t->run)
        return;
    if (t->base > 0) { /* another attempt, and what the last one has read is gone: it gets none */
        t->base = t->read = 0;
        t->eof = true;
    }
    if (t->drained != NULL)
        memset(t->drained, 0, t->config.procs * sizeof *t->drained);
    t->run = run;
    t->again_at = 0;
    t->running = true;
    t->again_ns = AGAIN_FIRST_NS;
    if (t->eof || t->read > 0)
        send_from(t, 0);
}

void typing_stop(struct typing *t) {
    watch(t, false);
    t->running = false;
}

struct typing *typing_new(const struct typing_config *config) {
    struct typing *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->source = (struct source){.fd = config->fd, .ready = ready};
    t->config = *config;
    t->terminal = isatty(config->fd) == 1;
    t->window = stream_window(config->procs);
    t->ring = malloc(t->window);
    if (config->rank == RANK_ALL)
        t->drained = calloc(config->procs, sizeof *t->drained);
    if (t->ring == NULL || (config->rank == RANK_ALL && t->drained == NULL)) {
        typing_free(t);
        return NULL;
    }
    return t;
}

void typing_free(struct typing *t) {
    if (t == NULL)
        return;
    watch(t, false);
    free(t->drained);
    free(t->ring);
    free(t);
}

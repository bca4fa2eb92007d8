/* SPDX-License-Identifier: MIT */
/* The real theatre: a process for each node, sockets between them, the system's own clock.
 *
 * What the director and the nodes share is mapped before the first process is forked: the stage
 * here, the heaps by the crew. A command is written into the stage and then the node is poked; a
 * node that has something to tell rings. Nobody sleeps in the hope that something has happened. */
#pragma once

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "conformance/theatre.h"
#include "os/crew.h"

/* Long compared with how late a busy machine may be, sanitizers included. */
#ifdef __SANITIZE_ADDRESS__
#define REAL_PERIOD (500 * NS_PER_MS)
#else
#define REAL_PERIOD (300 * NS_PER_MS)
#endif

struct real_theatre {
    struct stage *stage;
    struct crew *crew;
    struct life *life; /* in a node's process */
};

/* ---- in a node's process ---- */

static inline uint8_t *real_source(void *context, uint32_t node, uint32_t buffer, uint64_t bytes) {
    struct real_theatre *t = context;
    uint8_t *at = life_buffer(t->life, buffer, bytes);
    ASSERT(life_node(t->life) == node && at != NULL);
    return at;
}

static inline void real_ring(struct stage *s) {
    crew_ring(((struct real_theatre *)s->context)->crew);
}

/* The daemon hears its alarm. */
static inline void real_poked(void *stage, struct life *l) {
    ((struct real_theatre *)((struct stage *)stage)->context)->life = l;
    struct input in = {.kind = INPUT_TIMER, .now = life_now(l)};
    life_feed(l, LAYER_DAEMON, &in);
}

/* ---- in the director's ---- */

static inline struct real_theatre *real_open(const struct script *script, enum transport links) {
    struct real_theatre *t = calloc(1, sizeof *t);
    ASSERT(t != NULL);
    t->stage = stage_new(script, REAL_PERIOD);
    t->stage->source = real_source;
    t->stage->ring = real_ring;
    t->stage->context = t;
    struct crew_config c = {.prim = t->stage->prim,
                            .links = links,
                            .daemon = part_machine,
                            .poked = real_poked,
                            .context = t->stage};
    int error = 0;
    t->crew = crew_new(&c, &error);
    ASSERT(t->crew != NULL);
    return t;
}

static inline void *real_open_unix(const struct script *script, uint64_t seed) {
    (void)seed;
    return real_open(script, TRANSPORT_UNIX);
}

static inline void *real_open_tcp(const struct script *script, uint64_t seed) {
    (void)seed;
    return real_open(script, TRANSPORT_TCP);
}

static inline void real_close(void *self) {
    struct real_theatre *t = self;
    crew_free(t->crew);
    stage_free(t->stage);
    free(t);
}

static inline struct stage *real_stage(void *self) {
    return ((struct real_theatre *)self)->stage;
}

static inline void real_boot(void *self, uint32_t node) {
    int r = crew_start(((struct real_theatre *)self)->crew, node);
    ASSERT(r == 0);
}

static inline void real_kill(void *self, uint32_t node) {
    crew_kill(((struct real_theatre *)self)->crew, node);
}

/* A signal to stop takes effect a little later: waits until all of the process stands still. */
static inline void real_stop(void *self, uint32_t node) {
    struct real_theatre *t = self;
    siginfo_t info;
    int r = crew_signal(t->crew, node, SIGSTOP);
    ASSERT(r == 0);
    do
        r = waitid(P_PID, (id_t)crew_pid(t->crew, node), &info, WSTOPPED);
    while (r < 0 && errno == EINTR);
    ASSERT(r == 0);
}

static inline void real_resume(void *self, uint32_t node) {
    int r = crew_signal(((struct real_theatre *)self)->crew, node, SIGCONT);
    ASSERT(r == 0);
}

static inline void real_poke(void *self, uint32_t node) {
    crew_poke(((struct real_theatre *)self)->crew, node);
}

/* Nobody may die but by the script: then what is waited for need not be waited for. */
static inline bool real_wait(void *self, bool (*condition)(void *context), void *context,
                             uint64_t ns) {
    struct real_theatre *t = self;
    uint64_t end = clock_ns() + ns;
    while (!condition(context)) {
        uint64_t now = clock_ns();
        if (now >= end)
            return false;
        if (crew_wait(t->crew, (int)((end - now) / NS_PER_MS + 1)) > 0) {
            printf("# a node's process has ended by itself\n");
            return false;
        }
    }
    return true;
}

static inline const uint8_t *real_heap(void *self, uint32_t node) {
    return crew_heap(((struct real_theatre *)self)->crew, node);
}

#define THEATRE_REAL(name_, open_)                                                      \
    {                                                                                   \
        .name = (name_), .open = (open_), .close = real_close, .stage = real_stage,     \
        .boot = real_boot, .kill = real_kill, .stop = real_stop, .resume = real_resume, \
        .poke = real_poke, .wait = real_wait, .heap = real_heap,                        \
    }

static const struct theatre theatre_unix =
    THEATRE_REAL("processes over Unix sockets", real_open_unix);
static const struct theatre theatre_tcp = THEATRE_REAL("processes over TCP", real_open_tcp);

/* SPDX-License-Identifier: MIT */
/* A court on a machine of its own, for tests: jobs go by a letter. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/court.h"
#include "sched/policies.h"

struct bench {
    struct court *court;
    void *memory;
    struct nodeset set;
    uint64_t storage[64];
    uint32_t job[128]; /* by letter: its number in the court */
    char log[4096];    /* what the court has decided, in words */
};

static inline struct court_config bench_config(uint32_t nodes, uint32_t pes, uint32_t slots) {
    return (struct court_config){
        .limits = {.nodes = nodes, .pes_max = pes, .jobs = 64, .slots = slots, .quantum = 10}};
}

static inline void bench_usable(struct bench *b, uint64_t now, uint32_t first, uint32_t last,
                                bool usable) {
    nodeset_clear(&b->set);
    nodeset_add_range(&b->set, first, last);
    court_set_usable(b->court, now, &b->set, usable);
}

static inline void bench_init(struct bench *b, const struct court_config *c,
                              const struct storm_policy *policy) {
    struct arena a;
    size_t bytes = court_bytes(c);
    *b = (struct bench){.memory = malloc(bytes)};
    memset(b->memory, 0xEE, bytes);
    arena_init(&a, b->memory, bytes);
    b->court = court_new(c, policy, &a);
    nodeset_init(&b->set, c->limits.nodes, b->storage);
    bench_usable(b, 0, 0, c->limits.nodes - 1, true);
}

static inline void bench_fini(struct bench *b) {
    free(b->memory);
}

/* Takes what was decided: "A:0-3@1" started on nodes 0 to 3 in slot 1, "A~5" in slots 0 and 2, "turn1", "A!"
 * is to stop, "fault". */
static inline const char *bench_taken(struct bench *b) {
    struct court_effect e;
    char nodes[128];
    size_t len = 0;
    b->log[0] = '\0';
    while (court_next(b->court, &e)) {
        char *at = b->log + len;
        size_t room = sizeof b->log - len;
        char letter = e.job == COURT_NONE ? '?' : (char)court_job(b->court, e.job)->id;
        if (e.kind == COURT_START) {
            nodeset_format(court_nodes(b->court, e.job), "", nodes, sizeof nodes);
            snprintf(at, room, "%s%c:%s@%u", len ? " " : "", letter, nodes, e.slot);
        } else if (e.kind == COURT_SLOTS) {
            snprintf(at, room, "%s%c~%llx", len ? " " : "", letter, (unsigned long long)e.slots);
        } else if (e.kind == COURT_TURN) {
            snprintf(at, room, "%sturn%u", len ? " " : "", e.slot);
        } else if (e.kind == COURT_STOP) {
            snprintf(at, room, "%s%c!", len ? " " : "", letter);
        } else {
            snprintf(at, room, "%sfault %s;", len ? " " : "", e.words);
        }
        len += strlen(at);
    }
    return b->log;
}

static inline struct court_order bench_order(char letter, uint32_t nodes, uint64_t estimate) {
    return (struct court_order){
        .id = (uint64_t)letter, .nodes = nodes, .ppn = 1, .estimate = estimate};
}

static inline const char *bench_order_arrives(struct bench *b, uint64_t now,
                                              const struct court_order *o) {
    int r = court_arrive(b->court, now, o, &b->job[o->id]);
    return r < 0 ? strerror(-r) : bench_taken(b);
}

static inline const char *bench_arrives(struct bench *b, uint64_t now, char letter, uint32_t nodes,
                                        uint64_t estimate) {
    struct court_order o = bench_order(letter, nodes, estimate);
    return bench_order_arrives(b, now, &o);
}

static inline const char *bench_ends(struct bench *b, uint64_t now, char letter) {
    court_end(b->court, now, b->job[(uint8_t)letter]);
    return bench_taken(b);
}

static inline const char *bench_ticks(struct bench *b) {
    court_tick(b->court, court_due(b->court));
    return bench_taken(b);
}

static inline const struct storm_job *bench_job(const struct bench *b, char letter) {
    return court_job(b->court, b->job[(uint8_t)letter]);
}

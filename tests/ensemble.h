/* SPDX-License-Identifier: MIT */
/*
 * For tests with real processes: a crew whose root keeps asking, and what one can see of it.
 *
 * The root's daemon asks XFERs and COMPAREs of all nodes that the test has started, one after the
 * other while it is told to, and counts how they end; every node shows how it stands. All of that
 * lies in memory shared with the test. Waiting has a deadline only to fail instead of hanging.
 */
#pragma once

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/units.h"
#include "os/crew.h"
#include "os/process.h"
#include "sanitized.h"
#include "tap.h"

enum { ENSEMBLE_MAX = 40, ENSEMBLE_AT_ONCE = 3, ENSEMBLE_TICK_MS = 2 };

#define ENSEMBLE_PATIENCE_NS (40 * NS_PER_S)

/* How a node stands, as its own process sees it. */
struct stand {
    atomic_uint epoch, parent, children;
    atomic_bool attached, root;
    atomic_ullong incarnation;
};

/* Shared by all processes. */
struct stage {
    atomic_bool asking;
    atomic_uint up; /* nodes that the root has reported, itself included */
    atomic_bool is_up[ENSEMBLE_MAX];
    atomic_ullong asked, outcomes[OUTCOMES];
    struct stand stands[ENSEMBLE_MAX];
};

struct ensemble {
    struct crew *crew;
    struct crew_config config;
    struct stage *stage;
    uint32_t nodes; /* started, not counting the root */
    uint32_t root;
    uint32_t universe;
    /* of the root's process */
    uint32_t open;
    uint64_t tag;
};

/* ---- in the nodes' processes ---- */

static inline void ensemble_ask(struct ensemble *t, struct effects *out) {
    static const char body[] = "some words for everyone";
    uint64_t words[64];
    struct nodeset set;
    ASSERT(nodeset_bytes(t->universe) <= sizeof words);
    nodeset_init(&set, t->universe, words);
    nodeset_add_range(&set, 0, t->nodes - 1);
    nodeset_add(&set, t->root);
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = (struct primitive){.kind = t->tag % 2 ? PRIMITIVE_COMPARE : PRIMITIVE_XFER,
                                    .tag = t->tag,
                                    .timeout_ns = 60 * NS_PER_S,
                                    .heap_offset = (uint32_t)(t->tag % 16) * 32,
                                    .remote_event = t->tag % 2 ? NO_EVENT : 1,
                                    .local_event = NO_EVENT,
                                    .relation = RELATION_GE,
                                    .write_variable = 1,
                                    .write_value = t->tag};
    e->request.set = effects_copy_set(out, &set);
    e->request.body = effects_copy(out, bytes_of(body, sizeof body));
    t->tag++;
    t->open++;
    atomic_fetch_add(&t->stage->asked, 1);
}

static inline void ensemble_nodes(struct stage *stage, const struct input_nodes *nodes) {
    NODESET_EACH (n, nodes->nodes) {
        bool was = atomic_exchange(&stage->is_up[n], nodes->up);
        if (was != nodes->up)
            atomic_fetch_add(&stage->up, nodes->up ? 1U : -1U);
    }
}

static inline void ensemble_step(void *self, const struct input *in, struct effects *out) {
    struct ensemble *t = self;
    if (in->kind == INPUT_COMPLETION) {
        atomic_fetch_add(&t->stage->outcomes[in->completion.outcome], 1);
        if (in->completion.outcome != OUTCOME_UNKNOWN)
            t->open--;
    }
    if (in->kind == INPUT_NODES)
        ensemble_nodes(t->stage, &in->nodes);
    while (atomic_load(&t->stage->asking) && t->open < ENSEMBLE_AT_ONCE && in->kind != INPUT_BOOT)
        ensemble_ask(t, out);
    if (in->kind == INPUT_BOOT || in->kind == INPUT_TIMER)
        effects_timer(out, 0, in->now + ENSEMBLE_TICK_MS * NS_PER_MS);
}

static inline void ensemble_extra(void *self, const struct input *in, struct effects *out) {
    (void)self;
    (void)in;
    (void)out;
}

static inline struct machine ensemble_daemon(void *context, uint32_t node, struct globals globals) {
    struct ensemble *t = context;
    (void)globals;
    if (node != t->root)
        return (struct machine){.self = t, .step = ensemble_extra};
    t->open = 0;
    atomic_store(&t->stage->up, 0); /* a new root reports everyone anew */
    for (uint32_t i = 0; i < ENSEMBLE_MAX; i++)
        atomic_store(&t->stage->is_up[i], false);
    return (struct machine){.self = t, .step = ensemble_step};
}

static inline void ensemble_observe(void *context, struct life *l) {
    struct ensemble *t = context;
    struct stand *s = &t->stage->stands[life_node(l)];
    struct prim_status now;
    prim_status(life_prim(l), &now);
    atomic_store(&s->epoch, now.epoch);
    atomic_store(&s->parent, now.parent);
    atomic_store(&s->children, now.children);
    atomic_store(&s->root, now.root);
    atomic_store(&s->incarnation, now.incarnation);
    atomic_store(&s->attached, now.attached);
}

/* ---- in the test's ---- */

/* `spare` nodes have a place and an address, but are never started. */
static inline void ensemble_init(struct ensemble *t, enum transport links, uint32_t nodes,
                                 uint32_t spare) {
    *t = (struct ensemble){.nodes = nodes, .root = nodes + spare, .universe = nodes + spare + 1};
    ASSERT(t->universe <= ENSEMBLE_MAX);
    t->stage =
        mmap(NULL, sizeof *t->stage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT(t->stage != MAP_FAILED);
    t->config = (struct crew_config){.links = links,
                                     .keep_root = true,
                                     .daemon = ensemble_daemon,
                                     .observe = ensemble_observe,
                                     .context = t};
    t->config.prim.limits = (struct limits){.nodes = nodes + spare,
                                            .roots = 1,
                                            .variables = 8,
                                            .events = 8,
                                            .heap_bytes = 64 * KIB,
                                            .children = 24,
                                            .window = 8,
                                            .queue = 16,
                                            .outstanding = 8,
                                            .body_bytes = 1024,
                                            .standing = 4,
                                            .transfers = 2,
                                            .chunk_bytes = 4096,
                                            .slots = 4};
    t->config.prim.tree = (struct tree){.shape = SHAPE_KARY, .arity = 2, .nodes = nodes + spare};
    prim_config_times(&t->config.prim, NS_PER_S / (SANITIZED ? 1 : 2));
}

/* Lets things happen until the condition holds; false if that takes too long. */
#define ENSEMBLE_UNTIL(t, condition)                                  \
    ({                                                                \
        bool until_held;                                              \
        uint64_t until_end = clock_ns() + ENSEMBLE_PATIENCE_NS;       \
        while (!(until_held = (condition)) && clock_ns() < until_end) \
            crew_wait((t)->crew, 2);                                  \
        until_held;                                                   \
    })

static inline bool ensemble_whole(const struct ensemble *t) {
    bool whole = atomic_load(&t->stage->up) == t->nodes + 1;
    for (uint32_t n = 0; n < t->nodes; n++)
        whole = whole && atomic_load(&t->stage->stands[n].attached);
    return whole;
}

/* Starts root and nodes, waits until all are members. */
static inline bool ensemble_start(struct ensemble *t) {
    int error = 0;
    t->crew = crew_new(&t->config, &error);
    if (!CHECK(t->crew != NULL))
        return false;
    CHECK_EQ(crew_start(t->crew, t->root), 0);
    for (uint32_t n = 0; n < t->nodes; n++)
        CHECK_EQ(crew_start(t->crew, n), 0);
    return CHECK(ENSEMBLE_UNTIL(t, ensemble_whole(t)));
}

static inline void ensemble_end(struct ensemble *t) {
    crew_free(t->crew);
    munmap(t->stage, sizeof *t->stage);
}

static inline uint64_t ensemble_done(const struct ensemble *t) {
    return atomic_load(&t->stage->outcomes[OUTCOME_DONE]);
}

/* Asks for a while: until so many more are done; then waits for the answers to all. */
static inline bool ensemble_finish_asking(struct ensemble *t) {
    atomic_store(&t->stage->asking, false);
    return ENSEMBLE_UNTIL(t, ({
                              uint64_t answered = 0;
                              for (int o = 0; o < OUTCOMES; o++)
                                  answered += o == OUTCOME_UNKNOWN ? 0 : t->stage->outcomes[o];
                              answered == t->stage->asked;
                          }));
}

static inline bool ensemble_ask_some(struct ensemble *t, uint64_t count) {
    uint64_t before = ensemble_done(t);
    atomic_store(&t->stage->asking, true);
    bool enough = ENSEMBLE_UNTIL(t, ensemble_done(t) >= before + count);
    return ensemble_finish_asking(t) && enough;
}

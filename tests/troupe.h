/* SPDX-License-Identifier: MIT */
/* A real cluster on a string: a process for each node, for tests of the real world.
 *
 * The counterpart of cluster.h, a thin layer over os/puppets.h: the test hands requests to nodes,
 * and waits until something has happened or a deadline is over.
 *
 *     struct troupe *t = troupe_start(&config);
 *     const struct puppet_op *x = troupe_ask(t, t->root, NULL, NO_NODE, request);
 *     CHECK(TROUPE_WITHIN(t, 5 * NS_PER_S, op_ended(x)));
 *     troupe_free(t); */
#pragma once

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/units.h"
#include "os/puppets.h"
#include "tap.h"

enum { TROUPE_MAX = 1025, TROUPE_WORDS = (TROUPE_MAX + 63) / 64 };

struct troupe {
    struct puppets *puppets;
    struct crew *crew;
    struct prim_config prim;
    uint32_t root;
    uint32_t universe;
    uint32_t asked; /* operations so far */
};

struct troupe_config {
    uint32_t nodes;
    struct tree tree; /* its node count follows */
    enum transport links;
    uint64_t period_ns;
};

static inline struct limits troupe_limits(uint32_t nodes) {
    return (struct limits){.nodes = nodes,
                           .roots = 1,
                           .variables = 8,
                           .events = 8,
                           .heap_bytes = 4096,
                           .children = nodes < 64 ? nodes : 64,
                           .window = 16,
                           .queue = 64,
                           .outstanding = 16,
                           .body_bytes = 512, /* the set of a transfer must fit, too */
                           .standing = 4,
                           .transfers = 2,
                           .chunk_bytes = 512,
                           .slots = 4};
}

#define TROUPE_WITHIN(t, ns, condition)                 \
    ({                                                  \
        uint64_t within_end = clock_ns() + (ns);        \
        while (!(condition) && clock_ns() < within_end) \
            crew_wait((t)->crew, 10);                   \
        (condition);                                    \
    })

static inline bool troupe_all_up(const struct troupe *t) {
    return puppets_up_count(t->puppets) == t->universe;
}

static inline void troupe_free(struct troupe *t) {
    if (t == NULL)
        return;
    puppets_free(t->puppets);
    free(t);
}

/* What a node keeps on disk outlives its process in any file system; in memory, builds that keep the
 * disk busy do not get into the figures, and a thousand folders are gone at once. */
static inline void keep_state_in_memory(void) {
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
}

/* Starts all processes; NULL with a failed check if that does not work. */
static inline struct troupe *troupe_start(const struct troupe_config *config) {
    struct troupe *t = calloc(1, sizeof *t);
    int error = 0;
    keep_state_in_memory();
    if (!CHECK(t != NULL))
        return NULL;
    t->root = config->nodes;
    t->universe = config->nodes + 1;
    t->prim.limits = troupe_limits(config->nodes);
    t->prim.tree = config->tree;
    t->prim.tree.nodes = config->nodes;
    prim_config_times(&t->prim, config->period_ns);
    struct crew_config crew = {.prim = t->prim, .links = config->links, .keep_root = true};
    t->puppets = puppets_new(&crew, &error);
    if (CHECK(t->puppets != NULL)) {
        t->crew = puppets_crew(t->puppets);
        if (CHECK_EQ(crew_start_all(t->crew), 0))
            return t;
    }
    troupe_free(t);
    return NULL;
}

/* Hands a request to a node. NULL: to the set of everyone, `but` aside (NO_NODE: nobody). */
static inline const struct puppet_op *troupe_ask(struct troupe *t, uint32_t node,
                                                 const uint64_t *bits, uint32_t but,
                                                 struct primitive r) {
    static uint64_t storage[TROUPE_MAX + 8];
    struct nodeset set;
    nodeset_init(&set, t->universe, storage);
    for (uint32_t n = 0; n < t->universe; n++)
        if (n != but && (bits == NULL || bits_test(bits, n)))
            nodeset_add(&set, n);
    r.set = &set;
    t->asked++;
    return puppets_op(t->puppets, puppets_tell(t->puppets, node, &r));
}

static inline bool op_ended(const struct puppet_op *x) {
    return atomic_load(&x->stage) == PUPPET_ANSWERED;
}

static inline struct primitive op_request(enum primitive_kind kind, uint64_t timeout_ns) {
    return (struct primitive){.kind = kind,
                              .timeout_ns = timeout_ns,
                              .remote_event = NO_EVENT,
                              .local_event = NO_EVENT,
                              .write_variable = NO_VARIABLE};
}

/* A transfer of a text to the beginning of the heaps. */
static inline struct primitive op_xfer(const char *text, uint64_t timeout_ns) {
    struct primitive r = op_request(PRIMITIVE_XFER, timeout_ns);
    r.body = bytes_from_str(text);
    r.remote_event = 0;
    return r;
}

/* A compare that holds everywhere and writes. */
static inline struct primitive op_compare(uint64_t value, uint64_t timeout_ns) {
    struct primitive r = op_request(PRIMITIVE_COMPARE, timeout_ns);
    r.relation = RELATION_NE;
    r.value = UINT64_MAX;
    r.write_variable = 1;
    r.write_value = value;
    return r;
}

/* SPDX-License-Identifier: MIT */
/* A real cluster on a string: a process for each node, for tests of the real world.
 *
 * The counterpart of cluster.h. Every node has the real primitives and a player as its daemon: it
 * makes the requests that the test hands it when it is poked, and writes down what it hears where
 * the test can read it. The test waits until something has happened or a deadline is over.
 *
 *     struct troupe *t = troupe_start(&config);
 *     struct part *x = troupe_ask(t, t->root, NULL, NO_NODE, request);
 *     CHECK(TROUPE_WITHIN(t, 5 * NS_PER_S, part_ended(x)));
 *     troupe_free(t);
 *
 * All that both sides see lies in shared memory and has one writer at a time: a request is the
 * test's until it is WANTED, then its node's. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/units.h"
#include "os/crew.h"
#include "tap.h"

enum { PARTS_MAX = 512, TROUPE_MAX = 1025, TROUPE_WORDS = (TROUPE_MAX + 63) / 64 };
enum { PART_BODY_MAX = 64, TROUPE_VARIABLES = 8, TROUPE_EVENTS = 8 };

enum part_state { PART_FREE, PART_WANTED, PART_ASKED, PART_ENDED };

/* One request and what became of it. Times are the node's own clock. */
struct part {
    uint32_t state; /* enum part_state, atomic */
    uint32_t node;
    struct primitive request;
    uint64_t set[TROUPE_WORDS];
    uint8_t body[PART_BODY_MAX];
    uint64_t asked_at, ended_at;
    uint32_t unknowns;
    uint32_t answers; /* final ones */
    struct completion result;
};

/* What a node has heard in all its lives. */
struct heard {
    uint32_t count[INPUT_KINDS];
    uint64_t joined_order; /* the last one */
    uint64_t incarnation;
    bool up; /* as the root has reported last */
};

struct troupe {
    struct crew *crew;
    struct prim_config prim;
    uint32_t root;
    uint32_t universe;
    uint32_t part_count;
    uint32_t up_count; /* the root's */
    struct heard heard[TROUPE_MAX];
    struct part parts[PARTS_MAX];
};

/* ---- in the nodes' processes ---- */

struct player {
    struct troupe *troupe;
    uint32_t node;
    uint64_t words[TROUPE_MAX + 8]; /* of a set */
};

static inline void player_ask(struct player *p, struct part *x, uint64_t now, struct effects *out) {
    struct nodeset set;
    nodeset_init(&set, p->troupe->universe, p->words);
    for (uint32_t n = 0; n < p->troupe->universe; n++)
        if (bits_test(x->set, n))
            nodeset_add(&set, n);
    x->asked_at = now;
    __atomic_store_n(&x->state, PART_ASKED, __ATOMIC_RELEASE);
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = x->request;
    e->request.set = effects_copy_set(out, &set);
    e->request.body = effects_copy(out, bytes_of(x->body, x->request.body.len));
}

static inline void player_answered(struct troupe *t, const struct input *in) {
    struct part *x = &t->parts[in->completion.tag];
    if (in->completion.outcome == OUTCOME_UNKNOWN) {
        x->unknowns++;
        return;
    }
    x->answers++;
    x->result = in->completion;
    x->ended_at = in->now;
    __atomic_store_n(&x->state, PART_ENDED, __ATOMIC_RELEASE);
}

static inline void player_nodes(struct troupe *t, const struct input_nodes *nodes) {
    NODESET_EACH (n, nodes->nodes)
        t->heard[n].up = nodes->up;
    uint32_t count = 0;
    for (uint32_t n = 0; n < t->universe; n++)
        count += t->heard[n].up;
    __atomic_store_n(&t->up_count, count, __ATOMIC_RELEASE);
}

static inline void player_step(void *self, const struct input *in, struct effects *out) {
    struct player *p = self;
    struct troupe *t = p->troupe;
    struct heard *h = &t->heard[p->node];
    switch (in->kind) {
    case INPUT_TIMER: /* poked */
        for (uint32_t i = 0; i < __atomic_load_n(&t->part_count, __ATOMIC_ACQUIRE); i++)
            if (t->parts[i].node == p->node && t->parts[i].state == PART_WANTED)
                player_ask(p, &t->parts[i], in->now, out);
        return;
    case INPUT_COMPLETION:
        player_answered(t, in);
        break;
    case INPUT_NODES:
        player_nodes(t, &in->nodes);
        break;
    case INPUT_JOINED:
        h->joined_order = in->joined.order;
        h->incarnation = in->joined.incarnation;
        break;
    case INPUT_WAVE:
        return;
    default:
        break;
    }
    __atomic_store_n(&h->count[in->kind], h->count[in->kind] + 1, __ATOMIC_RELEASE);
    if (in->kind != INPUT_BOOT && in->kind != INPUT_SIGNAL)
        crew_ring(t->crew);
}

static inline struct machine player_new(void *context, uint32_t node, struct globals globals) {
    struct player *p = calloc(1, sizeof *p);
    (void)globals;
    ASSERT(p != NULL);
    *p = (struct player){.troupe = context, .node = node};
    return (struct machine){.self = p, .step = player_step};
}

static inline void player_poked(void *context, struct life *l) {
    struct input in = {.kind = INPUT_TIMER, .now = life_now(l)};
    (void)context;
    life_feed(l, LAYER_DAEMON, &in);
}

/* ---- in the test ---- */

struct troupe_config {
    uint32_t nodes;
    struct tree tree; /* its node count follows */
    enum transport links;
    uint64_t period_ns;
};

static inline struct limits troupe_limits(uint32_t nodes) {
    return (struct limits){.nodes = nodes,
                           .roots = 1,
                           .variables = TROUPE_VARIABLES,
                           .events = TROUPE_EVENTS,
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
    return __atomic_load_n(&t->up_count, __ATOMIC_ACQUIRE) == t->universe;
}

static inline void troupe_free(struct troupe *t) {
    if (t == NULL)
        return;
    crew_free(t->crew);
    munmap(t, sizeof *t);
}

/* What a node keeps on disk outlives its process in any file system; in memory, builds that keep the
 * disk busy do not get into the figures, and a thousand folders are gone at once. */
static inline void keep_state_in_memory(void) {
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 0);
}

/* Starts all processes; NULL with a failed check if that does not work. */
static inline struct troupe *troupe_start(const struct troupe_config *config) {
    struct troupe *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int error = 0;
    keep_state_in_memory();
    if (!CHECK(t != MAP_FAILED))
        return NULL;
    t->root = config->nodes;
    t->universe = config->nodes + 1;
    t->prim.limits = troupe_limits(config->nodes);
    t->prim.tree = config->tree;
    t->prim.tree.nodes = config->nodes;
    prim_config_times(&t->prim, config->period_ns);
    struct crew_config crew = {.prim = t->prim,
                               .links = config->links,
                               .keep_root = true,
                               .daemon = player_new,
                               .poked = player_poked,
                               .context = t};
    t->crew = crew_new(&crew, &error);
    if (!CHECK(t->crew != NULL) || !CHECK_EQ(crew_start_all(t->crew), 0)) {
        troupe_free(t);
        return NULL;
    }
    return t;
}

/* Hands a request to a node. NULL: to the set of everyone, `but` aside (NO_NODE: nobody). */
static inline struct part *troupe_ask(struct troupe *t, uint32_t node, const uint64_t *set,
                                      uint32_t but, struct primitive r) {
    ASSERT(t->part_count < PARTS_MAX && r.body.len <= PART_BODY_MAX);
    struct part *x = &t->parts[t->part_count];
    *x = (struct part){.node = node, .request = r};
    x->request.tag = t->part_count;
    if (r.body.len > 0)
        memcpy(x->body, r.body.at, r.body.len);
    if (set != NULL)
        memcpy(x->set, set, sizeof x->set);
    else
        bits_set_run(x->set, 0, t->universe - 1);
    if (but != NO_NODE)
        bits_clear_run(x->set, but, but);
    x->state = PART_WANTED;
    __atomic_store_n(&t->part_count, t->part_count + 1, __ATOMIC_RELEASE);
    crew_poke(t->crew, node);
    return x;
}

static inline bool part_ended(const struct part *x) {
    return __atomic_load_n(&x->state, __ATOMIC_ACQUIRE) == PART_ENDED;
}

static inline struct primitive part_request(enum primitive_kind kind, uint64_t timeout_ns) {
    return (struct primitive){.kind = kind,
                              .timeout_ns = timeout_ns,
                              .remote_event = NO_EVENT,
                              .local_event = NO_EVENT,
                              .write_variable = NO_VARIABLE};
}

/* A transfer of a text to the beginning of the heaps. */
static inline struct primitive part_xfer(const char *text, uint64_t timeout_ns) {
    struct primitive r = part_request(PRIMITIVE_XFER, timeout_ns);
    r.body = bytes_from_str(text);
    r.remote_event = 0;
    return r;
}

/* A compare that holds everywhere and writes. */
static inline struct primitive part_compare(uint64_t value, uint64_t timeout_ns) {
    struct primitive r = part_request(PRIMITIVE_COMPARE, timeout_ns);
    r.relation = RELATION_NE;
    r.value = UINT64_MAX;
    r.write_variable = 1;
    r.write_value = value;
    return r;
}

/* SPDX-License-Identifier: MIT */
/* A simulated cluster on a string, for tests of the primitives.
 *
 * Every node has the real primitives and a listener as its daemon: it makes the requests that the
 * test hands it, at its next poll (all nodes poll at the same moments), and keeps what it hears.
 * The test lets time pass until something has happened or a deadline in virtual time is over.
 *
 *     struct cluster *c = cluster_start(17, SHAPE_KARY, 2);
 *     struct call *x = cluster_ask(c, c->root, "n[2,5-7]", xfer(40, "hello", DATA));
 *     CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
 *     cluster_free(c);
 *
 * A set is a text as nodeset_parse() reads it with the prefix "n"; NULL is everyone. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "sim/world.h"
#include "tap.h"

/* The heartbeat's period: everything else in these tests is measured in it. */
#define P (20 * NS_PER_MS)

enum { CALLS_MAX = 6000, TEXT_MAX = 64, CLUSTER_VARIABLES = 8, CLUSTER_EVENTS = 8 };

/* Events by use. */
enum { DATA, LOCAL, OTHER };

/* One request and what became of it. */
struct call {
    uint32_t node;
    struct primitive request;
    struct nodeset set;
    bool asked;
    uint64_t asked_at;
    uint32_t unknowns;
    uint32_t answers; /* final ones */
    uint64_t answered_at;
    struct completion result;
    struct nodeset missing; /* of a gather */
    struct bytes records;   /* and what it brought */
    uint8_t body[2 * TEXT_MAX];
};

struct heard {
    uint32_t node;
    struct input in; /* pointers are not to be followed */
    size_t len;
    uint8_t body[TEXT_MAX];
};

struct listener {
    struct cluster *cluster;
    uint32_t node;
    uint32_t to_ask;
    bool up;                              /* as the root has reported */
    uint64_t snapshot[CLUSTER_VARIABLES]; /* variables when it joined */
    uint32_t count[INPUT_KINDS];          /* what it has heard */
    struct globals globals;
};

struct cluster {
    struct world_config config;
    struct world *w;
    uint32_t root;     /* number of the root: one above the last node's */
    uint32_t universe; /* everyone's count */
    uint32_t up_count;
    uint64_t poll_ns;
    struct listener *listeners;
    struct call *calls;
    uint32_t call_count;
    struct heard *log;
    uint32_t log_count, log_cap;
    /* Looked at after every step of a node, if not NULL. */
    void (*look)(struct cluster *c, uint32_t node);
    uint64_t seen[8]; /* for the test's look */
    /* Hears every input of a daemon first, if not NULL: for machines that are embedded in daemons. If
     * it returns true the input was for it alone. */
    bool (*above)(struct cluster *c, uint32_t node, const struct input *in, struct effects *out);
};

/* ---- listening ---- */

static inline void cluster_keep(struct cluster *c, uint32_t node, const struct input *in) {
    struct bytes body = {0};
    if (in->kind == INPUT_PREPARED)
        body = in->prepared.body;
    else if (in->kind == INPUT_STROBE)
        body = in->strobe.body;
    else if (in->kind == INPUT_MESSAGE)
        body = in->message.body;
    if (c->log_count == c->log_cap) {
        c->log_cap = c->log_cap ? 2 * c->log_cap : 256;
        c->log = realloc(c->log, c->log_cap * sizeof *c->log);
        ASSERT(c->log != NULL);
    }
    struct heard *h = &c->log[c->log_count++];
    *h = (struct heard){.node = node, .in = *in, .len = body.len};
    if (body.len > 0)
        memcpy(h->body, body.at, body.len < TEXT_MAX ? body.len : TEXT_MAX);
}

static inline void cluster_answered(struct cluster *c, uint32_t node, const struct input *in) {
    ASSERT(in->completion.tag < c->call_count);
    struct call *x = &c->calls[in->completion.tag];
    ASSERT(x->node == node && x->asked);
    if (in->completion.outcome == OUTCOME_UNKNOWN) {
        x->unknowns++;
        return;
    }
    x->answers++;
    x->answered_at = in->now;
    x->result = in->completion;
}

/* How a gather ended is what it brought. */
static inline void cluster_gathered(struct cluster *c, uint32_t node, const struct input *in) {
    const struct input_gathered *g = &in->gathered;
    ASSERT(g->tag < c->call_count);
    struct call *x = &c->calls[g->tag];
    ASSERT(x->node == node && x->asked && x->request.channel == g->channel);
    if (x->answers++ > 0)
        return; /* cluster_free() will find fault with it */
    x->answered_at = in->now;
    uint8_t *records = malloc(g->records.len + 1);
    nodeset_init(&x->missing, c->universe, malloc(nodeset_bytes(c->universe)));
    ASSERT(records != NULL && x->missing.storage != NULL);
    if (g->records.len > 0)
        memcpy(records, g->records.at, g->records.len);
    x->records = bytes_of(records, g->records.len);
    nodeset_copy(&x->missing, g->missing);
}

static inline void cluster_nodes(struct cluster *c, const struct input_nodes *nodes) {
    NODESET_EACH (n, nodes->nodes)
        c->listeners[n].up = nodes->up;
    c->up_count = 0;
    for (uint32_t n = 0; n < c->universe; n++)
        c->up_count += c->listeners[n].up;
}

static inline void listener_poll(struct listener *l, uint64_t now, struct effects *out) {
    struct cluster *c = l->cluster;
    for (uint32_t i = 0; l->to_ask > 0 && i < c->call_count; i++) {
        struct call *x = &c->calls[i];
        if (x->node != l->node || x->asked)
            continue;
        l->to_ask--;
        x->asked = true;
        x->asked_at = now;
        struct effect *e = effects_add(out, EFFECT_REQUEST);
        e->request = x->request;
        e->request.set = effects_copy_set(out, &x->set);
        e->request.body = effects_copy(out, bytes_of(x->body, x->request.body.len));
    }
    effects_timer(out, 0, (now / c->poll_ns + 1) * c->poll_ns);
}

static inline void listener_step(void *self, const struct input *in, struct effects *out) {
    struct listener *l = self;
    struct cluster *c = l->cluster;
    l->count[in->kind]++;
    if (c->above != NULL && c->above(c, l->node, in, out))
        return;
    switch (in->kind) {
    case INPUT_BOOT:
    case INPUT_TIMER:
        listener_poll(l, in->now, out);
        return;
    case INPUT_COMPLETION:
        cluster_answered(l->cluster, l->node, in);
        break;
    case INPUT_GATHERED:
        cluster_gathered(l->cluster, l->node, in);
        break;
    case INPUT_NODES:
        cluster_nodes(l->cluster, &in->nodes);
        break;
    case INPUT_JOINED:
        memcpy(l->snapshot, l->globals.variables, sizeof l->snapshot);
        break;
    default:
        break;
    }
    cluster_keep(l->cluster, l->node, in);
}

static inline struct machine listener_new(void *context, uint32_t node, struct globals globals) {
    struct cluster *c = context;
    c->listeners[node].globals = globals;
    for (uint32_t n = 0; n < c->universe && node == c->root; n++)
        c->listeners[n].up = false; /* a new root reports everyone anew */
    if (node == c->root)
        c->up_count = 0;
    return (struct machine){.self = &c->listeners[node], .step = listener_step};
}

static inline void cluster_observe(void *context, struct world *w, uint32_t node) {
    struct cluster *c = context;
    (void)w;
    if (c->look != NULL && c->w != NULL)
        c->look(c, node);
}

/* ---- beginning and end ---- */

/* A cluster that is still off: limits, tree, times and seed may be changed before it is powered. */
static inline struct cluster *cluster_new(uint32_t nodes, enum shape shape, uint32_t arity) {
    struct cluster *c = calloc(1, sizeof *c);
    ASSERT(c != NULL);
    c->root = nodes;
    c->universe = nodes + 1;
    c->poll_ns = P / 100;
    c->config = (struct world_config){
        .seed = 1, .daemon = listener_new, .context = c, .observe = cluster_observe};
    c->config.prim.limits = (struct limits){.nodes = nodes,
                                            .roots = 1,
                                            .variables = CLUSTER_VARIABLES,
                                            .events = CLUSTER_EVENTS,
                                            .heap_bytes = 1024,
                                            .children = 24,
                                            .window = 8,
                                            .queue = 16,
                                            .outstanding = 8,
                                            .body_bytes = TEXT_MAX,
                                            .standing = 4,
                                            .transfers = 2,
                                            .chunk_bytes = 64,
                                            .slots = 4,
                                            .record_channels = 2,
                                            .record_bytes = TEXT_MAX};
    c->config.prim.tree = (struct tree){.shape = shape, .arity = arity, .nodes = nodes};
    prim_config_times(&c->config.prim, P);
    c->config.link = (struct link_model){.latency_ns = 20 * NS_PER_US,
                                         .jitter_ns = 2 * NS_PER_US,
                                         .bytes_per_s = 1250000000,
                                         .cpu_receive_ns = 2 * NS_PER_US,
                                         .cpu_send_ns = 1 * NS_PER_US,
                                         .connect_ns = 60 * NS_PER_US,
                                         .durable_ns = 50 * NS_PER_US};
    c->listeners = calloc(c->universe, sizeof *c->listeners);
    c->calls = calloc(CALLS_MAX, sizeof *c->calls);
    ASSERT(c->listeners != NULL && c->calls != NULL);
    for (uint32_t n = 0; n < c->universe; n++) {
        c->listeners[n].cluster = c;
        c->listeners[n].node = n;
    }
    return c;
}

/* Lets events happen until the condition holds; false if that takes longer than `ns`. */
#define WITHIN(c, ns, condition)                               \
    ({                                                         \
        uint64_t within_end = world_now((c)->w) + (ns);        \
        while (!(condition) && world_now((c)->w) < within_end) \
            if (!world_step((c)->w))                           \
                break;                                         \
        (condition);                                           \
    })

static inline void cluster_run(struct cluster *c, uint64_t ns) {
    world_run_until(c->w, world_now(c->w) + ns);
}

/* Powers root and nodes 0 .. count-1 on; waits until all are members. */
static inline bool cluster_power(struct cluster *c, uint32_t count) {
    c->w = world_new(&c->config);
    ASSERT(c->w != NULL);
    world_boot(c->w, c->root, true);
    for (uint32_t n = 0; n < count; n++)
        world_boot(c->w, n, false);
    return WITHIN(c, 60 * P, c->up_count == count + 1);
}

static inline struct cluster *cluster_start(uint32_t nodes, enum shape shape, uint32_t arity) {
    struct cluster *c = cluster_new(nodes, shape, arity);
    CHECK(cluster_power(c, nodes));
    return c;
}

/* Whatever a test is about: nothing may be answered twice. */
static inline void cluster_free(struct cluster *c) {
    for (uint32_t i = 0; i < c->call_count; i++) {
        CHECK(c->calls[i].answers <= 1);
        free(c->calls[i].set.storage);
        free(c->calls[i].missing.storage);
        free((void *)c->calls[i].records.at);
    }
    world_free(c->w);
    free(c->log);
    free(c->calls);
    free(c->listeners);
    free(c);
}

/* ---- asking ---- */

static inline struct primitive request_of(enum primitive_kind kind) {
    return (struct primitive){.kind = kind,
                              .timeout_ns = 30 * P,
                              .remote_event = NO_EVENT,
                              .local_event = NO_EVENT,
                              .write_variable = NO_VARIABLE};
}

static inline struct primitive xfer(uint32_t offset, const char *text, uint32_t event) {
    struct primitive r = request_of(PRIMITIVE_XFER);
    r.heap_offset = offset;
    r.body = bytes_from_str(text);
    r.remote_event = event;
    return r;
}

static inline struct primitive compare(uint32_t variable, enum relation relation, uint64_t value) {
    struct primitive r = request_of(PRIMITIVE_COMPARE);
    r.variable = variable;
    r.relation = relation;
    r.value = value;
    return r;
}

static inline struct primitive then_write(struct primitive r, uint32_t variable, uint64_t value) {
    r.write_variable = variable;
    r.write_value = value;
    return r;
}

static inline struct primitive standing(uint32_t variable, enum relation relation, uint64_t value) {
    struct primitive r = compare(variable, relation, value);
    r.kind = PRIMITIVE_STANDING;
    return r;
}

static inline struct primitive strobe(uint32_t channel, const char *text) {
    struct primitive r = request_of(PRIMITIVE_STROBE);
    r.channel = channel;
    r.body = bytes_from_str(text);
    return r;
}

static inline void set_of(const struct cluster *c, struct nodeset *s, const char *text) {
    nodeset_init(s, c->universe, malloc(nodeset_bytes(c->universe)));
    ASSERT(s->storage != NULL);
    if (text == NULL)
        nodeset_add_range(s, 0, c->universe - 1);
    else
        ASSERT(nodeset_parse(s, text, "n", NULL) == 0);
}

/* The node makes the request at its next poll, after those it was handed before. */
static inline struct call *cluster_ask(struct cluster *c, uint32_t node, const char *set,
                                       struct primitive r) {
    ASSERT(c->call_count < CALLS_MAX && r.body.len <= sizeof c->calls->body);
    struct call *x = &c->calls[c->call_count];
    *x = (struct call){.node = node, .request = r};
    x->request.tag = c->call_count++;
    if (r.body.len > 0)
        memcpy(x->body, r.body.at, r.body.len);
    set_of(c, &x->set, set);
    c->listeners[node].to_ask++;
    return x;
}

/* A bulk transfer of that many bytes, each of them telling its place and `mark`. */
static inline struct call *cluster_bulk(struct cluster *c, uint32_t node, const char *set,
                                        uint32_t offset, uint64_t bytes, uint8_t mark) {
    struct primitive r = request_of(PRIMITIVE_BULK);
    r.heap_offset = offset;
    r.remote_event = DATA;
    r.buffer = c->call_count + 1;
    r.buffer_bytes = bytes;
    uint8_t *at = world_buffer(c->w, node, r.buffer, bytes);
    for (uint64_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(mark + i % 100);
    return cluster_ask(c, node, set, r);
}

static inline void cluster_set(struct cluster *c, uint32_t node, uint32_t variable,
                               uint64_t value) {
    struct primitive r = request_of(PRIMITIVE_SET);
    r.variable = variable;
    r.value = value;
    cluster_ask(c, node, "", r);
}

static inline void cluster_record(struct cluster *c, uint32_t node, uint32_t channel,
                                  const char *text) {
    struct primitive r = request_of(PRIMITIVE_RECORD);
    r.channel = channel;
    r.body = bytes_from_str(text);
    cluster_ask(c, node, "", r);
}

static inline struct primitive gather(uint32_t channel, uint64_t timeout_ns) {
    struct primitive r = request_of(PRIMITIVE_GATHER);
    r.channel = channel;
    r.timeout_ns = timeout_ns;
    return r;
}

/* Every node stores the value into its own copy; done when they have. */
static inline void cluster_set_all(struct cluster *c, uint32_t variable, uint64_t value) {
    for (uint32_t n = 0; n < c->universe; n++)
        cluster_set(c, n, variable, value);
    cluster_run(c, 2 * c->poll_ns);
}

/* The final outcome; OUTCOMES if there is none in time. */
static inline enum outcome cluster_wait(struct cluster *c, const struct call *x) {
    return WITHIN(c, 60 * P, x->answers > 0) ? x->result.outcome : OUTCOMES;
}

/* ---- looking ---- */

static inline uint64_t event_of(const struct cluster *c, uint32_t node, uint32_t event) {
    return world_globals(c->w, node).events[event];
}

static inline uint64_t variable_of(const struct cluster *c, uint32_t node, uint32_t variable) {
    return world_globals(c->w, node).variables[variable];
}

static inline struct prim_status status_of(const struct cluster *c, uint32_t node) {
    struct prim_status s = {.parent = NO_NODE};
    if (world_up(c->w, node))
        prim_status(world_prim(c->w, node), &s);
    return s;
}

static inline bool heap_holds(const struct cluster *c, uint32_t node, uint32_t offset,
                              const char *text) {
    return memcmp(world_heap(c->w, node) + offset, text, strlen(text)) == 0;
}

static inline bool heap_empty(const struct cluster *c, uint32_t node) {
    const uint8_t *heap = world_heap(c->w, node);
    for (uint32_t i = 0; i < c->config.prim.limits.heap_bytes; i++)
        if (heap[i] != 0)
            return false;
    return true;
}

/* The first thing of the kind that the node heard, from `at` in the log on; NULL if none. */
static inline const struct heard *heard_from(const struct cluster *c, uint32_t at, uint32_t node,
                                             enum input_kind kind) {
    for (uint32_t i = at; i < c->log_count; i++)
        if (c->log[i].node == node && c->log[i].in.kind == kind)
            return &c->log[i];
    return NULL;
}

/* Counts nodes for which the condition on `n` holds. */
#define COUNT_NODES(c, condition)                    \
    ({                                               \
        uint32_t count_nodes = 0;                    \
        for (uint32_t n = 0; n < (c)->universe; n++) \
            count_nodes += (condition) ? 1 : 0;      \
        count_nodes;                                 \
    })

/* SPDX-License-Identifier: MIT */
/* A simulated cluster whose daemons are masters and consumers of remote queues.
 *
 * Every node consumes every queue; the root, or a compute node, is master of all of them. After each
 * step of a node its heap is looked at: a slot may change only when its message was consumed. */
#pragma once

#include "cluster.h"
#include "queue_daemons.h"

enum {
    STAGE_QUEUES = 3,
    STAGE_EVENT = 3,
    STAGE_VARIABLE = 2,
    STAGE_SLOTS_MAX = 64,
    STAGE_LIVES_MAX = 8
};

struct stage_node {
    struct queue_daemon daemon;
    struct queue_master masters[STAGE_QUEUES];
    struct queue_consumer consumers[STAGE_QUEUES];
    struct queue_consumer_result results[STAGE_QUEUES];
    uint64_t session[STAGE_QUEUES][STAGE_SLOTS_MAX]; /* what was in a slot when we last looked */
    uint64_t number[STAGE_QUEUES][STAGE_SLOTS_MAX];
    uint32_t fenced;
};

struct stage {
    struct cluster *c;
    uint32_t queues;
    uint32_t slots;
    uint32_t master; /* node */
    uint32_t lives;  /* of the master */
    struct queue_master_config config;
    struct nodeset set; /* that consumes */
    struct stage_node *nodes;
    struct queue_master_result results[STAGE_QUEUES];
    struct queue_master_result former[STAGE_LIVES_MAX][STAGE_QUEUES];
    void *memory[STAGE_LIVES_MAX];
    uint64_t *pace_ns; /* by node */
    uint32_t batch;
    uint64_t overwritten;
    uint64_t changes; /* of slots */
};

static inline struct queue_shape stage_shape(const struct stage *s, uint32_t queue) {
    struct queue_shape shape = s->config.queue.shape;
    shape.heap_offset += queue * queue_heap_bytes(&shape);
    shape.event += queue;
    shape.dequeued += queue;
    return shape;
}

/* ---- daemons ---- */

static inline void stage_make_masters(struct stage *s, struct stage_node *n) {
    ASSERT(s->lives < STAGE_LIVES_MAX);
    memcpy(s->former[s->lives], s->results, sizeof s->results);
    memset(s->results, 0, sizeof s->results);
    size_t bytes = s->queues * (queue_master_bytes(&s->config) + 64);
    s->memory[s->lives] = malloc(bytes);
    ASSERT(s->memory[s->lives] != NULL);
    struct arena a;
    arena_init(&a, s->memory[s->lives++], bytes);
    for (uint32_t i = 0; i < s->queues; i++) {
        struct queue_master_config c = s->config;
        c.queue.shape = stage_shape(s, i);
        c.queue.tag = queue_daemon_tag(i);
        c.queue.timer = queue_daemon_timer(i, QUEUE_TIMER_MASTER);
        c.life = (uint8_t)s->lives;
        queue_master_init(&n->masters[i], &c, &s->results[i], &a);
        n->daemon.masters[i] = &n->masters[i];
    }
    n->daemon.master_count = s->queues;
}

static inline void stage_step(void *self, const struct input *in, struct effects *out);

/* A cluster knows no context but its own: the stage is found through the one that is on. */
static struct stage *stage_on;

static inline struct machine stage_daemon(void *context, uint32_t node, struct globals globals) {
    struct cluster *c = context;
    struct stage *s = stage_on;
    struct stage_node *n = &s->nodes[node];
    listener_new(c, node, globals);
    n->daemon = (struct queue_daemon){0};
    memset(n->session, 0, sizeof n->session);
    memset(n->number, 0, sizeof n->number);
    if (node == s->master)
        stage_make_masters(s, n);
    if (!nodeset_has(&s->set, node))
        return (struct machine){.self = n, .step = stage_step};
    for (uint32_t i = 0; i < s->queues; i++) {
        struct queue_consumer_config k = {
            .reader = {.shape = stage_shape(s, i),
                       .heap = world_heap(c->w, node),
                       .timer = queue_daemon_timer(i, QUEUE_TIMER_READER)},
            .batch = s->batch,
            .pace_ns = s->pace_ns[node]};
        queue_consumer_init(&n->consumers[i], &k, &n->results[i]);
        n->daemon.consumers[i] = &n->consumers[i];
    }
    n->daemon.consumer_count = s->queues;
    return (struct machine){.self = n, .step = stage_step};
}

static inline void stage_step(void *self, const struct input *in, struct effects *out) {
    struct stage_node *n = self;
    if (in->kind == INPUT_NODES)
        cluster_nodes(stage_on->c, &in->nodes);
    n->fenced += in->kind == INPUT_FENCED;
    queue_daemon_step(&n->daemon, in, out);
}

/* ---- the heap is watched ---- */

static inline void stage_look_at(struct stage *s, uint32_t node, uint32_t queue) {
    struct stage_node *n = &s->nodes[node];
    struct queue_shape shape = stage_shape(s, queue);
    const uint8_t *ring = world_heap(s->c->w, node) + shape.heap_offset;
    const struct queue_reader *r = &n->consumers[queue].reader;
    for (uint32_t i = 0; i < shape.slots; i++) {
        struct queue_header h = queue_header_load(ring + (size_t)i * shape.slot_bytes);
        uint64_t *session = &n->session[queue][i];
        uint64_t *number = &n->number[queue][i];
        if (h.session == *session && h.number == *number)
            continue;
        s->changes++;
        bool unread = *session != 0 && r->session == *session && *number > r->done;
        if (unread && h.session != 0) /* 0: the node was fenced */
            s->overwritten++;
        *session = h.session;
        *number = h.number;
    }
}

static inline void stage_look(struct cluster *c, uint32_t node) {
    struct stage *s = stage_on;
    (void)c;
    for (uint32_t i = 0; i < s->queues && nodeset_has(&s->set, node) && world_up(c->w, node); i++)
        stage_look_at(s, node, i);
}

/* ---- beginning and end ---- */

/* 16 slots, 48 bytes each, one queue, the root is the master, all compute nodes consume. Anything may
 * be changed before it is powered. */
static inline struct stage *stage_new(uint32_t nodes) {
    struct stage *s = calloc(1, sizeof *s);
    ASSERT(s != NULL);
    s->c = cluster_new(nodes, SHAPE_KARY, 4);
    s->c->config.daemon = stage_daemon;
    s->c->look = stage_look;
    s->c->config.prim.limits.heap_bytes = 64 * 1024;
    s->c->config.prim.limits.body_bytes = 512;
    s->c->config.prim.limits.outstanding = 16;
    s->queues = 1;
    s->slots = 16;
    s->master = s->c->root;
    s->nodes = calloc(s->c->universe, sizeof *s->nodes);
    s->pace_ns = calloc(s->c->universe, sizeof *s->pace_ns);
    ASSERT(s->nodes != NULL && s->pace_ns != NULL);
    set_of(s->c, &s->set, "");
    nodeset_add_range(&s->set, 0, nodes - 1);
    queue_config_times(&s->config.queue, P);
    s->config.queue.shape =
        (struct queue_shape){.slot_bytes = 48, .event = STAGE_EVENT, .dequeued = STAGE_VARIABLE};
    s->config.queue.backlog = 64;
    s->config.wait_consumed = true;
    s->config.nodes = &s->set;
    return s;
}

static inline struct stage *stage_start(uint32_t nodes, uint64_t messages, enum queue_wait wait) {
    struct stage *s = stage_new(nodes);
    s->config.messages = messages;
    s->config.queue.wait = wait;
    return s;
}

static inline bool stage_power(struct stage *s) {
    stage_on = s;
    struct cluster *c = s->c;
    s->config.queue.shape.slots = s->slots;
    s->config.queue.universe = c->universe;
    s->config.queue.body_bytes = c->config.prim.limits.body_bytes;
    s->config.at_root = s->master == c->root;
    return cluster_power(c, c->root);
}

static inline bool stage_finished(const struct stage *s) {
    for (uint32_t i = 0; i < s->queues; i++)
        if (!s->results[i].finished)
            return false;
    return true;
}

static inline void stage_free(struct stage *s) {
    for (uint32_t i = 0; i < s->lives; i++)
        free(s->memory[i]);
    free(s->set.storage);
    cluster_free(s->c);
    free(s->nodes);
    free(s->pace_ns);
    free(s);
    stage_on = NULL;
}

/* ---- looking ---- */

static inline const struct queue_consumer_result *stage_result(const struct stage *s, uint32_t node,
                                                               uint32_t queue) {
    return &s->nodes[node].results[queue];
}

/* Whatever happens to nodes, this must hold: right contents, in order, nothing overwritten. */
static inline bool stage_sound(const struct stage *s) {
    bool sound = CHECK_EQ(s->overwritten, 0);
    for (uint32_t n = 0; n < s->c->universe; n++)
        for (uint32_t i = 0; i < s->queues; i++) {
            const struct queue_consumer_result *r = stage_result(s, n, i);
            bool right = CHECK_EQ(r->wrong, 0) && CHECK_EQ(r->misplaced, 0) &&
                         CHECK_EQ(r->fault, QUEUE_FAULT_NONE);
            if (!right)
                printf("#   node %u queue %u\n", n, i);
            sound = sound && right;
        }
    return sound;
}

/* The node has consumed all of one master's messages, each once. */
static inline bool stage_all(const struct stage *s, uint32_t node) {
    bool all = true;
    for (uint32_t i = 0; i < s->queues; i++) {
        const struct queue_consumer_result *r = stage_result(s, node, i);
        all = CHECK_EQ(r->consumed, s->config.messages) && CHECK_EQ(r->last, s->config.messages) &&
              CHECK_EQ(r->begun, 1) && CHECK_EQ(r->first, 1) && all;
    }
    if (!all)
        printf("#   node %u\n", node);
    return all;
}

/* All nodes but one have everything, once. */
static inline void check_all_but(struct stage *s, uint32_t node) {
    stage_sound(s);
    NODESET_EACH (n, &s->set)
        if (n != node)
            stage_all(s, n);
}

static inline bool finished(struct stage *s) {
    return CHECK(WITHIN(s->c, 10000 * P, stage_finished(s)));
}

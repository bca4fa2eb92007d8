/* SPDX-License-Identifier: MIT */
/* Building a world, booting its nodes, and letting time pass: see world.h. */
#include "sim/world.h"

#include <stdlib.h>

#include "base/units.h"
#include "sim/carry.h"
#include "sim/inside.h"

/* Room for the effects of one step, and for one recorded input. Untouched pages cost nothing. */
enum { EFFECTS_MAX = 65536 };
#define EFFECT_BYTES_MAX (64 * MIB)
#define RECORD_BYTES_MAX (9 * MIB)

/* Streams of randomness. */
enum { STREAM_JITTER = 1, STREAM_FAULTS, STREAM_LIVES };

static int reserve(struct world *w) {
    const struct world_config *c = &w->config;
    const struct limits *limits = &c->prim.limits;
    bool prim = c->lower == NULL;
    size_t node_bytes = prim ? prim_bytes(&c->prim, false) : c->lower_bytes;
    size_t seat_bytes = prim ? prim_bytes(&c->prim, true) : c->lower_bytes;
    uint32_t universe = limits_universe(limits);
    if (region_init(&w->node_array, 1, w->node_count * sizeof(struct node), true) < 0 ||
        region_init(&w->arenas, limits->nodes, node_bytes, false) < 0 ||
        region_init(&w->seats, limits->roots, seat_bytes, false) < 0 ||
        region_init(&w->heaps, universe, limits->heap_bytes, false) < 0 ||
        region_init(&w->effect_list, 1, EFFECTS_MAX * sizeof(struct effect), false) < 0 ||
        region_init(&w->effect_bytes, 1, EFFECT_BYTES_MAX, false) < 0)
        return -1;
    return region_init(&w->record, 1, RECORD_BYTES_MAX, false);
}

static void start_random(struct world *w) {
    struct random root;
    random_init(&root, w->config.seed);
    w->jitter = random_fork(&root, STREAM_JITTER);
    w->faults = random_fork(&root, STREAM_FAULTS);
    w->lives = random_fork(&root, STREAM_LIVES);
    hash_init(&w->hash, 0);
}

struct world *world_new(const struct world_config *config) {
    struct world *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->config = *config;
    w->universe = limits_universe(&config->prim.limits);
    w->first_mover = w->universe + (config->launchers ? config->prim.limits.nodes : 0);
    w->first_client = w->first_mover + (config->movers ? config->prim.limits.nodes : 0);
    w->node_count = w->first_client + config->clients;
    w->acting = config->prim.limits.nodes;
    clock_init(&w->clock);
    pool_init(&w->pool);
    cores_init(&w->cores, config->link.cores);
    start_random(w);
    if (reserve(w) < 0) {
        w->node_count = 0;
        world_free(w);
        return NULL;
    }
    w->nodes = (struct node *)(void *)w->node_array.at;
    for (uint32_t i = 0; i < w->node_count; i++)
        node_init(&w->nodes[i], i, i < w->universe ? region_at(&w->heaps, i) : NULL);
    effects_init(&w->effects, (struct effect *)(void *)w->effect_list.at, EFFECTS_MAX,
                 w->effect_bytes.at, EFFECT_BYTES_MAX);
    return w;
}

void world_free(struct world *w) {
    if (w == NULL)
        return;
    for (uint32_t i = 0; i < w->node_count; i++)
        node_power_off(w, &w->nodes[i]);
    struct event *e;
    while ((e = clock_pop(&w->clock)) != NULL)
        event_drop(w, e);
    for (uint32_t i = 0; i < w->node_count; i++)
        node_fini(&w->nodes[i]);
    clock_fini(&w->clock);
    pool_fini(&w->pool);
    region_fini(&w->node_array);
    region_fini(&w->arenas);
    region_fini(&w->seats);
    region_fini(&w->heaps);
    region_fini(&w->effect_list);
    region_fini(&w->effect_bytes);
    region_fini(&w->record);
    free(w);
}

static const struct node *at(const struct world *w, uint32_t node) {
    ASSERT(node < w->node_count);
    return &w->nodes[node];
}

uint32_t world_launcher(const struct world *w, uint32_t node) {
    ASSERT(w->config.launchers && node < w->config.prim.limits.nodes);
    return w->universe + node;
}

uint32_t world_mover(const struct world *w, uint32_t node) {
    ASSERT(w->config.movers && node < w->config.prim.limits.nodes);
    return w->first_mover + node;
}

uint32_t world_client(const struct world *w, uint32_t client) {
    ASSERT(client < w->config.clients);
    return w->first_client + client;
}

/* Former lives of the root have logged this. */
static void replay(struct world *w, struct node *n) {
    struct input in = {.kind = INPUT_REPLAY, .now = w->now};
    uint32_t life = n->boots;
    for (uint32_t at = 0; journal_next(&n->journal, &at, &in.replay);) {
        carry_input(w, n, LAYER_DAEMON, &in, 0);
        if (!n->up || n->boots != life)
            return; /* whoever watches has cut it off */
    }
    in.replay = (struct input_replay){.key = 0};
    carry_input(w, n, LAYER_DAEMON, &in, 0);
}

void world_boot(struct world *w, uint32_t node, bool root) {
    ASSERT(node < w->node_count);
    struct node *n = &w->nodes[node];
    ASSERT(!root || (node >= w->config.prim.limits.nodes && node < w->universe));
    if (root)
        w->acting = node;
    node_power_on(w, n);
    struct input in = {.kind = INPUT_BOOT, .now = w->now};
    in.boot =
        (struct input_boot){.node = node,
                            .boots = n->boots,
                            .kept = n->persisted,
                            .root = root,
                            .epoch = root ? ++w->epoch : 0, /* durable wherever seats keep it */
                            .random_seed = random_u64(&w->lives),
                            .stowed = bytes_of(n->stowed, n->stowed_len)};
    n->busy_until = w->now;
    carry_input(w, n, LAYER_PRIM, &in, 0);
    if (root && w->node_count > w->universe)
        replay(w, n);
    cores_flush(w, n);
}

/* Asks for the memory that the next events will need while this one is carried out: with thousands
 * of nodes, waiting for memory is most of the work. */
static void fetch_frame(const struct event *e) {
    if (e->kind != EVENT_WIRE && e->kind != EVENT_FRAME)
        return;
    const struct frame *f = CONTAINER_OF(e, struct frame, event);
    __builtin_prefetch(f->to);
    __builtin_prefetch(&f->to->gate);
    __builtin_prefetch(f->body);
}

static void fetch_ahead(const struct world *w) {
    const struct event *second;
    const struct event *first = clock_hint(&w->clock, &second);
    if (second != NULL) {
        const struct node *n = &w->nodes[second->node];
        __builtin_prefetch(n);
        __builtin_prefetch(&n->stack);
        __builtin_prefetch(&n->links);
        fetch_frame(second);
    }
    if (first != NULL) {
        const struct node *n = &w->nodes[first->node];
        __builtin_prefetch(n->stack.prim.self);
        __builtin_prefetch(n->ends);
        __builtin_prefetch(n->timers.slots);
        __builtin_prefetch(n->inbox.next);
    }
}

bool world_step(struct world *w) {
    uint64_t next;
    if (!clock_peek(&w->clock, &next))
        return false;
    ASSERT(next >= w->now);
    w->now = next;
    w->counts.events++;
    struct event *e = clock_pop(&w->clock);
    fetch_ahead(w);
    event_happen(w, e);
    return true;
}

void world_run_until(struct world *w, uint64_t time) {
    uint64_t next;
    while (clock_peek(&w->clock, &next) && next <= time)
        world_step(w);
    if (w->now < time)
        w->now = time;
}

bool world_next(const struct world *w, uint64_t *ret_at) {
    return clock_peek(&w->clock, ret_at);
}

void world_poke(struct world *w, uint32_t body, uint64_t at) {
    ASSERT(body < w->node_count);
    if (!w->nodes[body].up)
        return;
    struct notice *n = notice_new(w, EVENT_NEWS, body, w->nodes[body].boots);
    clock_push(&w->clock, &n->event, at > w->now ? at : w->now);
}

uint64_t world_now(const struct world *w) {
    return w->now;
}

uint64_t world_hash(const struct world *w) {
    return hash_done(&w->hash);
}

const struct world_counts *world_counts(const struct world *w) {
    return &w->counts;
}

/* ---- what a client could see ---- */

bool world_up(const struct world *w, uint32_t node) {
    return at(w, node)->up;
}

bool world_paused(const struct world *w, uint32_t node) {
    return at(w, node)->paused_until > w->now;
}

struct globals world_globals(const struct world *w, uint32_t node) {
    return at(w, node)->globals;
}

const uint8_t *world_heap(const struct world *w, uint32_t node) {
    return at(w, node)->up ? at(w, node)->heap : NULL;
}

uint8_t *world_buffer(struct world *w, uint32_t node, uint32_t buffer, uint64_t bytes) {
    ASSERT(at(w, node)->up);
    struct node *n = &w->nodes[node];
    struct buffer *b = node_buffer(n, buffer);
    if (b == NULL)
        b = node_buffer_open(n, buffer, bytes, false);
    ASSERT(b->bytes >= bytes);
    return b->at;
}

uint32_t world_boots(const struct world *w, uint32_t node) {
    return at(w, node)->boots;
}

uint32_t world_buffers(const struct world *w, uint32_t node) {
    return at(w, node)->buffer_count;
}

uint32_t world_links(const struct world *w, uint32_t node) {
    return idtable_count(&at(w, node)->links);
}

const struct prim *world_prim(const struct world *w, uint32_t node) {
    return at(w, node)->prim;
}

const struct journal *world_journal(const struct world *w, uint32_t node) {
    return &at(w, node)->journal;
}

void world_record(struct world *w, uint32_t node, void (*sink)(void *context, struct bytes record),
                  void *context) {
    struct node *n = &w->nodes[at(w, node)->number];
    n->sink = sink;
    n->sink_context = context;
}

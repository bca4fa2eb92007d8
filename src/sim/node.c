/* SPDX-License-Identifier: MIT */
/* Lives of a node, its links and buffers: see node.h. */
#include "sim/node.h"

#include <stdlib.h>
#include <string.h>

#include "sim/inside.h"

static void no_step(void *self, const struct input *in, struct effects *out) {
    (void)self;
    (void)in;
    (void)out;
}

void node_init(struct node *n, uint32_t number, uint8_t *heap) {
    *n = (struct node){.number = number, .heap = heap};
    n->wake.kind = EVENT_WAKE;
    n->wake.node = number;
    n->wake.life = ANY_LIFE;
    list_init(&n->wake.place);
    list_init(&n->inbox);
    list_init(&n->ready);
    list_init(&n->unsent);
    idtable_init(&n->links, 0, NULL);
}

/* ---- lives ---- */

static void make_lower(struct world *w, struct node *n) {
    const struct world_config *c = &w->config;
    if (n->number >= w->universe) {
        n->stack.prim = (struct machine){.step = no_step};
        return;
    }
    uint32_t nodes = c->prim.limits.nodes;
    bool seat = n->number >= nodes;
    struct region *region = seat ? &w->seats : &w->arenas;
    uint32_t part = seat ? n->number - nodes : n->number;
    if (n->boots > 1)
        region_renew(region, part);
    struct arena a;
    arena_init(&a, region_at(region, part), region->stride);
    if (c->lower != NULL) {
        n->stack.prim = c->lower(c->context, n->number, &a);
        if (c->lower_globals != NULL)
            n->globals = c->lower_globals(c->context, n->number);
        return;
    }
    n->prim = prim_new(&c->prim, seat, &a);
    n->stack.prim = prim_machine(n->prim);
    n->globals = prim_globals(n->prim);
}

void node_power_on(struct world *w, struct node *n) {
    ASSERT(!n->up);
    n->up = true;
    n->boots++;
    if (n->heap_touched > 0)
        memset(n->heap, 0, n->heap_touched);
    n->heap_touched = 0;
    make_lower(w, n);
    if (w->config.daemon != NULL)
        n->stack.daemon = w->config.daemon(w->config.context, n->number, n->globals);
    else
        n->stack.daemon = (struct machine){.step = no_step};
}

static void drop_links(struct world *w, struct node *n) {
    IDTABLE_EACH (i, &n->links)
        link_abandon(w, n->ends[i]);
    free(n->links.slots);
    free(n->ends);
    idtable_init(&n->links, 0, NULL);
    n->ends = NULL;
}

void node_power_off(struct world *w, struct node *n) {
    if (!n->up)
        return;
    n->up = false;
    drop_links(w, n);
    timers_fini(w, &n->timers);
    clock_remove(&w->clock, &n->wake);
    cores_quit(w, n);
    struct list *place;
    while ((place = list_pop_front(&n->inbox)) != NULL)
        event_drop(w, CONTAINER_OF(place, struct event, place));
    while (n->buffer_count > 0)
        node_buffer_close(n, n->buffers[0].number);
    free(n->buffers);
    n->buffers = NULL;
    n->buffer_cap = 0;
    n->busy_until = n->paused_until = 0;
    memset(n->egress_at, 0, sizeof n->egress_at);
    memset(n->ingress_at, 0, sizeof n->ingress_at);
    n->prim = NULL;
    n->globals = (struct globals){0};
    n->stack = (struct stack){0};
    if (w->config.died != NULL)
        w->config.died(w->config.context, n->number);
}

void node_fini(struct node *n) {
    journal_fini(&n->journal);
    free(n->stowed);
}

void node_stow(struct node *n, struct bytes bytes) {
    free(n->stowed);
    n->stowed = malloc(bytes.len);
    ASSERT(n->stowed != NULL || bytes.len == 0);
    if (bytes.len > 0)
        memcpy(n->stowed, bytes.at, bytes.len);
    n->stowed_len = bytes.len;
}

/* ---- the processor ---- */

bool node_idle(const struct world *w, const struct node *n) {
    return n->busy_until <= w->now && n->paused_until <= w->now && list_empty(&n->inbox);
}

void node_rouse(struct world *w, struct node *n) {
    if (w->config.link.cores > 0) {
        cores_rouse(w, n);
        return;
    }
    if (list_empty(&n->inbox) || n->wake.index != 0)
        return;
    uint64_t at = n->busy_until > n->paused_until ? n->busy_until : n->paused_until;
    clock_push(&w->clock, &n->wake, at > w->now ? at : w->now);
}

uint64_t node_slowness(const struct world *w, const struct node *n) {
    if (w->now >= w->slow_until)
        return 1; /* the rule: do not even look at the node */
    return w->now < n->slow_until ? n->slow_factor : 1;
}

/* ---- links ---- */

static void grow_links(struct node *n) {
    uint32_t cap = n->links.cap ? n->links.cap * 2 : 4;
    n->links.slots = realloc(n->links.slots, idtable_bytes(cap));
    n->ends = realloc(n->ends, cap * sizeof(struct end *));
    ASSERT(n->links.slots != NULL && n->ends != NULL);
    n->links.cap = cap;
}

void node_attach(struct node *n, struct end *e) {
    if (idtable_count(&n->links) == n->links.cap)
        grow_links(n);
    uint32_t index;
    int r = idtable_alloc(&n->links, &e->number, &index);
    ASSERT(r == 0);
    n->ends[index] = e;
    end_link(e)->refs++;
}

void node_detach(struct world *w, struct end *e) {
    ASSERT(e->number != 0);
    struct node *n = &w->nodes[e->node];
    link_drop_unsent(w, e);
    sent_release(w, e);
    sent_release(w, end_peer(e));
    int r = idtable_free(&n->links, e->number);
    ASSERT(r == 0);
    n->ends[idtable_index_of(e->number)] = NULL;
    e->number = 0;
    link_unref(w, end_link(e));
}

struct end *node_end(const struct node *n, uint32_t number) {
    uint32_t index = idtable_index_of(number);
    if (number == 0 || index >= n->links.used || n->ends[index] == NULL)
        return NULL;
    return n->ends[index]->number == number ? n->ends[index] : NULL;
}

struct end *node_pick(const struct node *n, uint32_t pick) {
    if (idtable_count(&n->links) == 0)
        return NULL;
    uint32_t left = pick % idtable_count(&n->links);
    IDTABLE_EACH (i, &n->links)
        if (left-- == 0)
            return n->ends[i];
    return NULL;
}

/* ---- buffers: a handful, so a plain array ---- */

struct buffer *node_buffer(const struct node *n, uint32_t number) {
    for (uint32_t i = 0; i < n->buffer_count; i++)
        if (n->buffers[i].number == number)
            return &n->buffers[i];
    return NULL;
}

struct buffer *node_buffer_open(struct node *n, uint32_t number, uint64_t bytes, bool stamps) {
    ASSERT(node_buffer(n, number) == NULL);
    if (n->buffer_count == n->buffer_cap) {
        n->buffer_cap = n->buffer_cap ? n->buffer_cap * 2 : 4;
        n->buffers = realloc(n->buffers, n->buffer_cap * sizeof *n->buffers);
        ASSERT(n->buffers != NULL);
    }
    uint8_t *at = stamps ? NULL : calloc(1, bytes ? bytes : 1);
    ASSERT(at != NULL || stamps);
    n->buffers[n->buffer_count] = (struct buffer){.number = number, .bytes = bytes, .at = at};
    return &n->buffers[n->buffer_count++];
}

void node_buffer_close(struct node *n, uint32_t number) {
    struct buffer *b = node_buffer(n, number);
    ASSERT(b != NULL);
    free(b->at);
    free(b->stamps);
    *b = n->buffers[--n->buffer_count];
}

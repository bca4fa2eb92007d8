/* SPDX-License-Identifier: MIT */
/* Every fault the world can have: see world.h.
 *
 * A fault only sets the stage; what follows from it (lost frames, links that end, gaps at the gate)
 * comes about in the ordinary way. */
#include <string.h>

#include "sim/inside.h"

static struct node *find(struct world *w, uint32_t node) {
    ASSERT(node < w->node_count);
    return &w->nodes[node];
}

static void extend(uint64_t *until, uint64_t to) {
    if (*until < to)
        *until = to;
}

void world_crash(struct world *w, uint32_t node) {
    node_power_off(w, find(w, node));
}

void world_pause(struct world *w, uint32_t node, uint64_t until) {
    struct node *n = find(w, node);
    if (n->up)
        extend(&n->paused_until, until);
}

void world_resume(struct world *w, uint32_t node) {
    struct node *n = find(w, node);
    n->paused_until = 0;
    clock_remove(&w->clock, &n->wake);
    node_rouse(w, n);
}

void world_reset(struct world *w, uint32_t node, uint32_t pick) {
    struct end *e = node_pick(find(w, node), pick);
    if (e != NULL)
        link_break(w, end_link(e));
}

void world_mute(struct world *w, uint32_t node, uint32_t pick, bool outgoing, uint64_t until) {
    struct end *e = node_pick(find(w, node), pick);
    if (e == NULL || end_link(e)->purpose == PURPOSE_LAUNCHER ||
        end_link(e)->purpose == PURPOSE_MOVER)
        return; /* inside a node nothing gets lost */
    extend(outgoing ? &end_peer(e)->mute_until : &e->mute_until, until);
}

void world_duplicate(struct world *w, uint32_t node, uint64_t until) {
    extend(&find(w, node)->duplicate_until, until);
}

void world_slow(struct world *w, uint32_t node, uint32_t factor, uint64_t until) {
    ASSERT(factor > 0);
    struct node *n = find(w, node);
    n->slow_factor = factor;
    n->slow_until = until;
    extend(&w->slow_until, until);
}

void world_fill_disk(struct world *w, uint32_t node, uint64_t until) {
    extend(&find(w, node)->full_until, until);
}

/* One frame of as many of the bytes as its header asks for. Returns how many it took. */
static size_t toss(struct world *w, struct end *to, const uint8_t *bytes, size_t len) {
    size_t head = len < HEADER_BYTES ? len : HEADER_BYTES;
    size_t rest = 0;
    if (head == HEADER_BYTES) {
        struct header h;
        header_decode(&h, bytes);
        rest = h.length < len - head ? h.length : len - head;
    }
    struct body *body = body_new(w, rest);
    memcpy(body->bytes, bytes + head, rest);
    struct frame *f = frame_new(w, to, body);
    body_free(w, body);
    memcpy(f->header, bytes, head);
    f->header_len = (uint8_t)head;
    f->event.kind = EVENT_FRAME;
    clock_push(&w->clock, &f->event, w->now); /* behind what has come before */
    return head + rest;
}

void world_garbage(struct world *w, uint32_t node, uint32_t pick, const uint8_t *bytes,
                   size_t len) {
    struct end *e = node_pick(find(w, node), pick);
    if (e == NULL)
        return;
    while (len > 0) {
        size_t taken = toss(w, e, bytes, len);
        bytes += taken;
        len -= taken;
    }
}

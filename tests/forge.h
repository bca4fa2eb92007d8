/* SPDX-License-Identifier: MIT */
/* For tests that need more than cluster.h: a look inside the machines, links that lose what they
 * should not, and nodes that say what their own machine never would.
 *
 * A forged message leaves its sender as its own messages do, behind whatever it has sent before, so
 * it passes the gate: what is tested is what the receiver makes of it. */
#pragma once

#include "prim/internal.h"
#include "sim/inside.h"
#include "cluster.h"

/* For writing too: a test may age a counter by some years. */
static inline struct prim *prim_of(const struct cluster *c, uint32_t node) {
    ASSERT(world_up(c->w, node));
    return c->w->nodes[node].prim;
}

/* The node's end of its link to `peer`, which is `role` to it; NULL if there is none. */
static inline struct end *end_at(const struct cluster *c, uint32_t node, uint32_t peer,
                                 enum role role) {
    const struct node *n = &c->w->nodes[node];
    for (uint32_t i = 0; i < n->links.used; i++) {
        struct end *e = n->ends[i];
        if (e != NULL && e->role == role && end_peer(e)->node == peer)
            return e;
    }
    return NULL;
}

/* For so long, nothing that `peer` sends the node arrives. */
static inline void deafen(struct cluster *c, uint32_t node, uint32_t peer, enum role role,
                          uint64_t ns) {
    struct end *e = end_at(c, node, peer, role);
    if (CHECK(e != NULL))
        e->mute_until = world_now(c->w) + ns;
}

static inline void break_link(struct cluster *c, uint32_t node, uint32_t peer, enum role role) {
    struct end *e = end_at(c, node, peer, role);
    if (CHECK(e != NULL))
        link_break(c->w, end_link(e));
}

/* `from`, which is `role` to `to`, says this. */
static inline void forge_bytes_soon(struct cluster *c, uint32_t from, uint32_t to, enum role role,
                                    uint16_t type, struct bytes bytes) {
    struct end *e = end_at(c, to, from, role);
    if (!CHECK(e != NULL))
        return;
    struct body *body = body_new(c->w, bytes.len);
    if (bytes.len > 0)
        memcpy(body->bytes, bytes.at, bytes.len);
    link_send(c->w, end_peer(e), type, prim_of(c, to)->epoch, body, world_now(c->w));
    body_free(c->w, body);
}

static inline void forge_soon(struct cluster *c, uint32_t from, uint32_t to, enum role role,
                              uint16_t type, const union message *m) {
    uint8_t bytes[2048];
    long len = message_encode(type, m, room_of(bytes, sizeof bytes));
    ASSERT(len >= 0);
    forge_bytes_soon(c, from, to, role, type, bytes_of(bytes, (size_t)len));
}

/* The same; it has arrived when we return. */
static inline void forge_bytes(struct cluster *c, uint32_t from, uint32_t to, enum role role,
                               uint16_t type, struct bytes bytes) {
    forge_bytes_soon(c, from, to, role, type, bytes);
    cluster_run(c, 100 * NS_PER_US);
}

static inline void forge(struct cluster *c, uint32_t from, uint32_t to, enum role role,
                         uint16_t type, const union message *m) {
    forge_soon(c, from, to, role, type, m);
    cluster_run(c, 100 * NS_PER_US);
}

/* The first operation that the root has given a place in the order and not forgotten; or NULL. */
static inline const struct op *first_in_flight(const struct cluster *c) {
    struct list *first = list_first(&prim_of(c, c->root)->order->flight);
    return first == NULL ? NULL : CONTAINER_OF(first, struct op, at);
}

static inline bool deciding(const struct cluster *c) {
    const struct op *op = first_in_flight(c);
    return op != NULL && op->state == OP_DECIDED;
}

static inline uint32_t fenced_count(const struct cluster *c) {
    return COUNT_NODES(c, c->listeners[n].count[INPUT_FENCED] > 0);
}

static inline bool all_attached(const struct cluster *c) {
    return COUNT_NODES(c, status_of(c, n).member && status_of(c, n).attached) == c->universe;
}

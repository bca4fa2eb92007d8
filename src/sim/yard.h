/* SPDX-License-Identifier: MIT */
/* A yard: file movers in the simulated world, each with its depot, and whoever gives them orders.
 *
 * The movers are the very machines that run on real nodes. A host stands for the node's manager: it keeps a link
 * to its mover, hands orders to it, again to one that was started again, and hears how it went. A
 * source may be a node, or a client: a command that has files to give; one that is started again offers nothing.
 * Without hosts everybody gets orders as a source does, without a link, and nobody hears of results. With
 * primitives among the nodes whoever has the yard makes the hosts and the one at the root, which gets
 * the orders: for measurements. */
#pragma once

#include "fm/mover.h"
#include "sim/depot.h"
#include "sim/world.h"

struct yard;

struct yard_config {
    uint32_t nodes, clients;
    struct link_model link;
    uint64_t seed;
    bool hash;
    bool hosts;
    struct mover_config mover;     /* of a node; `self` and `universe` are filled in */
    struct sim_depot_config depot; /* `world`, `body`, `stock` and `seed` are, too */
    uint64_t skew_ns;              /* orders come to their nodes within this time */
    uint32_t client_takers;        /* of a client's mover; 0: as of a node's */
    /* Switches, as in struct world_config. */
    const uint32_t *switches;
    uint64_t between_bytes_per_s;
    /* If not NULL: primitives on all nodes, below hosts that `host` makes; the root's is that of node `nodes`. */
    const struct prim_config *prim;
    struct machine (*host)(void *context, uint32_t who);
    /* After every step of anybody. May be NULL. */
    void (*observe)(void *context, struct yard *y, uint32_t who);
    void *context;
};

/* One transfer. */
struct shipment {
    uint64_t transfer; /* given by the yard */
    const struct cargo *cargo;
    uint32_t source; /* a node, or NO_NODE: `client` */
    uint32_t client;
    uint8_t shape;
    uint32_t arity;
    uint32_t slots;
    struct nodeset set; /* copied */
    /* Of all nodes, as the order tells them, and the source's (rm/switches.h); NULL: it does not. Borrowed. */
    const uint32_t *switches;
    uint32_t source_switch;
    uint64_t at; /* when it was ordered */
    bool over;   /* ENOUGH was ordered */
    bool keep;
    uint8_t *state; /* enum shipment_state, of each node */
    int32_t *error;
    bool silent;    /* somebody failed without a reason */
    uint8_t *order; /* encoded: for those who receive, and for the source */
    uint8_t *offer;
    size_t order_len, offer_len;
};

enum shipment_state { SHIPMENT_UNKNOWN, SHIPMENT_HERE, SHIPMENT_FAILED };

/* Everything is off. */
struct yard *yard_new(const struct yard_config *c);
void yard_free(struct yard *y);

/* Put cargoes in before anything else happens. */
struct stock *yard_stock(struct yard *y);

struct world *yard_world(const struct yard *y);
uint32_t yard_host(const struct yard *y, uint32_t node);
uint32_t yard_mover(const struct yard *y, uint32_t node);
uint32_t yard_client(const struct yard *y, uint32_t client);
/* Of a mover's or client's body; NULL when it is off. */
const struct mover *yard_machine(const struct yard *y, uint32_t body);
struct sim_depot *yard_depot(const struct yard *y, uint32_t body);

void yard_boot(struct yard *y, uint32_t who);
void yard_boot_all(struct yard *y);
/* `keep`: what a mover's depot has got stays. */
void yard_crash(struct yard *y, uint32_t who, bool keep);

/* Orders a transfer as described; those who take part hear of it soon. Returns its index. */
uint32_t yard_ship(struct yard *y, const struct shipment *s);
void yard_enough(struct yard *y, uint32_t index, bool keep);
const struct shipment *yard_shipment(const struct yard *y, uint32_t index);
uint32_t yard_shipments(const struct yard *y);
/* Whether all who receive it have said how it went. */
bool yard_settled(const struct yard *y, uint32_t index);
/* The number by which its source knows what it gives. */
uint64_t yard_offer(const struct yard *y, uint32_t index);

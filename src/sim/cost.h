/* SPDX-License-Identifier: MIT */
/* What an operation costs: predicted from the shape of the tree and the links.
 *
 * A round is a cast down the tree and combined answers up. A node handles one message after the
 * other, sends to one child after the other, and its network interface takes time for every byte.
 * From that the time of a round follows by arithmetic, since subtrees of one size behave alike.
 * What the arithmetic leaves out is a constant and a term for every level, fitted to simulations of
 * small clusters with the real protocol (calibrate.h). Whole numbers only: the same on every
 * machine. */
#pragma once

#include <stdint.h>

#include "prim/tree.h"
#include "sim/world.h"

enum cost_kind {
    COST_XFER,    /* XFER-AND-SIGNAL */
    COST_COMPARE, /* COMPARE-AND-WRITE that writes nothing */
    COST_WRITE,   /* COMPARE-AND-WRITE whose condition holds and that writes */
    COST_WAVE,    /* a heartbeat, to all nodes */
    COST_BULK,    /* XFER-AND-SIGNAL of a large block */
    COST_KINDS
};

/* Added to what the arithmetic says. */
struct cost_fit {
    int64_t constant_ns;
    int64_t level_ns;
};

struct cost {
    struct tree tree; /* its node count may be changed at any time */
    struct link_model link;
    uint32_t chunk_bytes; /* of a bulk transfer */
    uint32_t slots;       /* chunks that a receiver grants ahead */
    struct cost_fit fit[COST_KINDS];
};

/* Without any fit. */
void cost_init(struct cost *c, const struct tree *tree, const struct link_model *link);

/* From the root's request to its completion, for `count` neighbouring nodes of the tree's. */
uint64_t cost_ns(const struct cost *c, enum cost_kind kind, uint64_t bytes, uint32_t count);

/* The same for a gather whose replies are of so many bytes each: a round and the bytes. */
uint64_t cost_gather_ns(const struct cost *c, uint64_t bytes, uint32_t count);

/* The last part of it: from the moment the operation is decided. */
uint64_t cost_apply_ns(const struct cost *c, enum cost_kind kind, uint32_t count);

/* How much later another operation can follow the one before, when many are asked for at once. */
uint64_t cost_gap_ns(const struct cost *c, enum cost_kind kind, uint64_t bytes, uint32_t count);

/* One way between the root and a node `levels` below it, for a small message. */
uint64_t cost_path_ns(const struct cost *c, uint32_t levels);

/* Levels of the tree that an operation of this kind goes through. */
uint32_t cost_levels(const struct cost *c, enum cost_kind kind);

/* Levels below the root of one node. */
uint32_t cost_level(const struct cost *c, uint32_t node);

/* Casts down and up that the protocol needs. */
uint32_t cost_rounds(enum cost_kind kind);

/* The least that the links' latency allows for these rounds. */
uint64_t cost_floor_ns(const struct cost *c, enum cost_kind kind);

const char *cost_name(enum cost_kind kind);

/* SPDX-License-Identifier: MIT */
/* Which way bulk data spreads: the tree, or pair of trees, of one transfer.
 *
 * Position 0 is the source, positions 1 to n are the receivers in some order. Everybody computes the same
 * plan from the same few numbers. In a pair of trees each receiver passes data on in at most one of the two and
 * only receives in the other, so with half of the data in each a node sends no more than it receives:
 * full bandwidth with logarithmic depth. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum spread_shape {
    SPREAD_AUTO, /* only before spread_choose */
    SPREAD_CHAIN,
    SPREAD_KARY,
    SPREAD_BINOMIAL,
    SPREAD_FLAT,
    SPREAD_PAIR,
    SPREAD_SHAPES
};

struct spread {
    uint8_t shape;  /* enum spread_shape, not AUTO */
    uint32_t arity; /* KARY */
    uint32_t receivers;
};

/* 2 of a pair, otherwise 1. */
uint32_t spread_trees(const struct spread *s);
/* Of a position that is not 0. */
uint32_t spread_parent(const struct spread *s, uint32_t tree, uint32_t position);
/* Children of a position, in the order in which they are served. */
uint32_t spread_child_count(const struct spread *s, uint32_t tree, uint32_t position);
uint32_t spread_child(const struct spread *s, uint32_t tree, uint32_t position, uint32_t index);
/* Levels below the source of the deepest receiver, in the deeper tree. */
uint32_t spread_depth(const struct spread *s);

const char *spread_name(enum spread_shape shape);
/* "chain", "k-ary", "kary:4", "binomial", "flat", "pair", "auto". */
bool spread_parse(const char *text, struct spread *ret);

/* What the choice of a shape depends on. */
struct spread_terms {
    uint64_t bytes;
    uint32_t receivers;
    uint32_t piece_bytes;
    uint64_t bytes_per_s; /* of a node's link, each way */
    uint64_t latency_ns;  /* of a message, one way */
    uint64_t message_ns;  /* a processor's work for a message */
    bool shared;          /* all nodes are on one host: only the sum of the work counts */
};

/* Predicted time of a transfer in this shape; whole numbers, the same on every machine. */
uint64_t spread_cost_ns(const struct spread *s, const struct spread_terms *t);
/* The shape with the least predicted time. */
struct spread spread_choose(const struct spread_terms *t);

/* Orders receivers so that few edges of the trees lead from one switch to another, and those that do come
 * from different nodes. `switches[i]` is the switch of receiver i (0: unknown); `source_switch` the source's.
 * `order[p]` gets the receiver of position p + 1. The same everywhere. */
void spread_arrange(const struct spread *s, const uint32_t *switches, uint32_t source_switch,
                    uint32_t *order, uint32_t *scratch /* receivers of each */);

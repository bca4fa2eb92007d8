/* SPDX-License-Identifier: MIT */
/* Which way bulk data spreads: the tree, or pair of trees, of one transfer.
 *
 * Position 0 is the source, positions 1 to n are the receivers in some order. Everybody computes the same
 * plan from the same few numbers. In a pair of trees each receiver passes data on in at most one of the two and
 * only receives in the other, so with half of the data in each a node sends no more than it receives:
 * full bandwidth with logarithmic depth (after Sanders, Speck and Traeff, "Two-tree algorithms for full
 * bandwidth broadcast, reduction and scan", 2009).
 *
 * Subtrees are contiguous ranges of positions. Receivers who share a switch stand side by side and are a
 * group; a plan that knows its groups keeps each in one piece, entered once (sometimes twice, in a
 * pair). One that does not is the same for every cluster, and cuts groups wherever its ranges end.
 *
 * Parents and children are found in O(log n) steps down the tree, each through the children of a node. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
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
    uint32_t arity; /* KARY: 1 to SPREAD_ARITY_MAX */
    uint32_t receivers;
    /* Last positions of the groups, ascending; the first group is the source's, and may be it alone. */
    const uint32_t *ends; /* borrowed */
    uint32_t groups;      /* 0: none are known */
};

enum { SPREAD_ARITY_MAX = 1024, SPREAD_ARITY_USUAL = 4, SPREAD_TEXT_MAX = 16 };

/* Can a plan be made of it? For numbers that come from outside: everything else relies on it. */
bool spread_valid(const struct spread *s);

/* 2 of a pair, otherwise 1. */
uint32_t spread_trees(const struct spread *s);
/* Of a position that is not 0. */
uint32_t spread_parent(const struct spread *s, uint32_t tree, uint32_t position);
/* Children of a position, in the order in which they are served: the deeper subtree first. With groups: the
 * larger first in a pair, elsewhere the node's own group first. */
uint32_t spread_child_count(const struct spread *s, uint32_t tree, uint32_t position);
uint32_t spread_child(const struct spread *s, uint32_t tree, uint32_t position, uint32_t index);
/* Levels below the source of the deepest receiver, in the deeper tree. */
uint32_t spread_depth(const struct spread *s);

const char *spread_name(enum spread_shape shape);
/* "auto", "chain", "k-ary", "k-ary:8", "kary", "kary:8", "binomial", "flat", "pair". Receivers and groups are
 * not in the text. */
bool spread_parse(const char *text, struct spread *ret);
/* "k-ary:8"; the length stored, below `cap`, which is not 0. SPREAD_TEXT_MAX is enough. */
size_t spread_format(const struct spread *s, char *buf, size_t cap);

/* What the choice of a shape depends on. */
struct spread_terms {
    uint64_t bytes;
    uint32_t receivers;
    uint32_t piece_bytes; /* 0: one piece */
    uint64_t bytes_per_s; /* of a node's link, each way; shared: of all copies. 0: no limit */
    uint64_t latency_ns;  /* of a message, one way */
    uint64_t message_ns;  /* a processor's work for a message */
    bool shared;          /* all nodes are on one host: only the sum of the work counts */
};

/* Terms of a network whose nodes have links of that speed; 0: of nodes that are all on one host. Without sizes. */
struct spread_terms spread_usual(uint64_t bytes_per_s);

/* Predicted time of a transfer in this shape, to as many receivers as the terms have; whole numbers, the
 * same on every machine. UINT64_MAX: longer than can be said. */
uint64_t spread_cost_ns(const struct spread *s, const struct spread_terms *t);
/* The shape with the least predicted time; of equals chain, pair, k-ary (2 to 8), binomial, flat. */
struct spread spread_choose(const struct spread_terms *t);

/* Of how many bytes pieces should be, 4 to 128 KiB: the longest that are predicted to take no more than a hundredth
 * longer than the best, in this shape or, if it is AUTO, in whichever is the fastest. Short ones come sooner to
 * nodes that lie deep, long ones cost fewer messages. `piece_bytes` of the terms is not used. */
uint32_t spread_piece_bytes(const struct spread *s, const struct spread_terms *t);
/* How many slots a receiver should have for pieces of at most `piece_bytes`. Pieces are of different lengths, and
 * in a pair of trees a node has as much to send as its link carries: what it cannot send for a moment because
 * nothing has come it never makes up for, so some must lie ready. Where a host is shared it depends on `bytes`: the
 * longer it takes, the further a node may fall behind. No other terms are used. */
uint32_t spread_slots(const struct spread_terms *t);

/* Orders receivers so that few edges of the trees lead from one switch to another, and those that do come
 * from different nodes: the source's switch first, then by number. `switches[i]` is the switch of receiver i
 * (all unknown ones, 0, count as one); `source_switch` the source's. `order[p]` gets the receiver of
 * position p + 1. Returns how many groups there are; `ends` gets theirs, for whoever puts them into the plan.
 * The same everywhere, O(n log n). */
uint32_t spread_arrange(const struct spread *s, const uint32_t *switches, uint32_t source_switch,
                        uint32_t *order, uint32_t *ends /* receivers + 1, all used */);

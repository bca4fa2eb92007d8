/* SPDX-License-Identifier: MIT */
/* The plan of the order tree: which node hangs below which.
 *
 * Position 0 is the acting root, position p > 0 is compute node p-1. Positions are numbered in
 * preorder, so whoever is below a node is one contiguous range and node sets that follow the tree
 * stay a handful of ranges. Every node can compute the whole plan, so when its parent dies it knows
 * whom to turn to: the next ancestor, up to the root. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/nodeset.h"

enum shape { SHAPE_KARY, SHAPE_BINOMIAL, SHAPE_CHAIN, SHAPE_FLAT, SHAPES };

struct tree {
    enum shape shape;
    uint32_t arity; /* of SHAPE_KARY, at least 1 */
    uint32_t nodes; /* compute nodes; the tree has one position more */
};

enum { TREE_DEPTH_MAX = 64 };

/* Ancestors of a compute node without the root, nearest first, at most `max` (and TREE_DEPTH_MAX)
 * of them. Returns how many. */
uint32_t tree_ancestors(const struct tree *t, uint32_t node, uint32_t *ret, uint32_t max);

/* Levels below the root of the deepest node. */
uint32_t tree_depth(const struct tree *t);

/* A node and everyone below it. */
struct noderange tree_subtree(const struct tree *t, uint32_t node);

/* Is `ancestor` above `node`? */
bool tree_above(const struct tree *t, uint32_t ancestor, uint32_t node);

const char *shape_name(enum shape shape);
bool shape_parse(const char *name, enum shape *ret);

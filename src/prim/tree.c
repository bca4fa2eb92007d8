/* SPDX-License-Identifier: MIT */
/* Tree shapes as recursive splits of a contiguous range: see tree.h.
 *
 * A subtree is a range of positions whose first is its root. Every shape is a rule that cuts the
 * rest of the range into the ranges of the children, largest first; walking from the whole range
 * towards a position visits exactly its ancestors. */
#include "prim/tree.h"

#include <stddef.h>
#include <string.h>

#include "base/assert.h"

struct range {
    uint32_t first;
    uint32_t size;
};

/* The child's range of `r` that holds `position`, for shapes that cut into `arity` equal parts. */
static struct range kary_step(struct range r, uint32_t arity, uint32_t position) {
    uint32_t rest = r.size - 1;
    uint32_t small = rest / arity;
    uint32_t larger = rest % arity; /* the first parts are one larger */
    uint32_t at = position - r.first - 1;
    uint32_t split = larger * (small + 1);
    if (at < split) {
        uint32_t part = at / (small + 1);
        return (struct range){r.first + 1 + part * (small + 1), small + 1};
    }
    uint32_t part = (at - split) / small;
    return (struct range){r.first + 1 + split + part * small, small};
}

/* Binomial: the first child takes half of all, the next half of what is left, and so on. */
static struct range binomial_step(struct range r, uint32_t position) {
    uint32_t first = r.first + 1;
    for (uint32_t left = r.size;;) {
        uint32_t size = left / 2;
        ASSERT(size > 0);
        if (position < first + size)
            return (struct range){first, size};
        first += size;
        left -= size;
    }
}

static struct range child_towards(const struct tree *t, struct range r, uint32_t position) {
    switch (t->shape) {
    case SHAPE_KARY:
        return kary_step(r, t->arity < 1 ? 1 : t->arity, position);
    case SHAPE_BINOMIAL:
        return binomial_step(r, position);
    case SHAPE_CHAIN:
        return (struct range){r.first + 1, r.size - 1};
    case SHAPE_FLAT:
        return (struct range){position, 1};
    case SHAPES:
        break;
    }
    assert_failed("a shape", __FILE__, __LINE__);
}

/* A chain is as deep as it is long: its ancestors are counted, not walked to. */
static uint32_t chain_ancestors(uint32_t node, uint32_t *ret, uint32_t max) {
    uint32_t count = node < max ? node : max;
    for (uint32_t i = 0; i < count; i++)
        ret[i] = node - 1 - i;
    return count;
}

uint32_t tree_ancestors(const struct tree *t, uint32_t node, uint32_t *ret, uint32_t max) {
    ASSERT(node < t->nodes);
    if (t->shape == SHAPE_CHAIN)
        return chain_ancestors(node, ret, max);
    uint32_t path[TREE_DEPTH_MAX];
    uint32_t depth = 0; /* a ring of the nearest: arity 1 is a chain by another name */
    uint32_t position = node + 1;
    struct range r = {0, t->nodes + 1};
    while (r.first != position) {
        path[depth++ % TREE_DEPTH_MAX] = r.first;
        r = child_towards(t, r, position);
    }
    uint32_t count = 0;
    while (count < max && count < depth - 1 && count < TREE_DEPTH_MAX) {
        ret[count] = path[(depth - 1 - count) % TREE_DEPTH_MAX] - 1;
        count++;
    }
    return count;
}

uint32_t tree_depth(const struct tree *t) {
    if (t->shape == SHAPE_CHAIN)
        return t->nodes;
    uint32_t depth = 0;
    struct range r = {0, t->nodes + 1};
    while (r.size > 1) { /* the first child's range is the largest and the deepest */
        r = child_towards(t, r, r.first + 1);
        depth++;
    }
    return depth;
}

struct noderange tree_subtree(const struct tree *t, uint32_t node) {
    if (t->shape == SHAPE_CHAIN)
        return (struct noderange){node, t->nodes - 1};
    struct range r = {0, t->nodes + 1};
    while (r.first != node + 1)
        r = child_towards(t, r, node + 1);
    return (struct noderange){node, node + r.size - 1};
}

bool tree_above(const struct tree *t, uint32_t ancestor, uint32_t node) {
    if (t->shape == SHAPE_CHAIN)
        return ancestor < node;
    uint32_t position = node + 1;
    struct range r = {0, t->nodes + 1};
    while (r.first != position) {
        if (r.first == ancestor + 1)
            return true;
        r = child_towards(t, r, position);
    }
    return false;
}

static const char *const names[SHAPES] = {"k-ary", "binomial", "chain", "flat"};

const char *shape_name(enum shape shape) {
    return shape < SHAPES ? names[shape] : "?";
}

bool shape_parse(const char *name, enum shape *ret) {
    for (uint32_t s = 0; s < SHAPES; s++) {
        size_t len = strlen(names[s]);
        if (strlen(name) == len && memcmp(name, names[s], len) == 0) {
            *ret = (enum shape)s;
            return true;
        }
    }
    return false;
}

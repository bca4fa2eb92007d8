/* SPDX-License-Identifier: MIT */
/* Shapes as recursive splits of a contiguous range: see spread.h.
 *
 * A subtree is a range of positions and its top. In a pair the top is somewhere inside and the ranges before
 * and after it are its children's; in all other shapes it is the first, and what follows is cut into parts,
 * large ones first. With groups a cut inside a group that the top is not in moves to the nearer end of
 * that group: so a range is the rest of its top's group and then whole groups, and each is entered once. */
#include "rm/spread.h"

#include "base/assert.h"
#include "rm/spread_groups.h"

struct subtree {
    uint32_t first, last, top;
};

/* A chain is as deep as it is long: nobody walks down from its source. */
static bool is_chain(const struct spread *s) {
    return s->shape == SPREAD_CHAIN || (s->shape == SPREAD_KARY && s->arity == 1);
}

static bool is_pair(const struct spread *s) {
    return s->shape == SPREAD_PAIR;
}

static struct subtree whole(const struct spread *s) {
    return (struct subtree){0, s->receivers, 0};
}

bool spread_valid(const struct spread *s) {
    if (s->shape == SPREAD_AUTO || s->shape >= SPREAD_SHAPES)
        return false;
    if (s->shape == SPREAD_KARY && (s->arity < 1 || s->arity > SPREAD_ARITY_MAX))
        return false;
    for (uint32_t g = 1; g < s->groups; g++)
        if (s->ends[g] <= s->ends[g - 1])
            return false;
    return s->receivers < UINT32_MAX / 8 &&
           (s->groups == 0 || s->ends[s->groups - 1] == s->receivers);
}

static uint32_t moved_to_border(const struct spread *s, uint32_t top, uint32_t from, uint32_t end) {
    if (!spread_mixed(s, top, end))
        return end;
    uint32_t group = spread_group(s, end);
    uint32_t before = s->ends[group - 1], after = s->ends[group];
    return before >= from && end - before < after - end ? before : after;
}

/* The last position of the part that begins at `from`. */
static uint32_t part_end(const struct spread *s, const struct subtree *of, uint32_t from,
                         uint32_t index) {
    uint32_t parts =
        s->shape == SPREAD_BINOMIAL ? 2 : s->arity - index; /* that the rest is cut into */
    uint32_t end = from + (of->last - from) / parts;
    return moved_to_border(s, of->top, from, end);
}

static bool pair_child(const struct spread *s, uint32_t tree, const struct subtree *of,
                       uint32_t index, struct subtree *ret) {
    uint32_t before = of->top - of->first, after = of->last - of->top;
    bool earlier = (index == 0) == (before >= after); /* the larger one is served first */
    if (index > 1 || (earlier ? before : after) == 0)
        return false;
    ret->first = earlier ? of->first : of->top + 1;
    ret->last = earlier ? of->top - 1 : of->last;
    ret->top = spread_pair_top(s, tree, ret->first, ret->last);
    return true;
}

/* The next child: called with index 0 first, then each time with the child before in `io`. */
static bool next_child(const struct spread *s, uint32_t tree, const struct subtree *of,
                       uint32_t index, struct subtree *io) {
    if (is_pair(s))
        return pair_child(s, tree, of, index, io);
    uint32_t from = index == 0 ? of->top + 1 : io->last + 1;
    if (from > of->last)
        return false;
    *io = (struct subtree){from, part_end(s, of, from, index), from};
    return true;
}

/* The subtree of a position, and its parent (0 of the source). */
static struct subtree find(const struct spread *s, uint32_t tree, uint32_t position,
                           uint32_t *ret_parent) {
    ASSERT(tree < spread_trees(s) && position <= s->receivers);
    struct subtree at = whole(s);
    *ret_parent = 0;
    while (at.top != position) {
        struct subtree child = at;
        bool there = next_child(s, tree, &at, 0, &child);
        for (uint32_t i = 1; there && (position < child.first || position > child.last); i++)
            there = next_child(s, tree, &at, i, &child);
        ASSERT(there);
        *ret_parent = at.top;
        at = child;
    }
    return at;
}

uint32_t spread_trees(const struct spread *s) {
    return is_pair(s) ? 2 : 1;
}

uint32_t spread_parent(const struct spread *s, uint32_t tree, uint32_t position) {
    ASSERT(position > 0);
    if (s->shape == SPREAD_FLAT)
        return 0;
    if (is_chain(s))
        return position - 1;
    uint32_t parent;
    find(s, tree, position, &parent);
    return parent;
}

uint32_t spread_child_count(const struct spread *s, uint32_t tree, uint32_t position) {
    if (s->shape == SPREAD_FLAT)
        return position == 0 ? s->receivers : 0;
    if (is_chain(s))
        return position < s->receivers;
    uint32_t parent, count = 0;
    struct subtree of = find(s, tree, position, &parent), child = of;
    while (next_child(s, tree, &of, count, &child))
        count++;
    return count;
}

uint32_t spread_child(const struct spread *s, uint32_t tree, uint32_t position, uint32_t index) {
    if (s->shape == SPREAD_FLAT || is_chain(s)) {
        ASSERT(index < spread_child_count(s, tree, position));
        return position + index + 1;
    }
    uint32_t parent;
    struct subtree of = find(s, tree, position, &parent), child = of;
    bool there = true;
    for (uint32_t i = 0; there && i <= index; i++)
        there = next_child(s, tree, &of, i, &child);
    ASSERT(there);
    return child.top;
}

/* Levels below the top. Inside one group the first child is the deepest; elsewhere all are looked at. */
static uint32_t levels_below(const struct spread *s, uint32_t tree, const struct subtree *of) {
    bool all = spread_mixed(s, of->first, of->last);
    uint32_t deepest = 0;
    struct subtree child = *of;
    for (uint32_t i = 0; (i == 0 || all) && next_child(s, tree, of, i, &child); i++) {
        uint32_t levels = 1 + levels_below(s, tree, &child);
        if (levels > deepest)
            deepest = levels;
    }
    return deepest;
}

uint32_t spread_depth(const struct spread *s) {
    if (s->shape == SPREAD_FLAT)
        return s->receivers > 0;
    if (is_chain(s))
        return s->receivers;
    uint32_t deepest = 0;
    struct subtree all = whole(s);
    for (uint32_t tree = 0; tree < spread_trees(s); tree++) {
        uint32_t levels = levels_below(s, tree, &all);
        if (levels > deepest)
            deepest = levels;
    }
    return deepest;
}

/* SPDX-License-Identifier: MIT */
/* The two trees of a pair: see spread.h.
 *
 * Both are search trees over the positions. In the first only even positions have children, in the second only
 * odd ones: whoever has some in one has none in the other. Neighbours differ in this, so every range of
 * two or more has one who may be its top, and the shape is all in the choice of that one.
 *
 * Of two groups that touch, one is above the other. The edge between them costs nothing else if the position
 * at the border of the upper one may have children: otherwise that one position is left over among the others
 * and is a stray, entered by an edge of its own. A border is good in one direction in the first tree and in the
 * other direction in the second. So few groups follow each other as the borders like it; of many the
 * middle one comes first, stray or not, or the tree would be as deep as there are groups. */
#include "rm/spread_groups.h"

#include "base/assert.h"

/* How far from the middle we look for a group with good borders: up to twice as many in a row. */
enum { REACH = 4 };

struct span {
    uint32_t first, last;
};

uint32_t spread_group(const struct spread *s, uint32_t position) {
    uint32_t low = 0, high = s->groups - 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->ends[middle] < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool spread_mixed(const struct spread *s, uint32_t first, uint32_t last) {
    return s->groups > 1 && s->ends[spread_group(s, first)] < last;
}

/* The part of a range whose ends may have children; empty, then last < first, if nobody may. */
static struct span inner(uint32_t tree, uint32_t first, uint32_t last) {
    return (struct span){first + (first + tree) % 2, last - (last + tree) % 2};
}

/* The middle of those who may have children: no tree is less deep. */
static uint32_t balanced_top(uint32_t tree, uint32_t first, uint32_t last) {
    struct span in = inner(tree, first, last);
    if (in.last < in.first)
        return first; /* alone */
    uint32_t others = (in.last - in.first) / 2;
    return in.first + others / 2 * 2;
}

/* What is in the range of this group. */
static struct span clip(const struct spread *s, uint32_t group, uint32_t first, uint32_t last) {
    uint32_t begin = group == 0 ? 0 : s->ends[group - 1] + 1;
    uint32_t end = s->ends[group];
    return (struct span){begin < first ? first : begin, end > last ? last : end};
}

/* Can it be above both its neighbours, and no stray? At an end of the range it has no neighbour. */
static bool borders_are_good(const struct spread *s, uint32_t tree, uint32_t group, uint32_t first,
                             uint32_t last) {
    struct span own = clip(s, group, first, last);
    struct span in = inner(tree, own.first, own.last);
    return in.first <= in.last && (own.first == first || in.first == own.first) &&
           (own.last == last || in.last == own.last);
}

/* The group on top of a range of whole groups. */
static uint32_t top_group(const struct spread *s, uint32_t tree, uint32_t first, uint32_t last) {
    uint32_t lowest = spread_group(s, first), highest = spread_group(s, last);
    uint32_t near =
        first + (last - first) / 2; /* below `last`, so the next one is in the range too */
    uint32_t middle = spread_group(s, near + (near + tree) % 2);
    for (uint32_t away = 0; away <= REACH; away++) {
        if (middle - lowest >= away && borders_are_good(s, tree, middle - away, first, last))
            return middle - away;
        if (highest - middle >= away && borders_are_good(s, tree, middle + away, first, last))
            return middle + away;
    }
    return middle;
}

/* A group that begins or ends outside of the range has our parent in it and goes on here, unless all that is
 * left of it is a stray. Its outermost one comes first: others hang below that one, and its own inside. */
uint32_t spread_pair_top(const struct spread *s, uint32_t tree, uint32_t first, uint32_t last) {
    ASSERT(first > 0 && first <= last);
    if (!spread_mixed(s, first, last))
        return balanced_top(tree, first, last);
    uint32_t lowest = spread_group(s, first), highest = spread_group(s, last);
    struct span in;
    if (spread_group(s, first - 1) == lowest) {
        in = inner(tree, first, s->ends[lowest]);
        if (in.first <= in.last)
            return in.last;
    }
    if (s->ends[highest] > last) {
        in = inner(tree, s->ends[highest - 1] + 1, last);
        if (in.first <= in.last)
            return in.first;
    }
    uint32_t group = top_group(s, tree, first, last);
    struct span own = clip(s, group, first, last);
    in = inner(tree, own.first, own.last);
    return own.last == last ? in.first : in.last;
}

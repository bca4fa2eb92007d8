/* SPDX-License-Identifier: MIT */
/* Receivers by switch: see spread.h.
 *
 * A stable merge sort, from runs of one upwards: the same order everywhere, without a heap or recursion. */
#include "rm/spread.h"

static bool stands_before(const uint32_t *switches, uint32_t source, uint32_t a, uint32_t b) {
    if (switches[a] == switches[b])
        return false;
    if (switches[a] == source || switches[b] == source)
        return switches[a] == source;
    return switches[a] < switches[b];
}

/* Two runs of `from`, up to `middle` and up to `end`, into one of `to`. */
static void merge(const uint32_t *switches, uint32_t source, const uint32_t *from, uint32_t *to,
                  uint32_t begin, uint32_t middle, uint32_t end) {
    uint32_t a = begin, b = middle;
    for (uint32_t at = begin; at < end; at++) {
        bool second = a == middle || (b < end && stands_before(switches, source, from[b], from[a]));
        to[at] = from[second ? b++ : a++];
    }
}

static uint32_t smaller(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

static void sort_by_switch(const uint32_t *switches, uint32_t source, uint32_t *order,
                           uint32_t *scratch, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    uint32_t *from = order, *to = scratch;
    for (uint32_t run = 1; run < count; run *= 2) {
        for (uint32_t begin = 0; begin < count; begin += 2 * run)
            merge(switches, source, from, to, begin, smaller(begin + run, count),
                  smaller(begin + 2 * run, count));
        uint32_t *sorted = to;
        to = from;
        from = sorted;
    }
    for (uint32_t i = 0; i < count && from != order; i++)
        order[i] = from[i];
}

uint32_t spread_arrange(const struct spread *s, const uint32_t *switches, uint32_t source_switch,
                        uint32_t *order, uint32_t *ends) {
    sort_by_switch(switches, source_switch, order, ends, s->receivers);
    uint32_t groups = 1, last = source_switch;
    ends[0] = 0;
    for (uint32_t i = 0; i < s->receivers; i++) {
        if (switches[order[i]] != last)
            groups++;
        last = switches[order[i]];
        ends[groups - 1] = i + 1;
    }
    return groups;
}

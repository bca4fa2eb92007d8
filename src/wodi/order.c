/* SPDX-License-Identifier: MIT */
/* Greedy lists: a heap of the times at which workers are free. */
#include "wodi/order.h"

/* The first of `free_at` may be too late for its place. */
static void sink(uint64_t *free_at, uint32_t count) {
    uint32_t i = 0;
    uint64_t value = free_at[0];
    for (uint32_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && free_at[child + 1] < free_at[child])
            child++;
        if (free_at[child] >= value)
            break;
        free_at[i] = free_at[child];
    }
    free_at[i] = value;
}

uint64_t order_makespan(const uint64_t *ns, uint32_t steps, uint32_t workers, uint64_t *scratch) {
    uint64_t last = 0;
    for (uint32_t i = 0; i < workers; i++)
        scratch[i] = 0;
    for (uint32_t i = 0; i < steps; i++) {
        scratch[0] += ns[i];
        last = scratch[0] > last ? scratch[0] : last;
        sink(scratch, workers);
    }
    return last;
}

uint32_t order_fewest(const uint64_t *ns_falling, uint32_t steps, uint64_t *scratch) {
    if (steps == 0)
        return 0;
    uint64_t longest = ns_falling[0], sum = 0;
    for (uint32_t i = 0; i < steps; i++)
        sum += ns_falling[i];
    /* Fewer than this cannot do it whatever the order. */
    uint64_t least = longest ? (sum + longest - 1) / longest : 1;
    /* In one order more workers are never slower: of n + 1 the n that are free last are each free no later than their like of n. */
    uint32_t few = least < 1 ? 1 : (uint32_t)least, enough = steps;
    while (few < enough) {
        uint32_t middle = few + (enough - few) / 2;
        if (order_makespan(ns_falling, steps, middle, scratch) > longest)
            few = middle + 1;
        else
            enough = middle;
    }
    return enough;
}

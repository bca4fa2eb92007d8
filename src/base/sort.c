/* SPDX-License-Identifier: MIT */
/* A heap sort: see sort.h. */
#include "base/sort.h"

/* Lets the number at `i` sink to its place among the first `count`. */
static void sink(uint64_t *at, size_t i, size_t count) {
    uint64_t value = at[i];
    for (size_t child = 2 * i + 1; child < count; child = 2 * i + 1) {
        if (child + 1 < count && at[child + 1] > at[child])
            child++;
        if (at[child] <= value)
            break;
        at[i] = at[child];
        i = child;
    }
    at[i] = value;
}

void sort_u64(uint64_t *at, size_t count) {
    for (size_t i = count / 2; i-- > 0;)
        sink(at, i, count);
    for (size_t left = count; left > 1; left--) {
        uint64_t largest = at[0];
        at[0] = at[left - 1];
        at[left - 1] = largest;
        sink(at, 0, left - 1);
    }
}

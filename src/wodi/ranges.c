/* SPDX-License-Identifier: MIT */
/* A sorted array of ranges; neighbours that touch become one. */
#include "wodi/ranges.h"

#include <string.h>

#include "base/assert.h"

/* The first range that ends after `number`. */
static uint32_t find(const struct ranges *r, uint64_t number) {
    uint32_t low = 0, high = r->count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (r->at[mid].end > number)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

bool ranges_have(const struct ranges *r, uint64_t number) {
    uint32_t i = find(r, number);
    return i < r->count && r->at[i].first <= number;
}

void ranges_add(struct ranges *r, uint64_t first, uint64_t end) {
    uint32_t i = find(r, first);
    bool joins_left = i > 0 && r->at[i - 1].end == first;
    bool joins_right = i < r->count && r->at[i].first == end;
    if (joins_left && joins_right) {
        r->at[i - 1].end = r->at[i].end;
        r->count--;
        memmove(&r->at[i], &r->at[i + 1], (r->count - i) * sizeof *r->at);
    } else if (joins_left) {
        r->at[i - 1].end = end;
    } else if (joins_right) {
        r->at[i].first = first;
    } else {
        ASSERT(r->count < r->cap);
        memmove(&r->at[i + 1], &r->at[i], (r->count - i) * sizeof *r->at);
        r->at[i] = (struct range){first, end};
        r->count++;
    }
}

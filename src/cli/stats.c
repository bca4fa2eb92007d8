/* SPDX-License-Identifier: MIT */
/* Small statistics: see stats.h. */
#include "cli/stats.h"

uint64_t stats_root(uint64_t square) {
    uint64_t root = 0;
    for (uint64_t bit = (uint64_t)1 << 31; bit > 0; bit /= 2)
        if ((root + bit) * (root + bit) <= square)
            root += bit;
    return root;
}

struct stats stats_of(const uint64_t *values, uint32_t count) {
    uint64_t low = values[(count - 1) / 2];
    struct stats s = {.median = low + (values[count / 2] - low) / 2};
    if (count < 2)
        return s;
    uint64_t first = values[0]; /* sums of distances: smaller numbers, the same spread */
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += values[i] - first;
    uint64_t mean = sum / count;
    uint64_t squares = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t away =
            values[i] - first > mean ? values[i] - first - mean : mean - (values[i] - first);
        squares += away * away;
    }
    s.ci95 = stats_root(squares / (count - 1) / count) * 196 / 100;
    return s;
}

int64_t stats_more(uint64_t one, uint64_t other) {
    return ((int64_t)one - (int64_t)other) * 100000 / (int64_t)(other > 0 ? other : 1);
}

int64_t stats_middle(int64_t *values, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        int64_t value = values[i];
        uint32_t at = i;
        for (; at > 0 && values[at - 1] > value; at--)
            values[at] = values[at - 1];
        values[at] = value;
    }
    return values[count / 2];
}

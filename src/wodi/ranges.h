/* SPDX-License-Identifier: MIT */
/* A set of numbers as ranges, for steps that are done: a million steps in a row are one range.
 *
 * Ranges are kept sorted and apart. A number that touches none takes a range of its own: the owner sees to it that one is
 * left. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct range {
    uint64_t first, end; /* [first, end) */
};

struct ranges {
    struct range *at;
    uint32_t cap, count;
};

bool ranges_have(const struct ranges *r, uint64_t number);
/* [first, end), which is not empty, none of it in the set. */
void ranges_add(struct ranges *r, uint64_t first, uint64_t end);

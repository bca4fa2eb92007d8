/* SPDX-License-Identifier: MIT */
/* Small statistics of measured times, in whole numbers. */
#pragma once

#include <stdint.h>

struct stats {
    uint64_t median;
    uint64_t ci95; /* half the width of the mean's 95 % confidence interval */
};

/* The values are sorted, ascending; there is at least one. */
struct stats stats_of(const uint64_t *values, uint32_t count);

/* By how much the one is more than the other, in thousandths of a percent. */
int64_t stats_more(uint64_t one, uint64_t other);
/* The middle one of numbers that may be negative; sorts them. */
int64_t stats_middle(int64_t *values, uint32_t count);

uint64_t stats_root(uint64_t square); /* the whole part of the square root */

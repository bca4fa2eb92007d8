/* SPDX-License-Identifier: MIT */
/* Some ranks of a job, as ranges: "0,3-5".
 *
 * On the wire a range is its first and its last rank, 4 bytes each; ranges ascend and do not touch, so the same
 * ranks are always the same bytes. There are RANKS_RANGES_MAX of them at most: who wants more wants another pattern. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
    RANKS_RANGE_BYTES = 8,
    RANKS_RANGES_MAX = 64,
    RANKS_BYTES_MAX = RANKS_RANGES_MAX * RANKS_RANGE_BYTES
};

/* Well formed, as said above; none at all is, too. */
bool ranks_good(struct bytes ranks);

bool ranks_has(struct bytes ranks, uint32_t rank);
uint64_t ranks_count(struct bytes ranks);

/* Of at least one range. */
uint32_t ranks_lowest(struct bytes ranks);
uint32_t ranks_highest(struct bytes ranks);

/* 0; -EINVAL: that is no list of ranks; -E2BIG: of too many ranges. */
int ranks_parse(const char *text, uint8_t out[RANKS_BYTES_MAX], struct bytes *ret);

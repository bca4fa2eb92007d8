/* SPDX-License-Identifier: MIT */
/* Numbers of transfers, and the variables by which all learn that one is over on every node.
 *
 * A transfer has one of a few places; its number ends in that place and is higher than any that had it before. When a
 * node is done it stores a value into the place's variable that is at least twice the number: exactly twice if all is
 * there, one more if not. So one standing compare tells that nobody is still at it, and one more
 * that nobody failed (Algorithm 6: completion is known before anything relies on it). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TRANSFER_PLACES = 8, TRANSFER_VARIABLE = 0 };

static inline uint64_t transfer_number(uint32_t epoch, uint32_t count, uint32_t place) {
    return (uint64_t)(epoch & 0xFFFFFFU) << 35 | (uint64_t)count << 3 | place;
}

static inline uint32_t transfer_place(uint64_t transfer) {
    return (uint32_t)(transfer % TRANSFER_PLACES);
}

static inline uint64_t transfer_value(uint64_t transfer, bool failed) {
    return 2 * transfer + failed;
}

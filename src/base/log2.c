/* SPDX-License-Identifier: MIT */
/* Logarithms to base two: see log2.h. */
#include "base/log2.h"

#include "base/assert.h"

__extension__ typedef unsigned __int128 uint128;

/* Squaring doubles the logarithm: each doubling yields one more bit of it. The mantissa is in
 * [1, 2), with 63 bits behind the point: enough of them are still right after 32 squarings. */
uint64_t log2_fixed(uint64_t value) {
    ASSERT(value > 0);
    uint32_t whole = 63 - (uint32_t)__builtin_clzll(value);
    uint64_t mantissa = value << (63 - whole);
    uint64_t result = whole;
    for (int bit = 0; bit < 32; bit++) {
        uint128 square = (uint128)mantissa * mantissa; /* in [1, 4), 126 bits behind the point */
        uint32_t carry = (uint32_t)(square >> 127);
        mantissa = (uint64_t)(square >> (63 + carry));
        result = 2 * result + carry;
    }
    return result;
}

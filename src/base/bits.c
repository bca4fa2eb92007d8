/* SPDX-License-Identifier: MIT */
/*
 * Runs of bits: a masked word at each end, whole words between.
 *
 * The loops between the ends stay free of conditions, as sets of 100,000 nodes spend their time
 * there.
 */
#include "base/bits.h"

/* Bits at and above n's place in its word; at and below it. */
static uint64_t mask_from(uint32_t n) {
    return UINT64_MAX << (n % 64);
}

static uint64_t mask_to(uint32_t n) {
    return UINT64_MAX >> (63 - n % 64);
}

/* The bits of `mask` change; how many did. */
static uint32_t set_masked(uint64_t *w, uint64_t mask) {
    uint32_t changed = bits_popcount(mask & ~*w);
    *w |= mask;
    return changed;
}

static uint32_t clear_masked(uint64_t *w, uint64_t mask) {
    uint32_t changed = bits_popcount(mask & *w);
    *w &= ~mask;
    return changed;
}

uint32_t bits_set_run(uint64_t *w, uint32_t first, uint32_t last) {
    uint32_t a = first / 64, b = last / 64;
    if (a == b)
        return set_masked(w + a, mask_from(first) & mask_to(last));
    uint32_t changed = set_masked(w + a, mask_from(first));
    for (uint32_t i = a + 1; i < b; i++) {
        changed += 64 - bits_popcount(w[i]);
        w[i] = UINT64_MAX;
    }
    return changed + set_masked(w + b, mask_to(last));
}

uint32_t bits_clear_run(uint64_t *w, uint32_t first, uint32_t last) {
    uint32_t a = first / 64, b = last / 64;
    if (a == b)
        return clear_masked(w + a, mask_from(first) & mask_to(last));
    uint32_t changed = clear_masked(w + a, mask_from(first));
    for (uint32_t i = a + 1; i < b; i++) {
        changed += bits_popcount(w[i]);
        w[i] = 0;
    }
    return changed + clear_masked(w + b, mask_to(last));
}

uint32_t bits_count_run(const uint64_t *w, uint32_t first, uint32_t last) {
    uint32_t a = first / 64, b = last / 64;
    if (a == b)
        return bits_popcount(w[a] & mask_from(first) & mask_to(last));
    uint32_t count = bits_popcount(w[a] & mask_from(first));
    for (uint32_t i = a + 1; i < b; i++)
        count += bits_popcount(w[i]);
    return count + bits_popcount(w[b] & mask_to(last));
}

bool bits_any_in_run(const uint64_t *w, uint32_t first, uint32_t last) {
    return bits_next_set(w, first, last + 1) != BITS_NONE;
}

bool bits_all_in_run(const uint64_t *w, uint32_t first, uint32_t last) {
    return bits_next_clear(w, first, last + 1) == last + 1;
}

uint32_t bits_next_set(const uint64_t *w, uint32_t from, uint32_t end) {
    if (from >= end)
        return BITS_NONE;
    uint32_t i = from / 64;
    uint64_t word = w[i] & mask_from(from);
    while (word == 0) {
        if (++i > (end - 1) / 64)
            return BITS_NONE;
        word = w[i];
    }
    uint32_t n = i * 64 + (uint32_t)__builtin_ctzll(word);
    return n < end ? n : BITS_NONE;
}

uint32_t bits_next_clear(const uint64_t *w, uint32_t from, uint32_t end) {
    if (from >= end)
        return end;
    uint32_t i = from / 64;
    uint64_t word = ~w[i] & mask_from(from);
    while (word == 0) {
        if (++i > (end - 1) / 64)
            return end;
        word = ~w[i];
    }
    uint32_t n = i * 64 + (uint32_t)__builtin_ctzll(word);
    return n < end ? n : end;
}

uint32_t bits_count_runs(const uint64_t *w, uint32_t words) {
    uint32_t runs = 0;
    uint64_t carry = 0;
    for (uint32_t i = 0; i < words; i++) {
        runs += bits_popcount(w[i] & ~(w[i] << 1 | carry));
        carry = w[i] >> 63;
    }
    return runs;
}

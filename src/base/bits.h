/* SPDX-License-Identifier: MIT */
/*
 * Runs of bits in arrays of 64-bit words.
 *
 * Bit n is bit (n mod 64) of word (n / 64). Runs are inclusive and never empty; the words are the
 * caller's and must reach far enough. Work is done a word at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BITS_NONE UINT32_MAX

/* Words that hold `bits` bits. */
static inline uint32_t bits_words(uint32_t bits) {
    return bits / 64 + (bits % 64 != 0);
}

/* Spelled out where the machine lacks the instruction: the builtin would call libgcc there. */
static inline uint32_t bits_popcount(uint64_t w) {
#if defined(__POPCNT__) || defined(__aarch64__)
    return (uint32_t)__builtin_popcountll(w);
#else
    w -= (w >> 1) & 0x5555555555555555;
    w = (w & 0x3333333333333333) + ((w >> 2) & 0x3333333333333333);
    w = (w + (w >> 4)) & 0x0F0F0F0F0F0F0F0F;
    return (uint32_t)((w * 0x0101010101010101) >> 56);
#endif
}

static inline bool bits_test(const uint64_t *w, uint32_t n) {
    return (w[n / 64] >> (n % 64)) & 1;
}

/* Set or clear the run; how many bits changed. */
uint32_t bits_set_run(uint64_t *w, uint32_t first, uint32_t last);
uint32_t bits_clear_run(uint64_t *w, uint32_t first, uint32_t last);

/* Set bits of up to 16 words: bytes are added up before they are summed, which is fewer steps than one by one. */
static inline uint32_t bits_count_block(const uint64_t *w, uint32_t words) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < words; i++) {
        uint64_t x = w[i];
        x -= (x >> 1) & 0x5555555555555555;
        x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333);
        sum += (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F;
    }
    sum = (sum & 0x00FF00FF00FF00FF) + ((sum >> 8) & 0x00FF00FF00FF00FF);
    return (uint32_t)((sum * 0x0001000100010001) >> 48);
}

/* Set bits inside the run. */
uint32_t bits_count_run(const uint64_t *w, uint32_t first, uint32_t last);
bool bits_any_in_run(const uint64_t *w, uint32_t first, uint32_t last);
bool bits_all_in_run(const uint64_t *w, uint32_t first, uint32_t last);

/* The first set (clear) bit in [from, end), BITS_NONE (end) if there is none. */
uint32_t bits_next_set(const uint64_t *w, uint32_t from, uint32_t end);
uint32_t bits_next_clear(const uint64_t *w, uint32_t from, uint32_t end);

/* Maximal runs of set bits in the first `words` words. */
uint32_t bits_count_runs(const uint64_t *w, uint32_t words);

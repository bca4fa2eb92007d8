/* SPDX-License-Identifier: MIT */
/*
 * Runs of bits: every pair of ends over a few words, compared with single bits.
 */
#include "base/bits.h"

#include "base/random.h"
#include "tap.h"

#define BITS 256

static void random_words(struct random *r, uint64_t w[4]) {
    for (int i = 0; i < 4; i++) {
        w[i] = random_u64(r);
        switch (random_below(r, 4)) { /* empty and full words are the interesting ones */
        case 0:
            w[i] = 0;
            break;
        case 1:
            w[i] = UINT64_MAX;
            break;
        default:
            break;
        }
    }
}

static bool run_agrees(struct random *r, uint32_t first, uint32_t last) {
    uint64_t before[4], set[4], clear[4];
    random_words(r, before);
    memcpy(set, before, sizeof set);
    memcpy(clear, before, sizeof clear);
    uint32_t inside = 0;
    for (uint32_t n = first; n <= last; n++)
        inside += bits_test(before, n);
    uint32_t len = last - first + 1;
    bool good = bits_count_run(before, first, last) == inside &&
                bits_any_in_run(before, first, last) == (inside > 0) &&
                bits_all_in_run(before, first, last) == (inside == len) &&
                bits_set_run(set, first, last) == len - inside &&
                bits_clear_run(clear, first, last) == inside;
    for (uint32_t n = 0; n < 256 && good; n++) {
        bool in_run = n >= first && n <= last;
        good = bits_test(set, n) == (in_run || bits_test(before, n)) &&
               bits_test(clear, n) == (!in_run && bits_test(before, n));
    }
    return good;
}

static void test_runs(void) {
    struct random r;
    random_init(&r, 1);
    for (uint32_t first = 0; first < BITS; first++)
        for (uint32_t last = first; last < BITS; last++)
            if (!CHECK(run_agrees(&r, first, last)))
                return;
}

static void test_blocks(void) {
    struct random r;
    random_init(&r, 3);
    for (int round = 0; round < 200; round++) {
        uint64_t w[16];
        uint32_t words = (uint32_t)random_between(&r, 1, 16), sum = 0;
        for (uint32_t i = 0; i < 16; i += 4)
            random_words(&r, w + i);
        for (uint32_t i = 0; i < words; i++)
            sum += bits_popcount(w[i]);
        CHECK_EQ(bits_count_block(w, words), sum);
        memset(w, 0xFF, sizeof w);
        CHECK_EQ(bits_count_block(w, words), 64 * words);
    }
}

static bool next_agrees(const uint64_t *w, uint32_t from, uint32_t end) {
    uint32_t set = BITS_NONE, clear = end;
    for (uint32_t n = end; n > from; n--) {
        if (bits_test(w, n - 1))
            set = n - 1;
        else
            clear = n - 1;
    }
    return bits_next_set(w, from, end) == set && bits_next_clear(w, from, end) == clear;
}

static void test_next(void) {
    struct random r;
    random_init(&r, 2);
    for (uint32_t from = 0; from <= BITS; from++)
        for (uint32_t end = 0; end <= BITS; end++) {
            uint64_t w[4];
            random_words(&r, w);
            if (!CHECK(next_agrees(w, from, end)))
                return;
        }
}

static void test_count_runs(void) {
    struct random r;
    random_init(&r, 3);
    for (int i = 0; i < 1000; i++) {
        uint64_t w[4];
        random_words(&r, w);
        uint32_t runs = 0;
        for (uint32_t n = 0; n < 256; n++)
            runs += bits_test(w, n) && (n == 0 || !bits_test(w, n - 1));
        CHECK_EQ(bits_count_runs(w, 4), runs);
    }
}

static void test_popcount(void) {
    CHECK_EQ(bits_popcount(0), 0);
    CHECK_EQ(bits_popcount(UINT64_MAX), 64);
    CHECK_EQ(bits_popcount(0x8000000000000001), 2);
    CHECK_EQ(bits_popcount(0x0123456789ABCDEF), 32);
    CHECK_EQ(bits_words(0), 0);
    CHECK_EQ(bits_words(64), 1);
    CHECK_EQ(bits_words(65), 2);
}

int main(void) {
    TEST(test_runs);
    TEST(test_blocks);
    TEST(test_next);
    TEST(test_count_runs);
    TEST(test_popcount);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/*
 * Running hashes: fixed values for every machine, framing, spread of single-bit changes.
 */
#include "base/hash.h"

#include "base/bits.h"
#include "tap.h"

static uint64_t hash_words(const uint64_t *v, int n) {
    struct hash h;
    hash_init(&h, 0);
    for (int i = 0; i < n; i++)
        hash_u64(&h, v[i]);
    return hash_done(&h);
}

/* The values only say that nothing changed: old trace hashes would no longer compare. */
static void test_fixed_values(void) {
    CHECK_EQ(hash_once("", 0), 0x3D61E46CD1A23030u);
    CHECK_EQ(hash_once("storm", 5), 0x2868C9F38C4BBEC5u);
    CHECK_EQ(hash_once("a text of more than one word", 28), 0x69AF45EDA99F3178u);
    CHECK_EQ(hash_words((uint64_t[]){1, 2, 3}, 3), 0xC5A83002C407A0CCu);
}

static void test_framing(void) {
    struct hash a, b;
    hash_init(&a, 0);
    hash_init(&b, 0);
    hash_bytes(&a, "ab", 2);
    hash_bytes(&a, "c", 1);
    hash_bytes(&b, "a", 1);
    hash_bytes(&b, "bc", 2);
    CHECK(hash_done(&a) != hash_done(&b));
    CHECK(hash_once("a", 1) != hash_once("a\0", 2));
    CHECK(hash_words((uint64_t[]){1, 2}, 2) != hash_words((uint64_t[]){2, 1}, 2));
    CHECK(hash_words((uint64_t[]){0}, 1) != hash_words((uint64_t[]){0, 0}, 2));
}

static void test_seed_and_going_on(void) {
    struct hash a, b;
    hash_init(&a, 1);
    hash_init(&b, 2);
    CHECK(hash_done(&a) != hash_done(&b));
    uint64_t early = hash_done(&a);
    CHECK_EQ(hash_done(&a), early);
    hash_u64(&a, 0);
    CHECK(hash_done(&a) != early);
}

/* Flipping any input bit flips about half of the output bits, wherever it is. */
static void test_spread(void) {
    for (int word = 0; word < 3; word++)
        for (int bit = 0; bit < 64; bit++) {
            uint64_t v[3] = {5, 6, 7};
            uint64_t before = hash_words(v, 3);
            v[word] ^= (uint64_t)1 << bit;
            uint32_t flipped = bits_popcount(before ^ hash_words(v, 3));
            CHECK(flipped >= 12 && flipped <= 52);
        }
}

int main(void) {
    TEST(test_fixed_values);
    TEST(test_framing);
    TEST(test_seed_and_going_on);
    TEST(test_spread);
    return tap_finish();
}

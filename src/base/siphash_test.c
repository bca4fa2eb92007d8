/* SPDX-License-Identifier: MIT */
/* SipHash against the authors' example and against itself. */
#include "base/siphash.h"

#include "tap.h"

static const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

/* The paper's appendix A: key 00 to 0f, message 00 to 0e. And the empty message of the authors' vectors. */
static void test_known(void) {
    uint8_t message[15];
    for (uint8_t i = 0; i < sizeof message; i++)
        message[i] = i;
    CHECK_EQ(siphash(key, message, sizeof message), 0xa129ca6149be45e5);
    CHECK_EQ(siphash(key, message, 0), 0x726fdb47dd0e0e31);
}

/* Every bit of the message, its length and the key count. */
static void test_all_counts(void) {
    uint8_t message[32] = {0};
    const uint64_t other[2] = {key[0], key[1] ^ 1};
    uint64_t tag = siphash(key, message, sizeof message);
    for (size_t bit = 0; bit < 8 * sizeof message; bit++) {
        message[bit / 8] ^= (uint8_t)(1U << bit % 8);
        CHECK(siphash(key, message, sizeof message) != tag);
        message[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    for (size_t len = 0; len < sizeof message; len++)
        CHECK(siphash(key, message, len) != tag);
    CHECK(siphash(other, message, sizeof message) != tag);
}

int main(void) {
    TEST(test_known);
    TEST(test_all_counts);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* A set of numbers as ranges, against a plain array. */
#include "wodi/ranges.h"

#include "base/random.h"
#include "tap.h"

static void test_against_array(void) {
    enum { N = 300 };
    struct random r;
    random_init(&r, 1);
    for (int round = 0; round < 50; round++) {
        struct range room[N];
        struct ranges set = {.at = room, .cap = N};
        bool have[N + 1] = {false};
        for (int i = 0; i < N * 3; i++) {
            uint64_t n = random_below(&r, N);
            if (!have[n])
                ranges_add(&set, n, n + 1);
            have[n] = true;
            uint64_t probe = random_below(&r, N);
            CHECK(ranges_have(&set, probe) == have[probe]);
        }
        uint32_t runs = 0;
        for (int i = 0; i < N; i++)
            runs += have[i] && !have[i + 1];
        CHECK_EQ(set.count, runs);
    }
}

static void test_in_a_row(void) {
    struct range room[2];
    struct ranges set = {.at = room, .cap = 2};
    for (uint64_t i = 0; i < 1000000; i++)
        ranges_add(&set, i, i + 1);
    CHECK_EQ(set.count, 1);
    CHECK(ranges_have(&set, 999999) && !ranges_have(&set, 1000000));
}

int main(void) {
    TEST(test_against_array);
    TEST(test_in_a_row);
    return tap_finish();
}

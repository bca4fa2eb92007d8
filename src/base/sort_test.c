/* SPDX-License-Identifier: MIT */
/* Sorted means ascending, and the same numbers as before. */
#include "base/sort.h"

#include "base/random.h"
#include "tap.h"

enum { MANY = 257 };

static void test_all_lengths(void) {
    struct random r;
    random_init(&r, 3);
    for (size_t count = 0; count < MANY; count++) {
        uint64_t at[MANY], sum = 0, mix = 0;
        for (size_t i = 0; i < count; i++) {
            at[i] = random_below(&r, count % 3 == 0 ? 5 : UINT64_MAX / 2);
            sum += at[i];
            mix ^= at[i] * 0x9E3779B97F4A7C15;
        }
        sort_u64(at, count);
        for (size_t i = 0; i < count; i++) {
            CHECK(i == 0 || at[i - 1] <= at[i]);
            sum -= at[i];
            mix ^= at[i] * 0x9E3779B97F4A7C15;
        }
        CHECK(sum == 0 && mix == 0);
    }
}

static void test_extremes(void) {
    uint64_t at[] = {UINT64_MAX, 0, 1, UINT64_MAX, 0};
    sort_u64(at, 5);
    CHECK(at[0] == 0 && at[1] == 0 && at[2] == 1);
    CHECK(at[3] == UINT64_MAX && at[4] == UINT64_MAX);
}

int main(void) {
    TEST(test_all_lengths);
    TEST(test_extremes);
    return tap_finish();
}

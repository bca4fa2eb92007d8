/* SPDX-License-Identifier: MIT */
/* Tests of logarithms. */
#include "base/log2.h"

#include "tap.h"

static void test_powers(void) {
    for (uint32_t i = 0; i < 64; i++)
        CHECK_EQ(log2_fixed((uint64_t)1 << i), i * LOG2_ONE);
}

static void test_values(void) {
    CHECK_EQ(log2_fixed(3), 6807362105);     /* 1.5849625007 */
    CHECK_EQ(log2_fixed(10), 14267572527);   /* 3.3219280949 */
    CHECK_EQ(log2_fixed(1000), 42802717581); /* 9.9657842847 */
    CHECK_EQ(log2_fixed(UINT64_MAX), 64 * LOG2_ONE - 1);
}

static void test_order(void) {
    for (uint64_t v = 1; v < 5000; v++)
        CHECK(log2_fixed(v) < log2_fixed(v + 1));
}

/* The bits that are cut off do not add up to anything. */
static void test_cubes(void) {
    for (uint64_t v = 2; v < 1000; v++)
        CHECK(log2_fixed(v * v * v) - 3 * log2_fixed(v) <= 3);
}

int main(void) {
    TEST(test_powers);
    TEST(test_values);
    TEST(test_order);
    TEST(test_cubes);
    return tap_finish();
}

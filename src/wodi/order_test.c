/* SPDX-License-Identifier: MIT */
/* The greedy order and the fewest workers, on shapes whose answer is known. */
#include "wodi/order.h"

#include "tap.h"

static void test_makespan(void) {
    uint64_t scratch[8];
    const uint64_t falling[] = {7, 6, 5, 4, 3, 2, 1};
    CHECK_EQ(order_makespan(falling, 7, 1, scratch), 28);
    CHECK_EQ(order_makespan(falling, 7, 2, scratch), 14);
    CHECK_EQ(order_makespan(falling, 7, 4, scratch), 7);
    const uint64_t rising[] = {1, 2, 3, 4, 5, 6, 7};
    CHECK_EQ(order_makespan(rising, 7, 4, scratch), 10);
    CHECK_EQ(order_makespan(falling, 0, 3, scratch), 0);
}

static void test_fewest(void) {
    uint64_t scratch[40], steps[31];
    const uint64_t even[] = {5, 5, 5, 5};
    CHECK_EQ(order_fewest(even, 4, scratch), 4);
    const uint64_t one_long[] = {10, 2, 2, 2, 2, 2};
    CHECK_EQ(order_fewest(one_long, 6, scratch), 2);
    CHECK_EQ(order_fewest(even, 0, scratch), 0);
    /* The paper: 31 steps, the longest is 1/15.5 of all, and 16 workers are enough. */
    for (int i = 0; i < 31; i++)
        steps[i] = i == 0 ? 2000 : 967;
    CHECK_EQ(order_fewest(steps, 31, scratch), 16);
}

/* One after the other would find the same. */
static void test_fewest_is_the_fewest(void) {
    uint64_t scratch[40], steps[40], seed = 7;
    for (int round = 0; round < 2000; round++) {
        uint32_t count = 1 + (uint32_t)round % 40, workers = 1;
        for (uint32_t i = 0; i < count; i++) {
            seed = seed * 6364136223846793005 + 1442695040888963407;
            uint64_t ns = 1 + (seed >> 33) % 100;
            uint32_t at = i;
            for (; at > 0 && steps[at - 1] < ns; at--)
                steps[at] = steps[at - 1];
            steps[at] = ns;
        }
        while (order_makespan(steps, count, workers, scratch) > steps[0])
            workers++;
        CHECK_EQ(order_fewest(steps, count, scratch), workers);
    }
}

/* A server that asks this must not stand still: no two of these fit into the time of the longest. */
static void test_many_steps(void) {
    enum { MANY = 65536 };
    static uint64_t scratch[MANY], steps[MANY];
    for (uint32_t i = 0; i < MANY; i++)
        steps[i] = i == 0 ? 10 : 6;
    CHECK_EQ(order_fewest(steps, MANY, scratch), MANY);
}

int main(void) {
    TEST(test_makespan);
    TEST(test_fewest);
    TEST(test_fewest_is_the_fewest);
    TEST(test_many_steps);
    return tap_finish();
}

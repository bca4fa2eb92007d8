/* SPDX-License-Identifier: MIT */
/* What is expected of steps, and the text it is kept as. */
#include "wodi/history.h"

#include "tap.h"

static void test_expectations(void) {
    uint64_t ns[10];
    struct history h = {.ns = ns, .cap = 10};
    bool own;
    CHECK_EQ(history_expect(&h, 3, &own), 0);
    history_add(&h, 3, 100);
    CHECK_EQ(history_expect(&h, 3, &own), 100);
    CHECK(own);
    history_add(&h, 3, 200);
    CHECK_EQ(history_expect(&h, 3, &own), 150);
    CHECK(history_expect(&h, 4, &own) > 0 && !own);
    history_add(&h, 1000000, 100);
    CHECK(history_expect(&h, 1000000, &own) > 0 && !own);
}

static void test_text(void) {
    uint64_t ns[2][10];
    char text[1000];
    struct history h = {.ns = ns[0], .cap = 10}, back = {.ns = ns[1], .cap = 10};
    uint32_t at = 0;
    history_add(&h, 2, 12345);
    history_add(&h, 9, 1);
    size_t len = history_write(&h, &at, text, sizeof text);
    CHECK(len == 12 && memcmp(text, "2 12345\n9 1\n", 12) == 0);
    CHECK_EQ(history_write(&h, &at, text, sizeof text), 0);
    history_read(&back, bytes_from_str("2 12345\nnonsense\n 4 4\n5\n6 0\n9 1\n3 7"));
    CHECK_EQ(history_expect(&back, 2, NULL), 12345);
    CHECK_EQ(history_expect(&back, 9, NULL), 1);
    CHECK_EQ(ns[1][3] + ns[1][4] + ns[1][5] + ns[1][6], 0);
}

static void test_scale(void) {
    CHECK_EQ(speed_scale(1000, SPEED_ONE, SPEED_ONE / 2), 2000);
    CHECK_EQ(speed_scale((uint64_t)1 << 50, 3 * SPEED_ONE, SPEED_ONE), (uint64_t)3 << 50);
}

int main(void) {
    TEST(test_expectations);
    TEST(test_text);
    TEST(test_scale);
    return tap_finish();
}

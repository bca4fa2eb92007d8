/* SPDX-License-Identifier: MIT */
/* Lists of ranks: what they are read as, and which bytes are none. */
#include "wire/ranks.h"

#include <errno.h>
#include <stdio.h>

#include "tap.h"

static uint8_t room[RANKS_BYTES_MAX];

static struct bytes list(const char *text) {
    struct bytes ranks = {0};
    CHECK_EQ(ranks_parse(text, room, &ranks), 0);
    return ranks;
}

static void test_reading(void) {
    struct bytes r = list("0,3-5");
    CHECK(ranks_good(r));
    CHECK_EQ(ranks_count(r), 4);
    CHECK(ranks_has(r, 0) && !ranks_has(r, 1) && !ranks_has(r, 2) && ranks_has(r, 3));
    CHECK(ranks_has(r, 5) && !ranks_has(r, 6) && !ranks_has(r, UINT32_MAX));
    CHECK(ranks_lowest(r) == 0 && ranks_highest(r) == 5);
    CHECK_EQ(list("4294967295").len, RANKS_RANGE_BYTES);
    CHECK(ranks_has(list("7"), 7) && !ranks_has(list("7"), 8));
}

static void test_order(void) {
    struct bytes r = list("9,2-3,5,4,0-1");
    CHECK(ranks_good(r));
    CHECK_EQ(r.len, 2 * RANKS_RANGE_BYTES); /* 0-5 and 9 */
    CHECK_EQ(ranks_count(r), 7);
    CHECK_EQ(ranks_count(list("1-4,2-9,3")), 9);
    CHECK_EQ(ranks_count(list("8,6,4,5-7")), 5);
    CHECK_EQ(list("8,6,4,5-7").len, RANKS_RANGE_BYTES);
    CHECK_EQ(list("0-4294967295,3").len, RANKS_RANGE_BYTES);
}

static void test_nonsense(void) {
    static const char *const texts[] = {"", ",", "1,", "a", "1-", "-1", "3-1", "1 2", "4294967296"};
    struct bytes r;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CHECK_EQ(ranks_parse(texts[i], room, &r), -EINVAL);
}

static void test_too_many(void) {
    char text[1024] = "0";
    struct bytes r;
    int at = 1;
    for (int i = 1; i < RANKS_RANGES_MAX; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, ",%d", 2 * i);
    CHECK_EQ(list(text).len, RANKS_BYTES_MAX);
    snprintf(text + at, sizeof text - (size_t)at, ",500");
    CHECK_EQ(ranks_parse(text, room, &r), -E2BIG);
}

static void test_bytes(void) {
    struct bytes r = list("0,3-5");
    CHECK(!ranks_good(bytes_of(room, r.len - 1)));
    CHECK(ranks_good((struct bytes){0}));
    store_le32(room + 8, 1); /* it touches the first */
    CHECK(!ranks_good(r));
    store_le32(room + 8, 6); /* it ends before it begins */
    CHECK(!ranks_good(r));
}

int main(void) {
    TEST(test_reading);
    TEST(test_order);
    TEST(test_nonsense);
    TEST(test_too_many);
    TEST(test_bytes);
    return tap_finish();
}

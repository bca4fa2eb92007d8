/* SPDX-License-Identifier: MIT */
/* Tests of reading the ends of jobs. */
#include "cli/ends.h"

#include "base/units.h"
#include "tap.h"

static void test_scan(void) {
    uint64_t at[4] = {0};
    CHECK_EQ(ends_scan("{\"jobs\":[{\"id\":1,\"end_time\":12.5},{\"id\":2,\"end_time\": 13 },"
                       "{\"id\":3,\"end_time\":null}, {\"end_time\" :\n1700000000.123456789}]}",
                       at, 4),
             3);
    CHECK_EQ(at[0], 12500 * NS_PER_MS);
    CHECK_EQ(at[1], 13 * NS_PER_S);
    CHECK_EQ(at[2], 1700000000123456789);
}

static void test_what_is_no_end(void) {
    uint64_t at[2] = {5, 6};
    CHECK_EQ(ends_scan("", at, 2), 0);
    CHECK_EQ(ends_scan("{\"end_time\":0}", at, 2), 0);
    CHECK_EQ(ends_scan("{\"end_time\":\"12\"}", at, 2), 0);
    CHECK_EQ(ends_scan("{\"end_time\":-3}", at, 2), 0);
    CHECK_EQ(ends_scan("{\"name\":\"\\\"end_time\\\":9\"}", at, 2), 0);
    CHECK_EQ(ends_scan("{\"end_time\":99999999999999999999}", at, 2), 0);
    CHECK_EQ(ends_scan("\"end_time\"", at, 2), 0);
    CHECK_EQ(at[0], 5);
    CHECK_EQ(ends_scan("{\"end_time\":1}{\"end_time\":2}{\"end_time\":3}", at, 2), 3);
    CHECK_EQ(at[1], 2 * NS_PER_S);
}

static void test_rate(void) {
    uint64_t at[] = {0, NS_PER_S / 2, NS_PER_S};
    CHECK(ends_rate_x1000(at, 3) >= 1999 && ends_rate_x1000(at, 3) <= 2000);
    CHECK_EQ(ends_rate_x1000(at, 1), 0);
    uint64_t same[] = {7, 7};
    CHECK_EQ(ends_rate_x1000(same, 2), 0);
}

int main(void) {
    TEST(test_scan);
    TEST(test_what_is_no_end);
    TEST(test_rate);
    return tap_finish();
}

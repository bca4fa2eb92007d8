/* SPDX-License-Identifier: MIT */
/*
 * Durations and sizes: exact values, refusals, rounding at the borders of units.
 */
#include "base/units.h"

#include <errno.h>

#include "tap.h"

static uint64_t duration(const char *text) {
    uint64_t ns = 0;
    return units_parse_duration(text, &ns) == 0 ? ns : UINT64_MAX;
}

static uint64_t size(const char *text) {
    uint64_t bytes = 0;
    return units_parse_size(text, &bytes) == 0 ? bytes : UINT64_MAX;
}

static int duration_error(const char *text) {
    uint64_t ns = 42;
    int e = units_parse_duration(text, &ns);
    return ns == 42 ? e : 1;
}

static int size_error(const char *text) {
    uint64_t bytes = 42;
    int e = units_parse_size(text, &bytes);
    return bytes == 42 ? e : 1;
}

static void test_parse_duration(void) {
    CHECK_EQ(duration("300us"), 300 * NS_PER_US);
    CHECK_EQ(duration("1.5ms"), 1500 * NS_PER_US);
    CHECK_EQ(duration("2s"), 2 * NS_PER_S);
    CHECK_EQ(duration("90"), 90 * NS_PER_S);
    CHECK_EQ(duration("0.25"), 250 * NS_PER_MS);
    CHECK_EQ(duration("7ns"), 7);
    CHECK_EQ(duration("30m"), 1800 * NS_PER_S);
    CHECK_EQ(duration("30min"), 1800 * NS_PER_S);
    CHECK_EQ(duration("12h"), 43200 * NS_PER_S);
    CHECK_EQ(duration("2d"), 172800 * NS_PER_S);
    CHECK_EQ(duration("1.5d"), 129600 * NS_PER_S);
    CHECK_EQ(duration("1:30"), 90 * NS_PER_S);
    CHECK_EQ(duration("1:30:00"), 5400 * NS_PER_S);
    CHECK_EQ(duration("100:00:05"), 360005 * NS_PER_S);
    CHECK_EQ(duration("0.1s"), 100 * NS_PER_MS);
    CHECK_EQ(duration("1.9999999999999999999999us"), 1999);
    CHECK_EQ(duration("0"), 0);
    CHECK_EQ(duration("18446744073.709551614"), UINT64_MAX - 1);
    CHECK_EQ(duration_error("18446744073.709551615"), 1); /* the largest is not refused */
    CHECK_EQ(duration("0:59"), 59 * NS_PER_S);
}

static void test_parse_duration_errors(void) {
    static const char *const bad[] = {
        "",     " 1",   "1 s", "s",       "-1",   "1.",     ".5",      "1..2",  "1x",
        "1:60", "1:2:", "1:",  "1:1:1:1", "1:.5", "1.5:00", "1:00:60", "1ms2s", "1:005"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (!CHECK_EQ(duration_error(bad[i]), -EINVAL))
            printf("# %s\n", bad[i]);
    CHECK_EQ(duration_error("18446744073.709551616"), -ERANGE);
    CHECK_EQ(duration_error("99999999999999999999"), -ERANGE);
    CHECK_EQ(duration_error("300000d"), -ERANGE);
    CHECK_EQ(duration_error("18446744073709551615:00:00"), -ERANGE);
    CHECK_EQ(duration_error("99999999999:00"), -ERANGE);
}

static void test_parse_size(void) {
    CHECK_EQ(size("0"), 0);
    CHECK_EQ(size("4096"), 4096);
    CHECK_EQ(size("4096B"), 4096);
    CHECK_EQ(size("512K"), 512 * KIB);
    CHECK_EQ(size("512k"), 512 * KIB);
    CHECK_EQ(size("12MB"), 12 * MIB);
    CHECK_EQ(size("1G"), GIB);
    CHECK_EQ(size("1.5GiB"), GIB + 512 * MIB);
    CHECK_EQ(size("2T"), 2 * TIB);
    CHECK_EQ(size("16383P"), 16383 * 1024 * TIB);
    CHECK_EQ(size("0.5"), 0);
}

static void test_parse_size_errors(void) {
    static const char *const bad[] = {"",    "K",    "1KK", "1iB", "1Ki", "1 K",
                                      "-1K", "1KBs", "1bB", "1E",  "0x10"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (!CHECK_EQ(size_error(bad[i]), -EINVAL))
            printf("# %s\n", bad[i]);
    CHECK_EQ(size_error("16384P"), -ERANGE);
    CHECK_EQ(size_error("18446744073709551616"), -ERANGE);
}

static bool shows_duration(uint64_t ns, const char *expected) {
    char buf[UNITS_TEXT_MAX];
    size_t len = units_format_duration(ns, buf, sizeof buf);
    return CHECK_STR(buf, expected) && len == strlen(buf);
}

static bool shows_size(uint64_t bytes, const char *expected) {
    char buf[UNITS_TEXT_MAX];
    size_t len = units_format_size(bytes, buf, sizeof buf);
    return CHECK_STR(buf, expected) && len == strlen(buf);
}

static void test_parse_rate(void) {
    uint64_t rate = 0;
    CHECK_EQ(units_parse_rate("10Gbit", &rate), 0);
    CHECK_EQ(rate, 1250000000);
    CHECK_EQ(units_parse_rate("2.5gbit/s", &rate), 0);
    CHECK_EQ(rate, 312500000);
    CHECK_EQ(units_parse_rate("100Mbps", &rate), 0);
    CHECK_EQ(rate, 12500000);
    CHECK_EQ(units_parse_rate("10", &rate), -EINVAL);
    CHECK_EQ(units_parse_rate("Gbit", &rate), -EINVAL);
    CHECK_EQ(units_parse_rate("10Gbit/", &rate), -EINVAL);
}

static void test_format_duration(void) {
    CHECK(shows_duration(0, "0 ns"));
    CHECK(shows_duration(1, "1 ns"));
    CHECK(shows_duration(999, "999 ns"));
    CHECK(shows_duration(340 * NS_PER_US, "340 us"));
    CHECK(shows_duration(1250 * NS_PER_US, "1.25 ms"));
    CHECK(shows_duration(1254999, "1.25 ms"));
    CHECK(shows_duration(1255000, "1.26 ms"));
    CHECK(shows_duration(1500 * NS_PER_US, "1.5 ms"));
    CHECK(shows_duration(1050, "1.05 us"));
    CHECK(shows_duration(12340 * NS_PER_MS, "12.3 s"));
    CHECK(shows_duration(10049, "10 us"));
    CHECK(shows_duration(10050, "10.1 us"));
    CHECK(shows_duration(100500, "101 us"));
    CHECK(shows_duration(999999, "1 ms"));
    CHECK(shows_duration(9999, "10 us"));
    CHECK(shows_duration(99999, "100 us"));
    CHECK(shows_duration(59940 * NS_PER_MS, "59.9 s"));
    CHECK(shows_duration(59999 * NS_PER_MS, "1m"));
    CHECK(shows_duration(90 * NS_PER_S, "1m 30s"));
    CHECK(shows_duration(7500 * NS_PER_S, "2h 5m"));
    CHECK(shows_duration(3 * 86400 * NS_PER_S, "3d"));
    CHECK(shows_duration(UINT64_MAX, "213503d 23h"));
}

static void test_format_size(void) {
    CHECK(shows_size(0, "0 B"));
    CHECK(shows_size(512, "512 B"));
    CHECK(shows_size(1023, "1023 B"));
    CHECK(shows_size(1024, "1 KiB"));
    CHECK(shows_size(1536, "1.5 KiB"));
    CHECK(shows_size(12 * MIB, "12 MiB"));
    CHECK(shows_size(MIB - 1, "1 MiB"));
    CHECK(shows_size(GIB + 10 * MIB, "1.01 GiB"));
    CHECK(shows_size(1000 * MIB, "1000 MiB"));
    CHECK(shows_size(UINT64_MAX, "16 EiB"));
}

static void test_small_buffers(void) {
    char buf[8] = "XXXXXXX";
    CHECK_EQ(units_format_duration(1250 * NS_PER_US, buf, 4), 3);
    CHECK_STR(buf, "1.2");
    CHECK_EQ(units_format_size(512, buf, 1), 0);
    CHECK_STR(buf, "");
}

int main(void) {
    TEST(test_parse_duration);
    TEST(test_parse_duration_errors);
    TEST(test_parse_size);
    TEST(test_parse_size_errors);
    TEST(test_parse_rate);
    TEST(test_format_duration);
    TEST(test_format_size);
    TEST(test_small_buffers);
    return tap_finish();
}

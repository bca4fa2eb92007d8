/* SPDX-License-Identifier: MIT */
/* Times as people write them, and lists of jobs. */
#include "cli/when.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "tap.h"

/* Monday, 16 November 2026, 12:00:00 in Berlin. */
static const uint64_t now = 1794826800 * NS_PER_S;
static const uint64_t hour = 3600 * NS_PER_S;

static void check(const char *text, uint64_t expected) {
    uint64_t ns = 0;
    if (!CHECK_EQ(when_parse(text, now, &ns), 0) || !CHECK_EQ(ns, expected))
        printf("# %s\n", text);
}

static void test_times(void) {
    check("now", now);
    check("+90m", now + 3 * hour / 2);
    check("now+2h", now + 2 * hour);
    check("13:30", now + 3 * hour / 2);
    check("13:30:10", now + 3 * hour / 2 + 10 * NS_PER_S);
    check("9:00", now + 21 * hour); /* tomorrow */
    check("12:00", now + 24 * hour);
    check("noon", now + 24 * hour);
    check("midnight", now + 12 * hour);
    check("tomorrow", now + 12 * hour);
    check("2026-11-16T13:00", now + hour);
    check("2026-11-17", now + 12 * hour);
    check("2026-07-01T12:00:00", now - 138 * 24 * hour - hour); /* summer */
    check("@5", 5 * NS_PER_S);
}

static void test_no_times(void) {
    static const char *const bad[] = {
        "",           "later",      "25:00",    "12:60",      "12",          "12:5",
        "2026-13-01", "2026-02-30", "2026-1-1", "2026-11-1x", "12:00 today", "+",
        "+soon",      "now-1h",     "@",        "@x",         "2026-11-17T", "-5m"};
    uint64_t ns;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!CHECK_EQ(when_parse(bad[i], now, &ns), -EINVAL))
            printf("# %s\n", bad[i]);
}

static void test_jobs(void) {
    uint8_t out[AWAITS_MAX * AWAIT_BYTES];
    size_t len = 0;
    CHECK_EQ(when_after("--after", NULL, AWAIT_ANY, out, &len), 0);
    CHECK_EQ(len, 0);
    CHECK_EQ(when_after("--after", "12", AWAIT_ANY, out, &len), 0);
    CHECK_EQ(when_after("--after-ok", "3,4000000000", AWAIT_OK, out, &len), 0);
    CHECK_EQ(len, 3 * AWAIT_BYTES);
    CHECK(out[0] == AWAIT_ANY && load_le32(out + 1) == 12);
    CHECK(out[10] == AWAIT_OK && load_le32(out + 11) == 4000000000);
    static const char *const bad[] = {"", "x", "0", "12,", ",12", "1;2", "4294967296", "-1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(when_after("--after", bad[i], AWAIT_ANY, out, &len) != 0);
}

static void check_words(const char *text, const char *expected) {
    char out[WHEN_WORDS_MAX];
    CHECK_STR(when_words(bytes_from_str(text), now, out), expected);
}

static void test_words(void) {
    check_words("", "");
    check_words("waits for job 12 to end", "waits for job 12 to end");
    check_words("job 31 ends by @1794834300", "job 31 ends by 14:05");
    check_words("@1794913200, then @1794834300.", "2026-11-17 12:00, then 14:05.");
    check_words("a@b @ @x", "a@b @ @x");
}

int main(void) {
    setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
    tzset();
    TEST(test_times);
    TEST(test_no_times);
    TEST(test_jobs);
    TEST(test_words);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Tests of the names of output files. */
#include "client/pattern.h"

#include <errno.h>

#include "tap.h"

static const struct pattern_values values = {.job = 7, .rank = 12, .node = "n3"};

static void test_expand(void) {
    char out[32];
    CHECK_EQ(pattern_expand("out-%j.%r", &values, out, sizeof out), 0);
    CHECK_STR(out, "out-7.12");
    CHECK_EQ(pattern_expand("%n%%", &values, out, sizeof out), 0);
    CHECK_STR(out, "n3%");
    CHECK_EQ(pattern_expand("plain", &values, out, sizeof out), 0);
    CHECK_STR(out, "plain");
    CHECK_EQ(pattern_expand("%r%r%r%r", &values, out, 8), -ENAMETOOLONG);
    CHECK_EQ(pattern_expand("%x", &values, out, sizeof out), -EINVAL);
}

static void test_has(void) {
    CHECK(pattern_has("a%r", 'r') && !pattern_has("a%r", 'j'));
    CHECK(!pattern_has("%%r", 'r')); /* a percent sign, then a letter */
    CHECK(pattern_has("%%%r", 'r') && !pattern_has("r%", 'r'));
    CHECK(pattern_wrong("%j%r%n%%") == NULL);
    const char *pattern = "a%%%z";
    CHECK(pattern_wrong(pattern) == pattern + 3);
    CHECK(pattern_wrong("100%") != NULL);
}

int main(void) {
    TEST(test_expand);
    TEST(test_has);
    return tap_finish();
}

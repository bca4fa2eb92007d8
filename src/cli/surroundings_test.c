/* SPDX-License-Identifier: MIT */
/* Tests of the environment that a job gets. */
#include "cli/surroundings.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tap.h"

static const struct text_list none;

static void test_export(void) {
    struct surroundings s;
    struct bytes strings;
    setenv("STORM_TEST_A", "1", 1);
    setenv("STORM_TEST_B", "2=3", 1);
    CHECK_EQ(surroundings_make(&s, NULL, &none), 0);
    CHECK_STR(surroundings_get(&s, "STORM_TEST_A"), "1");
    surroundings_unset(&s, "STORM_TEST_A");
    CHECK(surroundings_get(&s, "STORM_TEST_A") == NULL);
    surroundings_fini(&s);
    CHECK_EQ(surroundings_make(&s, "STORM_TEST_B,STORM_TEST_NONE", &none), 0);
    CHECK_STR(surroundings_get(&s, "STORM_TEST_B"), "2=3");
    CHECK(surroundings_get(&s, "STORM_TEST_A") == NULL);
    CHECK(surroundings_get(&s, "PATH") != NULL); /* whatever was asked for */
    surroundings_fini(&s);
    CHECK_EQ(surroundings_make(&s, "none", &none), 0);
    CHECK_EQ(surroundings_strings(&s, &strings), 0);
    CHECK_EQ(strings_count(strings), 1);
    surroundings_fini(&s);
}

static void test_env(void) {
    struct surroundings s;
    struct bytes strings;
    const struct text_list more = {.count = 3, .at = {"A=1", "AB=x", "A=2"}};
    CHECK_EQ(surroundings_make(&s, "none", &more), 0);
    CHECK_STR(surroundings_get(&s, "A"), "2");
    CHECK_STR(surroundings_get(&s, "AB"), "x");
    CHECK_EQ(surroundings_strings(&s, &strings), 0);
    size_t at = 0;
    CHECK_STR(strings_next(strings, &at), "A=2");
    CHECK_STR(strings_next(strings, &at), "AB=x");
    surroundings_fini(&s);
    const struct text_list wrong = {.count = 1, .at = {"NAME"}};
    CHECK_EQ(surroundings_make(&s, "none", &wrong), -EINVAL);
    surroundings_fini(&s);
}

static void test_limits(void) {
    uint8_t room[LIMITS_MAX * SPEC_LIMIT_BYTES];
    struct rlimit now;
    struct rlimit_spec l;
    bool found = false;
    struct bytes limits = surroundings_limits(room);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
    for (uint32_t i = 0; spec_limit_load(&l, limits, i); i++)
        if (l.resource == RLIMIT_NOFILE)
            found = l.soft == now.rlim_cur && l.hard == now.rlim_max;
    CHECK(found);
    mode_t before = umask(027);
    CHECK_EQ(surroundings_umask(), 027);
    CHECK_EQ(umask(before), 027); /* and it was left alone */
}

int main(void) {
    TEST(test_export);
    TEST(test_env);
    TEST(test_limits);
    return tap_finish();
}

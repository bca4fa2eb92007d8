/* SPDX-License-Identifier: MIT */
/* Distances between names, and which one is meant. */
#include "base/nearest.h"

#include "tap.h"

static const char *const names[] = {"bench", "campaign", "demo", "help", "version"};

static void test_distance(void) {
    CHECK_EQ(nearest_distance("demo", "demo"), 0);
    CHECK_EQ(nearest_distance("dmeo", "demo"), 1); /* neighbours swapped */
    CHECK_EQ(nearest_distance("dem", "demo"), 1);
    CHECK_EQ(nearest_distance("kitten", "sitting"), 3);
    CHECK_EQ(nearest_distance("", "abc"), 3);
    CHECK_EQ(nearest_distance("nic", "NICE"), 1);
    CHECK_EQ(nearest_distance("Mdeo", "demo"), 2);
}

static void test_name(void) {
    CHECK_STR(nearest_name("benhc", names, 5), "bench");
    CHECK_STR(nearest_name("campain", names, 5), "campaign");
    CHECK_STR(nearest_name("verison", names, 5), "version");
    CHECK_STR(nearest_name("DEMO", names, 5), "demo");
    CHECK(nearest_name("xyzzy", names, 5) == NULL);
    CHECK(nearest_name("", names, 5) == NULL);
    CHECK(nearest_name("demodemodemodemodemodemodemodemodemodemodemodemodemodemodemodemodemo",
                       names, 5) == NULL);
}

int main(void) {
    TEST(test_distance);
    TEST(test_name);
    return tap_finish();
}

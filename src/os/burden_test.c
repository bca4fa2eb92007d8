/* SPDX-License-Identifier: MIT */
/* What the system says of its load and memory, read. */
#include "os/burden.h"

#include "base/units.h"
#include "tap.h"

static void test_texts(void) {
    struct input_gauged g;
    burden_parse("14.07 6.90 3.25 18/164 29475\n",
                 "MemTotal:       24682416 kB\nMemFree:        21738880 kB\n"
                 "MemAvailable:   23959084 kB\n",
                 &g);
    CHECK_EQ(g.load_x100, 1407);
    CHECK_EQ(g.memory_bytes, 24682416ULL * KIB);
    CHECK_EQ(g.memory_used, (24682416ULL - 23959084) * KIB);
    burden_parse("", "", &g);
    CHECK_EQ(g.load_x100, 0);
    CHECK_EQ(g.memory_bytes, 0);
    CHECK_EQ(g.memory_used, 0);
}

static void test_here(void) {
    struct input_gauged g;
    burden_read(&g);
    CHECK(g.memory_bytes > 0);
    CHECK(g.memory_used > 0 && g.memory_used < g.memory_bytes);
}

int main(void) {
    TEST(test_texts);
    TEST(test_here);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Who is late: while little is known only what takes many times as long, then not who is merely slow but who is far beyond all
 * others. */
#include "wodi/straggle.h"

#include "tap.h"

#define S ((uint64_t)1000000000)

static void test_verdicts(void) {
    struct straggle s = {0};
    CHECK(!straggle_late(&s, 10 * S, S));
    CHECK(straggle_late(&s, 20 * S, S));
    CHECK(!straggle_late(&s, S / 2, S / 10000));
    for (int i = 0; i < 200; i++)
        straggle_add(&s, S + (uint64_t)i % 20 * S / 100, S);
    CHECK(!straggle_late(&s, S, S));
    CHECK(!straggle_late(&s, 19 * S / 10, S));
    CHECK(straggle_late(&s, 4 * S, S));
    CHECK(straggle_late(&s, 40 * S, 10 * S));
    CHECK(!straggle_late(&s, 4 * S, 10 * S));
    /* Hiccups of a machine do not make a short step late. */
    CHECK(!straggle_late(&s, S / 100, S / 10000));
}

static void test_wide(void) {
    struct straggle s = {0};
    for (int i = 0; i < 10000; i++)
        straggle_add(&s, i % 10 == 0 ? 8 * S : S, S);
    CHECK(!straggle_late(&s, 8 * S, S));
    CHECK(straggle_late(&s, 30 * S, S));
    CHECK(s.total <= 4096);
}

int main(void) {
    TEST(test_verdicts);
    TEST(test_wide);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Timers of machines: set, moved, cancelled, due in order. */
#include "os/alarms.h"

#include "tap.h"

static void test_none(void) {
    struct alarms a = {0};
    struct alarm due;
    CHECK_EQ(alarms_next(&a), 0);
    CHECK(!alarms_due(&a, UINT64_MAX, &due));
}

static void test_due_in_order_and_once(void) {
    struct alarms a = {0};
    struct alarm due;
    alarms_set(&a, 0, 1, 300);
    alarms_set(&a, 1, 1, 100);
    alarms_set(&a, 0, 2, 200);
    CHECK_EQ(alarms_next(&a), 100);
    CHECK(!alarms_due(&a, 99, &due));
    CHECK(alarms_due(&a, 200, &due));
    CHECK_EQ(due.at, 100);
    CHECK_EQ(due.layer, 1);
    CHECK_EQ(due.id, 1);
    CHECK(alarms_due(&a, 200, &due));
    CHECK_EQ(due.at, 200);
    CHECK_EQ(due.id, 2);
    CHECK(!alarms_due(&a, 200, &due));
    CHECK_EQ(alarms_next(&a), 300);
    CHECK(alarms_due(&a, 301, &due));
    CHECK(!alarms_due(&a, UINT64_MAX, &due));
    CHECK_EQ(alarms_next(&a), 0);
}

static void test_moved_and_cancelled(void) {
    struct alarms a = {0};
    struct alarm due;
    alarms_set(&a, 0, 1, 100);
    alarms_set(&a, 0, 1, 500);
    CHECK(!alarms_due(&a, 499, &due));
    alarms_set(&a, 0, 1, 50);
    CHECK_EQ(alarms_next(&a), 50);
    CHECK(alarms_due(&a, 60, &due));
    CHECK(!alarms_due(&a, 1000, &due)); /* the former times are gone */
    alarms_set(&a, 0, 1, 100);
    alarms_set(&a, 1, 1, 100);
    alarms_set(&a, 0, 1, 0);
    CHECK(alarms_due(&a, 100, &due));
    CHECK_EQ(due.layer, 1); /* the same id of another layer is another timer */
    CHECK(!alarms_due(&a, 100, &due));
    alarms_set(&a, 0, 99, 0); /* never set */
    CHECK_EQ(alarms_next(&a), 0);
}

/* A place that has become free before its own must not make a second timer of one. */
static void test_one_timer_stays_one(void) {
    struct alarms a = {0};
    struct alarm due;
    alarms_set(&a, 0, 1, 10);
    alarms_set(&a, 0, 2, 20);
    alarms_set(&a, 0, 1, 0);
    alarms_set(&a, 0, 2, 30);
    CHECK(!alarms_due(&a, 29, &due));
    CHECK(alarms_due(&a, 30, &due));
    CHECK(!alarms_due(&a, 30, &due));
}

/* Ids may be new each time, as for jobs: what counts is how many are set. */
static void test_ids_without_end(void) {
    struct alarms a = {0};
    struct alarm due;
    for (uint32_t i = 0; i < 10 * ALARMS_MAX; i++) {
        alarms_set(&a, 0, i, i + 1);
        if (i % 2)
            alarms_set(&a, 0, i, 0);
        else
            CHECK(alarms_due(&a, i + 1, &due) && due.id == i);
    }
    for (uint32_t i = 0; i < ALARMS_MAX; i++)
        alarms_set(&a, 1, i, 1000 - i);
    for (uint32_t i = ALARMS_MAX; i-- > 0;)
        CHECK(alarms_due(&a, 1000, &due) && due.id == i);
}

int main(void) {
    TEST(test_none);
    TEST(test_due_in_order_and_once);
    TEST(test_moved_and_cancelled);
    TEST(test_one_timer_stays_one);
    TEST(test_ids_without_end);
    return tap_finish();
}

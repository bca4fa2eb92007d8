/* SPDX-License-Identifier: MIT */
/* Tests of the coverage table. */
#include "sim/coverage.h"

#include "tap.h"

static void test_rotation_visits_every_cell_once(void) {
    struct coverage c = {0};
    for (uint64_t i = 0; i < COVERAGE_CELLS; i++) {
        CHECK_EQ(coverage_empty(&c), COVERAGE_CELLS - i);
        struct coverage_cell cell = coverage_cell(i);
        coverage_add(&c, &cell);
    }
    CHECK_EQ(coverage_empty(&c), 0);
    CHECK_EQ(coverage_total(&c), COVERAGE_CELLS);
}

static void test_neighbours_in_the_rotation_differ(void) {
    for (uint64_t i = 0; i < COVERAGE_CELLS; i++) {
        struct coverage_cell a = coverage_cell(i), b = coverage_cell(i + 1);
        CHECK(a.phase != b.phase);
        CHECK(a.kind != b.kind);
    }
}

static void test_merge_adds(void) {
    struct coverage a = {0}, b = {0};
    struct coverage_cell cell = coverage_cell(7);
    coverage_add(&a, &cell);
    coverage_add(&b, &cell);
    cell = coverage_cell(8);
    coverage_add(&b, &cell);
    coverage_merge(&a, &b);
    CHECK_EQ(coverage_total(&a), 3);
    CHECK_EQ(coverage_empty(&a), COVERAGE_CELLS - 2);
}

int main(void) {
    TEST(test_rotation_visits_every_cell_once);
    TEST(test_neighbours_in_the_rotation_differ);
    TEST(test_merge_adds);
    return tap_finish();
}

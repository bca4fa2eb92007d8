/* SPDX-License-Identifier: MIT */
/* Each policy on small machines, decision by decision. */
#include "sched/policies.h"

#include "sched/bench_court.h"
#include "tap.h"

static void test_names(void) {
    static const char *const names[] = {"fcfs", "easy",          "easy-sjbf", "conservative",
                                        "gang", "gang-backfill", "local"};
    for (uint32_t i = 0; i < 7; i++)
        CHECK_STR(policies_at(i)->name, names[i]);
    CHECK(policies_at(7) == NULL);
    CHECK(policies_find("gang") == &policy_gang);
    CHECK(policies_find("gan") == NULL);
}

static void test_fcfs(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    bench_init(&b, &c, &policy_fcfs);
    CHECK_STR(bench_arrives(&b, 0, 'A', 3, 10), "A:[0-2]@0");
    CHECK_STR(bench_arrives(&b, 0, 'B', 2, 10), "");
    CHECK_STR(bench_arrives(&b, 0, 'C', 1, 1), ""); /* it would fit: nothing overtakes */
    CHECK_STR(bench_ends(&b, 10, 'A'), "B:[0-1]@0 C:2@0");
    bench_fini(&b);
}

static void test_easy(void) {
    struct bench b;
    struct court_config c = bench_config(10, 1, 1);
    bench_init(&b, &c, &policy_easy);
    CHECK_STR(bench_arrives(&b, 0, 'A', 4, 20), "A:[0-3]@0");
    CHECK_STR(bench_arrives(&b, 0, 'B', 2, 20), "B:[4-5]@0");
    CHECK_STR(bench_arrives(&b, 0, 'H', 7, 50), "");          /* at 20: ten are free, three extra */
    CHECK_STR(bench_arrives(&b, 0, 'C', 2, 90), "C:[6-7]@0"); /* two of the extra ones */
    CHECK_STR(bench_arrives(&b, 0, 'D', 2, 21), "");          /* too long, and only one is left */
    CHECK_STR(bench_arrives(&b, 0, 'E', 1, 20), "E:8@0");     /* over by then */
    CHECK_STR(bench_arrives(&b, 0, 'F', 1, 99), "F:9@0");     /* the last one */
    CHECK_EQ(bench_job(&b, 'H')->reserved, 20);
    CHECK_STR(bench_ends(&b, 19, 'E'), "");
    CHECK_STR(bench_arrives(&b, 19, 'G', 1, 2), ""); /* would delay the head by a tick */
    CHECK_STR(bench_ends(&b, 20, 'A'), "");
    CHECK_STR(bench_ends(&b, 20, 'B'), "H:[0-5,8]@0");
    bench_fini(&b);
}

static void test_easy_without_estimates(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    bench_init(&b, &c, &policy_easy);
    CHECK_STR(bench_arrives(&b, 0, 'A', 2, STORM_NEVER), "A:[0-1]@0");
    CHECK_STR(bench_arrives(&b, 0, 'H', 4, 5), "");
    CHECK_EQ(bench_job(&b, 'H')->reserved, STORM_NEVER);
    CHECK_STR(bench_arrives(&b, 0, 'B', 2, STORM_NEVER), "B:[2-3]@0"); /* nothing is promised */
    bench_fini(&b);
}

/* A job that outlasts its estimate is expected to end any moment. */
static void test_easy_overdue(void) {
    struct bench b;
    struct court_config c = bench_config(2, 1, 1);
    bench_init(&b, &c, &policy_easy);
    CHECK_STR(bench_arrives(&b, 0, 'A', 1, 10), "A:0@0");
    CHECK_STR(bench_arrives(&b, 0, 'H', 2, 10), "");
    CHECK_STR(bench_arrives(&b, 15, 'B', 1, 2), "");
    CHECK_EQ(bench_job(&b, 'H')->reserved, 16);
    CHECK_STR(bench_ends(&b, 30, 'A'), "H:[0-1]@0");
    bench_fini(&b);
}

static void test_easy_sjbf(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    bench_init(&b, &c, &policy_easy_sjbf);
    CHECK_STR(bench_arrives(&b, 0, 'A', 4, 10), "A:[0-3]@0");
    CHECK_STR(bench_arrives(&b, 0, 'B', 2, 20), "");
    CHECK_STR(bench_arrives(&b, 0, 'H', 4, 50), "");
    CHECK_STR(bench_arrives(&b, 0, 'C', 1, 9), "");
    CHECK_STR(bench_arrives(&b, 0, 'D', 1, 7), "");
    CHECK_STR(bench_arrives(&b, 0, 'E', 1, 7), "");
    CHECK_STR(bench_ends(&b, 10, 'A'), "B:[0-1]@0 D:2@0 E:3@0");
    CHECK_STR(bench_ends(&b, 17, 'D'), "C:2@0");
    bench_fini(&b);
}

static void test_conservative(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    c.ends_hold = true;
    bench_init(&b, &c, &policy_conservative);
    CHECK_STR(bench_arrives(&b, 0, 'A', 3, 10), "A:[0-2]@0");
    CHECK_STR(bench_arrives(&b, 0, 'B', 4, 10), "");
    CHECK_STR(bench_arrives(&b, 0, 'C', 2, 10), "");
    CHECK_STR(bench_arrives(&b, 0, 'D', 1, 11), ""); /* fits, but would delay B */
    CHECK_STR(bench_arrives(&b, 0, 'E', 1, 10), "E:3@0");
    CHECK_EQ(bench_job(&b, 'B')->reserved, 10);
    CHECK_EQ(bench_job(&b, 'C')->reserved, 20);
    CHECK_EQ(bench_job(&b, 'D')->reserved, 20);
    CHECK_STR(bench_ends(&b, 4, 'A'), "");
    CHECK_EQ(bench_job(&b, 'B')->reserved, 10); /* E is still there */
    CHECK_EQ(bench_job(&b, 'C')->reserved, 20); /* ten ticks would delay B */
    CHECK_STR(bench_ends(&b, 5, 'E'), "B:[0-3]@0");
    CHECK_EQ(bench_job(&b, 'C')->reserved, 15);
    CHECK_STR(bench_ends(&b, 15, 'B'), "C:[0-1]@0 D:2@0");
    bench_fini(&b);
}

/* ---- scheduling.md, gang scheduling: its two worked examples ---- */

static void test_gang_worked_example(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 3);
    bench_init(&b, &c, &policy_gang);
    CHECK_STR(bench_arrives(&b, 0, 'A', 4, STORM_NEVER), "A:[0-3]@0");
    CHECK_STR(bench_arrives(&b, 0, 'B', 2, STORM_NEVER), "B:[0-1]@1");
    CHECK_STR(bench_arrives(&b, 0, 'C', 2, STORM_NEVER), "C:[2-3]@1");
    CHECK_STR(bench_arrives(&b, 0, 'D', 1, STORM_NEVER), "D:0@2 C~6"); /* C as well in slot 2 */
    CHECK_EQ(bench_job(&b, 'A')->slots, 1);
    CHECK_EQ(bench_job(&b, 'B')->slots, 2);
    CHECK_EQ(bench_job(&b, 'D')->slots, 4);
    CHECK_STR(bench_arrives(&b, 0, 'E', 4, STORM_NEVER), ""); /* the limit is reached */
    CHECK_STR(bench_ends(&b, 5, 'B'), "D~2 E:[0-3]@2 C~2");
    CHECK_EQ(bench_job(&b, 'A')->slot, 0);
    CHECK_EQ(bench_job(&b, 'C')->slot, 1);
    CHECK_EQ(bench_job(&b, 'D')->slot, 1);
    CHECK_EQ(bench_job(&b, 'E')->slot, 2);
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

/* What a drained node still runs has no part in what the others have free. */
static void test_conservative_drained(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    bench_init(&b, &c, &policy_conservative);
    CHECK_STR(bench_arrives(&b, 0, 'A', 1, STORM_NEVER), "A:0@0");
    bench_usable(&b, 1, 0, 0, false);
    CHECK_STR(bench_arrives(&b, 2, 'B', 3, 10), "B:[1-3]@0");
    CHECK_STR(bench_arrives(&b, 3, 'C', 3, 5), "");
    CHECK_EQ(bench_job(&b, 'C')->reserved, 12);
    CHECK_STR(bench_ends(&b, 5, 'A'), "");
    CHECK_STR(bench_ends(&b, 12, 'B'), "C:[1-3]@0");
    bench_fini(&b);
}

/* Nor does it come back to anybody when that ends. */
static void test_easy_drained(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    bench_init(&b, &c, &policy_easy);
    CHECK_STR(bench_arrives(&b, 0, 'A', 1, 10), "A:0@0");
    CHECK_STR(bench_arrives(&b, 0, 'B', 2, 20), "B:[1-2]@0");
    bench_usable(&b, 1, 0, 0, false);
    CHECK_STR(bench_arrives(&b, 1, 'H', 3, 5), "");
    CHECK_EQ(bench_job(&b, 'H')->reserved, 20);
    CHECK_STR(bench_arrives(&b, 1, 'L', 1, 99), ""); /* no PE is extra then */
    CHECK_STR(bench_arrives(&b, 1, 'S', 1, 19), "S:3@0");
    CHECK_STR(bench_ends(&b, 10, 'A'), "");
    CHECK_STR(bench_ends(&b, 20, 'S'), "");
    CHECK_STR(bench_ends(&b, 20, 'B'), "H:[1-3]@0");
    bench_fini(&b);
}

static const char *wide_arrives(struct bench *b, char letter, uint32_t nodes, uint32_t ppn,
                                uint64_t estimate) {
    struct court_order o = bench_order(letter, nodes, estimate);
    o.ppn = ppn;
    return bench_order_arrives(b, 0, &o);
}

/* Where there is least to do may be what is held for the head. */
static void test_gang_backfill_leaves_what_is_held(void) {
    struct bench b;
    struct court_config c = bench_config(4, 2, 2);
    bench_init(&b, &c, &policy_gang_backfill);
    CHECK_STR(wide_arrives(&b, 'E', 4, 2, STORM_NEVER), "E:[0-3]@0");
    CHECK_STR(wide_arrives(&b, 'A', 2, 2, 10), "A:[0-1]@1");
    CHECK_STR(wide_arrives(&b, 'H', 3, 2, 10), "");
    CHECK_EQ(bench_job(&b, 'H')->reserved, 20);
    for (char letter = 'P'; letter <= 'S'; letter++)
        wide_arrives(&b, letter, 1, 1, STORM_NEVER);
    CHECK(strstr(bench_ends(&b, 20, 'A'), "H:") != NULL);
    bench_fini(&b);
}

static void test_gang_backfill_worked_example(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 2);
    bench_init(&b, &c, &policy_gang_backfill);
    CHECK_STR(bench_arrives(&b, 0, 'A', 4, 10), "A:[0-3]@0");
    CHECK_STR(bench_arrives(&b, 0, 'B', 2, 20), "B:[0-1]@1");
    CHECK_STR(bench_arrives(&b, 0, 'C', 4, 5), "");
    CHECK_EQ(bench_job(&b, 'C')->reserved, 20);
    CHECK_STR(bench_arrives(&b, 0, 'D', 2, 3), "D:[2-3]@1");
    CHECK_STR(bench_arrives(&b, 1, 'F', 2, 30), "");
    CHECK_STR(bench_ends(&b, 6, 'D'), "F:[2-3]@1");
    CHECK_EQ(bench_job(&b, 'C')->reserved, 20);
    CHECK_STR(bench_ends(&b, 20, 'A'), "C:[0-3]@0");
    bench_fini(&b);
}

/* ---- more of gang scheduling ---- */

/* Any number of processors; if no block is idle the processors are still used. */
static void test_gang_odd_machine(void) {
    struct bench b;
    struct court_config c = bench_config(7, 1, 1);
    bench_init(&b, &c, &policy_gang);
    CHECK_STR(bench_arrives(&b, 0, 'A', 3, 10), "A:[0-2]@0");
    bench_fini(&b);
    bench_init(&b, &c, &policy_gang);
    CHECK_STR(bench_arrives(&b, 0, 'A', 2, 10), "A:[0-1]@0");
    CHECK_STR(bench_arrives(&b, 0, 'B', 1, 10), "B:2@0");
    CHECK_STR(bench_arrives(&b, 0, 'C', 2, 10), "C:[4-5]@0");
    CHECK_STR(bench_arrives(&b, 0, 'D', 2, 10), "D:[3,6]@0");
    bench_fini(&b);
}

static void test_gang_nodes_of_several_pes(void) {
    struct bench b;
    struct court_config c = bench_config(2, 2, 2);
    bench_init(&b, &c, &policy_gang);
    struct court_order o = bench_order('A', 2, 10);
    o.ppn = 2;
    CHECK_STR(bench_order_arrives(&b, 0, &o), "A:[0-1]@0");
    CHECK_STR(bench_arrives(&b, 0, 'B', 2, 10), "B:[0-1]@1");
    CHECK_STR(bench_arrives(&b, 0, 'C', 2, 10), "C:[0-1]@1"); /* beside B */
    CHECK_STR(bench_arrives(&b, 0, 'D', 1, 10), "");
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

static void test_local(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 2);
    bench_init(&b, &c, &policy_local);
    CHECK_STR(bench_arrives(&b, 0, 'A', 4, 10), "A:[0-3]@0");
    CHECK_STR(bench_arrives(&b, 0, 'B', 2, 10), "B:[0-1]@1");
    CHECK_EQ(bench_job(&b, 'A')->slots, 3);
    CHECK_EQ(court_due(b.court), STORM_NEVER); /* nobody takes turns */
    CHECK_STR(bench_arrives(&b, 0, 'C', 4, 10), "");
    CHECK_STR(bench_arrives(&b, 0, 'D', 1, 10), "D:2@1");
    CHECK_STR(bench_ends(&b, 9, 'A'), "C:[0-3]@0");
    bench_fini(&b);
}

int main(void) {
    TEST(test_names);
    TEST(test_fcfs);
    TEST(test_easy);
    TEST(test_easy_without_estimates);
    TEST(test_easy_overdue);
    TEST(test_easy_sjbf);
    TEST(test_conservative);
    TEST(test_conservative_drained);
    TEST(test_easy_drained);
    TEST(test_gang_backfill_leaves_what_is_held);
    TEST(test_gang_worked_example);
    TEST(test_gang_backfill_worked_example);
    TEST(test_gang_odd_machine);
    TEST(test_gang_nodes_of_several_pes);
    TEST(test_local);
    return tap_finish();
}

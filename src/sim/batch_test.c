/* SPDX-License-Identifier: MIT */
/* Small traces whose schedules were worked out by hand, and the model of workloads. */
#include "sim/batch.h"

#include <stdlib.h>

#include "sched/policies.h"
#include "sim/lublin.h"
#include "tap.h"

struct line {
    uint64_t submit, run, estimate;
    uint32_t pes;
};

/* Starts, in seconds, as text. */
static const char *starts(const struct line *lines, size_t count, struct batch_config c) {
    static char text[400];
    struct workload w;
    struct batch_result r;
    size_t len = 0;
    workload_init(&w);
    for (size_t i = 0; i < count; i++) {
        struct workload_job j = {.id = i + 1,
                                 .submit = lines[i].submit,
                                 .run = lines[i].run,
                                 .estimate = lines[i].estimate,
                                 .pes = lines[i].pes};
        workload_add(&w, &j);
    }
    CHECK_EQ(batch_run(&w, &c, &r), 0);
    CHECK_STR(r.fault, "");
    for (size_t i = 0; i < count; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%llu-%llu", i ? " " : "",
                                (unsigned long long)(r.times[i].start / BATCH_TICKS),
                                (unsigned long long)(r.times[i].end / BATCH_TICKS));
    free(r.times);
    workload_fini(&w);
    return text;
}

#define STARTS(policy_, pes_, ...)                                           \
    starts((const struct line[]){__VA_ARGS__},                               \
           sizeof((const struct line[]){__VA_ARGS__}) / sizeof(struct line), \
           (struct batch_config){.pes = pes_, .policy = &(policy_), .slots = 2})

/* The second job is submitted in the second in which the first one ends. */
static void test_same_second(void) {
    /* The first has used up its estimate: it counts as ended, and the second overtakes nobody. */
    CHECK_STR(STARTS(policy_fcfs, 4, {0, 10, 10, 4}, {10, 5, 5, 4}), "0-10 10-15");
    /* Which of two that fit is started by a submission depends on it: EASY does not know that the first has
     * ended, as it ends early, and lets the third overtake before it hears so. */
    CHECK_STR(STARTS(policy_easy, 4, {0, 10, 50, 3}, {1, 5, 5, 4}, {10, 20, 20, 1}),
              "0-10 30-35 10-30");
    /* And here it does know. */
    CHECK_STR(STARTS(policy_easy, 4, {0, 10, 10, 3}, {1, 5, 5, 4}, {10, 20, 20, 1}),
              "0-10 10-15 15-35");
}

static void test_backfilling(void) {
    struct line lines[] = {
        {0, 10, 10, 2}, {1, 10, 10, 4}, {2, 8, 8, 2}, {3, 9, 9, 2}, {4, 6, 6, 2}};
    struct batch_config c = {.pes = 4, .slots = 1};
    c.policy = &policy_fcfs;
    CHECK_STR(starts(lines, 5, c), "0-10 10-20 20-28 20-29 28-34");
    c.policy = &policy_easy;
    CHECK_STR(starts(lines, 5, c), "0-10 10-20 2-10 20-29 20-26");
    c.policy = &policy_conservative;
    CHECK_STR(starts(lines, 5, c), "0-10 10-20 2-10 20-29 20-26");
}

/* Two slots: each job runs at half the pace while the other is there. */
static void test_windows(void) {
    struct line lines[] = {{0, 10, 10, 2}, {1, 10, 20, 2}, {2, 4, 5, 2}, {3, 3, 3, 4}};
    const struct batch_window windows[] = {{0, 1, 20, 30}, {2, 3, 40, 50}};
    struct batch_config c = {.pes = 4, .slots = 1, .windows = windows, .window_count = 2};
    c.policy = &policy_fcfs; /* the second cannot be over by 20, but by 40 */
    CHECK_STR(starts(lines, 4, c), "0-10 1-11 10-14 14-17");
    c.policy = &policy_easy;
    lines[1].estimate = 60; /* neither by 20 nor by 40 */
    CHECK_STR(starts(lines, 4, c), "0-10 30-40 2-6 10-13");
}

static void test_slices(void) {
    CHECK_STR(STARTS(policy_gang, 4, {0, 10, 10, 4}, {0, 10, 10, 4}), "0-20 0-20");
    CHECK_STR(STARTS(policy_gang, 4, {0, 10, 10, 4}, {4, 3, 3, 4}), "0-13 4-10");
    CHECK_STR(STARTS(policy_gang, 4, {0, 10, 10, 2}, {0, 10, 10, 2}), "0-10 0-10");
    CHECK_STR(STARTS(policy_local, 4, {0, 10, 10, 4}, {0, 10, 10, 2}), "0-20 0-20");
    /* Alternative scheduling: the third shares nothing with the second, and runs in both slots. */
    CHECK_STR(STARTS(policy_gang, 4, {0, 10, 10, 4}, {0, 10, 10, 2}, {0, 10, 10, 2}),
              "0-20 0-20 0-20");
    const struct line two[] = {{0, 10, 10, 4}, {0, 10, 10, 4}};
    struct batch_config c = {.pes = 4,
                             .policy = &policy_gang,
                             .slots = 2,
                             .quantum_ns = 1000000,
                             .switch_cost_ns = 200000};
    CHECK_STR(starts(two, 2, c), "0-25 0-25"); /* a fifth of each slice is lost */
}

static void test_empty(void) {
    struct workload w;
    struct batch_result r;
    struct batch_config c = {.pes = 4, .policy = &policy_easy};
    workload_init(&w);
    CHECK_EQ(batch_run(&w, &c, &r), 0);
    free(r.times);
}

static void test_lublin(void) {
    struct workload a, b;
    struct lublin_config c = {.jobs = 3000, .pes = 128, .seed = 7, .load_permille = 700};
    workload_init(&a);
    workload_init(&b);
    CHECK_EQ(lublin_draw(&c, &a), 0);
    CHECK_EQ(lublin_draw(&c, &b), 0);
    CHECK_EQ(a.count, 3000);
    CHECK(memcmp(a.jobs, b.jobs, a.count * sizeof a.jobs[0]) == 0);
    uint64_t work = 0, serial = 0;
    for (size_t i = 0; i < a.count; i++) {
        const struct workload_job *j = &a.jobs[i];
        CHECK(j->pes >= 1 && j->pes <= 128 && j->run >= 1 && j->run <= 162755);
        CHECK(i == 0 || a.jobs[i - 1].submit <= j->submit);
        work += j->pes * j->run;
        serial += j->pes == 1;
    }
    uint64_t load = work * 1000 / (128 * (a.jobs[2999].submit - a.jobs[0].submit));
    CHECK(load >= 698 && load <= 702);
    CHECK(serial > 600 && serial < 1000);
    c.seed = 8;
    workload_fini(&b);
    CHECK_EQ(lublin_draw(&c, &b), 0);
    CHECK(memcmp(a.jobs, b.jobs, a.count * sizeof a.jobs[0]) != 0);
    workload_fini(&a);
    workload_fini(&b);
}

int main(void) {
    TEST(test_same_second);
    TEST(test_backfilling);
    TEST(test_windows);
    TEST(test_slices);
    TEST(test_empty);
    TEST(test_lublin);
    return tap_finish();
}

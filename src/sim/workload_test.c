/* SPDX-License-Identifier: MIT */
/* Lines of the Standard Workload Format, and what becomes of them. */
#include "sim/workload.h"

#include <errno.h>

#include "tap.h"

static char why[WORKLOAD_WHY_MAX];

static int line(struct workload *w, const char *text) {
    return workload_line(w, bytes_from_str(text), why);
}

static void test_jobs(void) {
    static const struct {
        const char *text;
        uint64_t submit, run, estimate;
        uint32_t pes;
    } cases[] = {
        {"1 10 5 100 4 -1 -1 8 200 -1 1 3 3 -1 -1 -1 -1 -1", 10, 100, 200, 8},
        {" 2\t10 5 100 4 -1 -1 -1 200 -1 1 3 3 -1 -1 -1 -1 -1\r", 10, 100, 200, 4},
        {"3 10 5 100 4 -1 -1 8 -1 -1 1 3 3 -1 -1 -1 -1 -1", 10, 100, 100, 8},
        {"4 10 5 300 4 -1 -1 8 200 -1 1 3 3 -1 -1 -1 -1 -1", 10, 200, 300, 8}, /* cut */
        {"5 10 5 -1 -1 -1 -1 8 200 -1 5 3 3 -1 -1 -1 -1 -1", 10, 1, 1, 1},     /* never ran */
        {"6 10 5 0 4 -1 -1 8 200 -1 0 3 3 -1 -1 -1 -1 -1", 10, 1, 1, 4},
        {"7 10 5 0.5 4 -1 -1 8 200 -1 0 3 3 -1 -1 -1 -1 -1", 10, 1, 200, 8},
        {"8 10.7 5 99.9 4 7.38 -1 8 2e1 -1 0 3 3 -1 -1 -1 -1 -1", 0, 0, 0, 0},
        {"9 10.7 5 99.9 4 7.38 -1 8 200.5 -1 0 3 3 -1 -1 -1 -1 -1", 10, 99, 200, 8},
    };
    struct workload w;
    workload_init(&w);
    for (size_t i = 0, jobs = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int r = line(&w, cases[i].text);
        CHECK_EQ(r, cases[i].run == 0 ? -EINVAL : 0);
        if (r < 0)
            continue;
        const struct workload_job *j = &w.jobs[jobs++];
        CHECK_EQ(w.count, jobs);
        CHECK_EQ(j->submit, cases[i].submit);
        CHECK_EQ(j->run, cases[i].run);
        CHECK_EQ(j->estimate, cases[i].estimate);
        CHECK_EQ(j->pes, cases[i].pes);
    }
    CHECK_EQ(w.never_ran, 2);
    CHECK_EQ(w.cut, 1);
    CHECK_EQ(w.malformed, 1);
    workload_fini(&w);
}

static void test_malformed(void) {
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"1 2 3", "3 fields instead of 18"},
        {"1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19", "19 fields instead of 18"},
        {"1 2 x 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18", "field 3 is not a number: \"x\""},
        {"1 2 - 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18", "field 3 is not a number: \"-\""},
        {"1 2 3 4 5 6 7 8 99999999999999999999 10 11 12 13 14 15 16 17 18",
         "field 9 is not a number: \"99999999999999999999\""},
        {"1 -1 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18", "no time of submission"},
        {"-1 0 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18", "the job has no number"},
        {"\x01\x80", "field 1 is not a number: \"??\""},
    };
    struct workload w;
    workload_init(&w);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_EQ(line(&w, cases[i].text), -EINVAL);
        CHECK_STR(why, cases[i].why);
        CHECK_EQ(w.malformed, i + 1);
    }
    CHECK_EQ(w.count, 0);
    CHECK_EQ(line(&w, ""), 0);
    CHECK_EQ(line(&w, "  \t"), 0);
    workload_fini(&w);
}

static void test_header(void) {
    struct workload w;
    workload_init(&w);
    CHECK_EQ(line(&w, "; MaxNodes: 12"), 0);
    CHECK_EQ(w.pes, 12);
    CHECK_EQ(line(&w, ";MaxProcs:   96 (all)"), 0);
    CHECK_EQ(line(&w, "; MaxNodes: 13"), 0);
    CHECK_EQ(w.pes, 96);
    CHECK_EQ(line(&w, "; MaxProcs: -1"), 0);
    CHECK_EQ(line(&w, "; MaxProcs: 99999999999999"), 0);
    CHECK_EQ(w.pes, 96);
    CHECK_EQ(w.malformed, 0);
    workload_fini(&w);
}

static void test_order(void) {
    struct workload w;
    workload_init(&w);
    for (uint64_t i = 0; i < 1000; i++) {
        struct workload_job j = {.id = i, .submit = i * 7919 % 100, .pes = (uint32_t)i + 1};
        CHECK_EQ(workload_add(&w, &j), 0);
    }
    CHECK_EQ(workload_sort(&w), 0);
    for (size_t i = 1; i < w.count; i++)
        CHECK(w.jobs[i - 1].submit < w.jobs[i].submit ||
              (w.jobs[i - 1].submit == w.jobs[i].submit && w.jobs[i - 1].id < w.jobs[i].id));
    CHECK_EQ(workload_fit(&w, 900), 100);
    CHECK_EQ(workload_fit(&w, 900), 0);
    workload_fini(&w);
}

int main(void) {
    TEST(test_jobs);
    TEST(test_malformed);
    TEST(test_header);
    TEST(test_order);
    return tap_finish();
}

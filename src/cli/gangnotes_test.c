/* SPDX-License-Identifier: MIT */
/* Tests of what follows from the notes of benched gangs. */
#include "cli/gangnotes.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "tap.h"

enum { JOBS = 2, RANKS = 2 };

static struct gangnotes jobs[JOBS];

static void begin(void) {
    for (int j = 0; j < JOBS; j++) {
        char path[64];
        snprintf(path, sizeof path, "/tmp/storm-gangnotes-%d-%d", (int)getpid(), j);
        CHECK_EQ(gangnotes_make(&jobs[j], path, RANKS), 0);
        gangnotes_clear(&jobs[j]);
    }
}

static void finish(void) {
    for (int j = 0; j < JOBS; j++)
        gangnotes_fini(&jobs[j]);
}

static void rest(int job, uint32_t rank, uint64_t from, uint64_t to) {
    struct gangwork *w = gangnotes_of(&jobs[job], rank);
    w->gap[w->gaps++] = (struct gangwork_gap){from, to};
}

/* Turns of 1000 from 0 on, in which the second process of each job is `late` behind the first. */
static void take_turns(uint64_t turns, uint64_t cost, uint64_t late) {
    for (uint64_t t = 0; t < turns; t++)
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            uint64_t from = 1000 * t + late * rank;
            rest((int)((t + 1) % 2), rank, from, from + 1000 + cost);
        }
    for (int j = 0; j < JOBS; j++)
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            gangnotes_of(&jobs[j], rank)->begun = 1;
            gangnotes_of(&jobs[j], rank)->done = 1000 * turns;
        }
}

static void test_files(void) {
    struct gangnotes n;
    begin();
    CHECK_EQ(gangnotes_make(&n, jobs[0].path, RANKS), -EEXIST);
    CHECK_EQ(gangnotes_open(&n, jobs[0].path, RANKS), 0);
    gangnotes_of(&n, 1)->begun = 7;
    CHECK_EQ(gangnotes_of(&jobs[0], 1)->begun, 7);
    CHECK_EQ(gangnotes_open(&n, "/nonexistent/notes", RANKS), -ENOENT);
    finish();
    CHECK(access(jobs[0].path, F_OK) < 0);
}

static void test_spans(void) {
    struct gangspan s;
    begin();
    gangnotes_of(&jobs[0], 0)->begun = 10;
    gangnotes_of(&jobs[0], 0)->done = 50;
    CHECK(!gangnotes_span(&jobs[0], &s)); /* one was not done */
    gangnotes_of(&jobs[0], 1)->begun = 12;
    gangnotes_of(&jobs[0], 1)->done = 60;
    CHECK(gangnotes_span(&jobs[0], &s));
    CHECK(s.from == 10 && s.to == 60);
    finish();
}

static void test_shares(void) {
    uint32_t least, most;
    begin();
    CHECK(!gangnotes_shares(jobs, JOBS, &least, &most));
    take_turns(100, 0, 0);
    CHECK(gangnotes_shares(jobs, JOBS, &least, &most));
    CHECK(least >= 998 && most <= 1002);
    rest(0, 0, 200, 700); /* one loses half a turn of fifty */
    CHECK(gangnotes_shares(jobs, JOBS, &least, &most));
    CHECK(least < 995 && least > 985);
    finish();
}

static void test_switches(void) {
    uint64_t ns[64];
    begin();
    take_turns(40, 20, 5);
    uint32_t n = gangnotes_switches(&jobs[0], &jobs[1], 500, ns, 64);
    CHECK(n >= 18 && n <= 20);
    CHECK(ns[0] == 25 && ns[n - 1] == 25); /* the second process is later, and it costs 20 */
    CHECK_EQ(gangnotes_switches(&jobs[0], &jobs[1], 500, ns, 3), 3);
    CHECK_EQ(gangnotes_switches(&jobs[0], &jobs[1], 5000, ns, 64), 0);
    finish();
}

int main(void) {
    TEST(test_files);
    TEST(test_spans);
    TEST(test_shares);
    TEST(test_switches);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Tests of the pace of benched gangs. */
#include "cli/gangpace.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "tap.h"

#define STEP (100 * NS_PER_MS)

static void take(struct gangpace *p, uint64_t at, uint32_t jobs, uint64_t units, uint64_t stolen) {
    gangpace_take(p, &(struct gangpace_look){
                         .at = at * STEP, .jobs = jobs, .units = units, .stolen_ns = stolen});
}

static void test_only_clean_times_count(void) {
    static struct gangpace p;
    gangpace_init(&p, NULL, 0);
    p.jobs = 2;
    take(&p, 1, 1, 0, 7);
    take(&p, 2, 2, 1000, 7);
    take(&p, 3, 2, 1200, 7);
    take(&p, 4, 2, 1300, 7);
    CHECK_EQ(p.count, 0); /* one was not there all the time */
    take(&p, 5, 2, 1400, 7);
    CHECK_EQ(p.count, 1);
    CHECK_EQ(p.rates[0], 1000);
    take(&p, 6, 2, 1410, 8); /* stolen */
    take(&p, 7, 2, 1510, 8);
    take(&p, 8, 2, 1710, 8);
    CHECK_EQ(p.count, 1);
    take(&p, 9, 2, 1810, 8);
    CHECK_EQ(p.count, 2);
    CHECK_EQ(p.rates[1], 2000);
    take(&p, 10, 2, 2110, 8);
    CHECK_EQ(p.count, 3);
    CHECK_EQ(p.rates[2], 1000);
}

/* Looks at real notes, of a job that makes progress, until there are some. Another has not begun. */
static void test_watches(void) {
    static struct gangpace p;
    struct gangnotes notes[2];
    char path[96];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/dev/shm/storm-pace-%d-%d", (int)getpid(), i);
        CHECK_EQ(gangnotes_make(&notes[i], path, 1), 0);
        gangnotes_clear(&notes[i]);
    }
    gangpace_init(&p, notes, 2);
    gangnotes_of(&notes[0], 0)->begun = 1;
    CHECK_EQ(gangpace_start(&p, 1), 0);
    uint32_t looks = 0;
    while (looks < GANGPACE_LOOKS) {
        gangnotes_of(&notes[0], 0)->units += 1000;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        pthread_mutex_lock(&p.lock);
        looks = 0;
        for (int i = 0; i < GANGPACE_LOOKS; i++)
            looks += p.looks[i].jobs == 1 && p.looks[i].units > 0;
        pthread_mutex_unlock(&p.lock);
    }
    gangpace_stop(&p);
    CHECK(p.looks[3].at > p.looks[2].at && p.looks[3].units >= p.looks[2].units);
    for (int i = 0; i < 2; i++)
        gangnotes_fini(&notes[i]);
}

int main(void) {
    TEST(test_only_clean_times_count);
    TEST(test_watches);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Reservations against an array with an entry for every tick. */
#include "sched/plan.h"

#include "base/random.h"
#include "tap.h"

enum { HORIZON = 300, PES = 20, JOBS = 40 };

static void test_steps(void) {
    struct plan p;
    struct plan_step steps[16];
    plan_begin(&p, steps, 16, 100, 4);
    CHECK_EQ(plan_earliest(&p, 0, 10, 4), 100);
    plan_take(&p, 100, 110, 3);
    CHECK_EQ(plan_earliest(&p, 100, 1000, 1), 100);
    CHECK_EQ(plan_earliest(&p, 100, 1, 2), 110);
    plan_take(&p, 120, STORM_NEVER, 4);
    CHECK_EQ(plan_earliest(&p, 100, 10, 2), 110);
    CHECK_EQ(plan_earliest(&p, 100, 11, 2), STORM_NEVER);
    CHECK_EQ(plan_earliest(&p, 100, STORM_NEVER, 1), STORM_NEVER);
    plan_give(&p, 120, STORM_NEVER, 4);
    CHECK_EQ(p.end - p.first, 2); /* equal neighbours are one */
    plan_pass(&p, 105);
    plan_give(&p, 100, 110, 3);
    CHECK_EQ(p.end - p.first, 1);
    CHECK_EQ(plan_earliest(&p, 0, STORM_NEVER, 4), 105);
    CHECK_EQ(plan_earliest(&p, 0, 1, 5), STORM_NEVER);
}

static uint64_t search(const int *at, uint64_t from, uint64_t ticks, int pes) {
    for (uint64_t s = from; s < HORIZON; s++) {
        uint64_t t = s;
        while (t < s + ticks && (t >= HORIZON || at[t] >= pes))
            t++;
        if (t == s + ticks)
            return s;
    }
    return HORIZON;
}

static void run_seed(uint64_t seed) {
    struct plan p;
    struct plan_step steps[2 * JOBS + 8];
    struct random r;
    struct {
        uint64_t from, to;
        int pes;
    } jobs[JOBS] = {0};
    int at[HORIZON];
    uint64_t now = 0;
    random_init(&r, seed);
    for (int i = 0; i < HORIZON; i++)
        at[i] = PES;
    plan_begin(&p, steps, 2 * JOBS + 8, 0, PES);
    for (int step = 0; step < 400; step++) {
        uint32_t i = (uint32_t)random_below(&r, JOBS);
        int sign = jobs[i].pes > 0 ? 1 : -1;
        if (sign < 0) {
            uint64_t ticks = random_between(&r, 1, 30);
            int pes = (int)random_between(&r, 1, PES);
            uint64_t start = plan_earliest(&p, now, ticks, (uint64_t)pes);
            uint64_t expected = search(at, now, ticks, pes);
            if (expected >= HORIZON - 60)
                continue;
            CHECK_EQ(start, expected);
            jobs[i].from = start;
            jobs[i].to = start + ticks;
            jobs[i].pes = pes;
            plan_take(&p, start, start + ticks, (uint64_t)pes);
        } else {
            plan_give(&p, jobs[i].from, jobs[i].to, (uint64_t)jobs[i].pes);
        }
        for (uint64_t t = jobs[i].from > now ? jobs[i].from : now; t < jobs[i].to; t++)
            at[t] += sign * jobs[i].pes;
        if (sign > 0)
            jobs[i].pes = 0;
        if (random_chance(&r, 1, 8) && now < 100)
            plan_pass(&p, ++now);
    }
}

static void test_random(void) {
    for (uint64_t seed = 1; seed <= 50; seed++)
        run_seed(seed);
}

int main(void) {
    TEST(test_steps);
    TEST(test_random);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* The paper's workload in virtual time: what the order of steps is worth, and workers that come and go. */
#include "sim/fieldwork.h"

#include "base/units.h"
#include "tap.h"

static struct fieldwork_outcome run(const struct fieldwork_plan *p) {
    struct fieldwork_outcome o;
    CHECK(fieldwork_run(p, NULL, NULL, &o));
    CHECK_EQ(o.delivered, (uint64_t)p->steps * p->cycles);
    return o;
}

/* 31 steps, 91 minutes, the longest 1/15.5 of it, within rounding. */
static void test_shape(void) {
    struct fieldwork_plan p;
    uint64_t sum = 0, longest = 0;
    fieldwork_paper(&p, 1);
    for (uint32_t i = 0; i < p.steps; i++) {
        sum += p.ns[i];
        longest = p.ns[i] > longest ? p.ns[i] : longest;
    }
    CHECK_EQ(p.steps, 31);
    CHECK_EQ((sum + NS_PER_S / 2) / NS_PER_S, 91 * 60);
    CHECK(longest * 155 / 10 <= sum + NS_PER_S && longest * 155 / 10 + NS_PER_S >= sum);
    CHECK_EQ(fieldwork_bound(&p, 1000), sum * p.cycles);
    CHECK_EQ(fieldwork_bound(&p, 20000), longest * p.cycles);
    CHECK(fieldwork_bound(&p, 3500) < fieldwork_bound(&p, 3000));
    CHECK(fieldwork_bound(&p, 3500) > fieldwork_bound(&p, 4000));
}

static void test_order(void) {
    for (uint32_t workers = 4; workers <= 20; workers += 4) {
        struct fieldwork_plan p;
        fieldwork_paper(&p, workers);
        struct fieldwork_outcome ordered = run(&p);
        p.in_order = true;
        struct fieldwork_outcome as_sent = run(&p);
        uint64_t bound = fieldwork_bound(&p, workers * 1000);
        printf(
            "# %u workers: greedy bound %llu min, longest first %llu min, as sent %llu min; %u wanted\n",
            workers, (unsigned long long)(bound / NS_PER_S / 60),
            (unsigned long long)(ordered.ns / NS_PER_S / 60),
            (unsigned long long)(as_sent.ns / NS_PER_S / 60), ordered.wanted);
        CHECK(ordered.ns < as_sent.ns);
        CHECK(ordered.ns * 10 <= bound * 11);
        CHECK(ordered.wanted >= 15 && ordered.wanted <= 18);
        CHECK_EQ(ordered.occupancy_ns, workers * ordered.ns);
    }
}

/* Owners take some back, others come: all results are there, and nobody works more than he is there. */
static void test_fate(void) {
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct fieldwork_plan p;
        fieldwork_paper(&p, 3);
        p.workers_max = 30;
        p.add_ns = 10 * 60 * NS_PER_S;
        p.lose_ns = 20 * 60 * NS_PER_S;
        p.seed = seed;
        struct fieldwork_outcome o = run(&p), again = run(&p);
        CHECK(o.adds > 0 && o.losses > 0);
        CHECK(o.cpu_ns <= o.occupancy_ns);
        CHECK(o.ns == again.ns && o.losses == again.losses && o.cpu_ns == again.cpu_ns);
    }
}

int main(void) {
    TEST(test_shape);
    TEST(test_order);
    TEST(test_fate);
    return tap_finish();
}

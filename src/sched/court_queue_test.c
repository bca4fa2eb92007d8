/* SPDX-License-Identifier: MIT */
/* The queue as a tree against going through it: jobs that come, start and are withdrawn, with and without room that is held. */
#include "base/random.h"
#include "sched/bench_court.h"
#include "sched/court_inside.h"
#include "tap.h"

enum { NODES = 32, JOBS = 200, STEPS = 4000 };

static void decide(void *self, struct storm_host *h) {
    (void)self;
    (void)h;
}

static const struct storm_policy nobody = {
    .version = STORM_POLICY_VERSION, .name = "nobody", .words = "starts nobody", .decide = decide};

static uint32_t walk(const struct court *c, uint32_t at) {
    while (at != COURT_NONE && !court_may(c, &c->jobs[at], 0))
        at = c->jobs[at].next;
    return at;
}

static void compare(const struct court *c, struct random *r) {
    uint32_t from = c->queue_first;
    for (uint64_t skip = random_below(r, 4); skip > 0 && from != COURT_NONE; skip--)
        from = c->jobs[from].next;
    CHECK_EQ(court_candidate(c, from, 0), walk(c, from));
    CHECK_EQ(court_candidate(c, c->queue_first, 0), walk(c, c->queue_first));
}

static void come(struct court *c, uint64_t now, struct random *r) {
    struct court_order o = {.id = now,
                            .nodes = (uint32_t)random_between(r, 1, NODES),
                            .ppn = 1,
                            .estimate = random_between(r, 1, 2000),
                            .priority = (int32_t)random_below(r, 3) - 1};
    uint32_t job;
    CHECK_EQ(court_arrive(c, now, &o, &job), 0);
}

/* The first who may takes nodes, or somebody of the queue goes. */
static void go(struct court *c, uint64_t now, struct random *r) {
    uint32_t at = court_candidate(c, c->queue_first, 0);
    if (at != COURT_NONE && random_below(r, 3) > 0) {
        struct court_job *j = &c->jobs[at];
        CHECK_EQ(court_take(c, j, 0, 0, UINT32_MAX), 0);
        court_dequeue(c, j);
        court_run(c, j, now, 0);
        return;
    }
    at = c->queue_first;
    for (uint64_t skip = random_below(r, c->queued + 1); skip > 0 && at != COURT_NONE; skip--)
        at = c->jobs[at].next;
    if (at != COURT_NONE)
        court_end(c, now, at);
}

static void test_candidates(void) {
    struct bench b;
    struct random r;
    struct court_config config = bench_config(NODES, 1, 1);
    config.limits.jobs = JOBS;
    random_init(&r, 1);
    config.guest = &nobody; /* it is not built in */
    bench_init(&b, &config, &nobody);
    struct court *c = b.court;
    uint32_t most = 0;
    for (uint64_t now = 1; now < STEPS; now++) {
        uint64_t what = random_below(&r, 8);
        if (what < 4 && c->queued + c->running < JOBS)
            come(c, now, &r);
        else if (what == 4 && c->running > 0)
            court_end(c, now, c->ends[random_below(&r, c->running)].job);
        else
            go(c, now, &r);
        if (c->queue_first != COURT_NONE && what % 2 == 0)
            court_reserve(c, &c->jobs[c->queue_first], 0);
        else
            c->room.held = false;
        compare(c, &r);
        most = c->queued > most ? c->queued : most;
        if (!CHECK(court_conserved(c)))
            break;
    }
    CHECK(most > 20);
    bench_fini(&b);
}

int main(void) {
    TEST(test_candidates);
    return tap_finish();
}

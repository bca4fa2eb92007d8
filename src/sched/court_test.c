/* SPDX-License-Identifier: MIT */
/* The court: jobs that come and go, decisions that are wrong, policies that are exchanged. */
#include "sched/court.h"

#include <errno.h>

#include "sched/bench_court.h"
#include "sched/court_inside.h"
#include "tap.h"

static void test_queue_in_order_of_priority(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    bench_init(&b, &c, &policy_fcfs);
    CHECK_STR(bench_arrives(&b, 0, 'A', 4, 100), "A:[0-3]@0");
    CHECK_STR(bench_arrives(&b, 1, 'B', 2, 100), "");
    struct court_order o = bench_order('C', 3, 10);
    o.priority = 5;
    CHECK_STR(bench_order_arrives(&b, 2, &o), "");
    CHECK(court_conserved(b.court));
    CHECK_STR(bench_ends(&b, 50, 'A'), "C:[0-2]@0");
    CHECK_STR(bench_ends(&b, 60, 'B'), ""); /* withdrawn */
    CHECK_EQ(court_queued(b.court), 0);
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

static void test_earliest_start(void) {
    struct bench b;
    struct court_config c = bench_config(2, 1, 1);
    bench_init(&b, &c, &policy_fcfs);
    struct court_order o = bench_order('A', 2, 10);
    o.begin = 70;
    CHECK_STR(bench_order_arrives(&b, 0, &o), "");
    CHECK_EQ(court_due(b.court), 70);
    CHECK_STR(bench_arrives(&b, 1, 'B', 1, 10), "B:0@0");
    CHECK_STR(bench_ends(&b, 9, 'B'), "");
    CHECK_STR(bench_ticks(&b), "A:[0-1]@0");
    CHECK_EQ(court_due(b.court), STORM_NEVER);
    o = bench_order('C', 1, 10);
    o.begin = 90;
    CHECK_STR(bench_order_arrives(&b, 75, &o), "");
    CHECK_STR(bench_ends(&b, 76, 'C'), ""); /* withdrawn before it could begin */
    CHECK_EQ(court_due(b.court), STORM_NEVER);
    bench_fini(&b);
}

static void test_nodes_of_several_pes(void) {
    struct bench b;
    struct court_config c = bench_config(4, 4, 1);
    bench_init(&b, &c, &policy_easy);
    struct court_order o = bench_order('A', 2, 10);
    o.ppn = 3;
    CHECK_STR(bench_order_arrives(&b, 0, &o), "A:[0-1]@0");
    o = bench_order('B', 2, 10);
    o.ppn = 2;
    CHECK_STR(bench_order_arrives(&b, 0, &o), "B:[2-3]@0");
    CHECK_STR(bench_arrives(&b, 0, 'C', 3, 100), "C:[0-2]@0");
    o = bench_order('D', 1, 10);
    o.exclusive = true;
    CHECK_STR(bench_order_arrives(&b, 0, &o), ""); /* held for it: node 3, from 10 on */
    o = bench_order('E', 1, 100);
    o.ppn = 2;
    CHECK_STR(bench_order_arrives(&b, 0, &o), ""); /* would be in the way there */
    CHECK_STR(bench_arrives(&b, 0, 'F', 1, 100), "F:2@0");
    CHECK_STR(bench_arrives(&b, 0, 'G', 1, 10), "G:3@0"); /* is over by then */
    CHECK_EQ(bench_job(&b, 'D')->reserved, 10);
    CHECK(court_conserved(b.court));
    CHECK_STR(bench_ends(&b, 10, 'B'), "E:2@0");
    CHECK_STR(bench_ends(&b, 10, 'G'), "D:3@0");
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

static void test_jobs_that_choose(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    uint64_t words[2][8];
    struct nodeset only, exclude;
    nodeset_init(&only, 4, words[0]);
    nodeset_init(&exclude, 4, words[1]);
    nodeset_add_range(&only, 1, 2);
    nodeset_add(&exclude, 0);
    bench_init(&b, &c, &policy_easy);
    CHECK_STR(bench_arrives(&b, 0, 'A', 2, 20), "A:[0-1]@0");
    struct court_order o = bench_order('B', 2, 10);
    o.only = &only;
    CHECK_STR(bench_order_arrives(&b, 0, &o), "");
    CHECK_EQ(bench_job(&b, 'B')->reserved, 20);
    CHECK_STR(bench_arrives(&b, 0, 'C', 1, 100), "C:3@0"); /* node 2 is held */
    o = bench_order('D', 1, 20);
    o.exclude = &exclude;
    CHECK_STR(bench_order_arrives(&b, 0, &o), "D:2@0");
    CHECK_STR(bench_ends(&b, 20, 'A'), "");
    CHECK_STR(bench_ends(&b, 20, 'D'), "B:[1-2]@0");
    bench_fini(&b);
}

static void test_nodes_come_and_go(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    bench_init(&b, &c, &policy_conservative);
    CHECK_STR(bench_arrives(&b, 0, 'A', 2, 100), "A:[0-1]@0");
    bench_usable(&b, 1, 1, 2, false);
    CHECK_STR(bench_arrives(&b, 2, 'B', 2, 100), "");
    CHECK_STR(bench_ends(&b, 3, 'A'), "B:[0,3]@0");
    CHECK_STR(bench_arrives(&b, 4, 'C', 1, 100), "");
    bench_usable(&b, 5, 1, 1, true);
    CHECK_STR(bench_taken(&b), "C:1@0");
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

static void test_held(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    bench_init(&b, &c, &policy_easy);
    court_hold(b.court, 0, true);
    CHECK_STR(bench_arrives(&b, 0, 'A', 4, 100), "");
    court_hold(b.court, 5, false);
    CHECK_STR(bench_taken(&b), "A:[0-3]@0");
    CHECK_EQ(bench_job(&b, 'A')->started, 5);
    bench_fini(&b);
}

static void test_too_much(void) {
    struct bench b;
    struct court_config c = bench_config(4, 2, 1);
    c.limits.jobs = 2;
    bench_init(&b, &c, &policy_fcfs);
    struct court_order o = bench_order('A', 5, 1);
    CHECK_STR(bench_order_arrives(&b, 0, &o), strerror(E2BIG));
    o = bench_order('A', 4, 1);
    o.ppn = 3;
    CHECK_STR(bench_order_arrives(&b, 0, &o), strerror(E2BIG));
    bench_arrives(&b, 0, 'B', 4, 1);
    bench_arrives(&b, 0, 'C', 4, 1);
    CHECK_STR(bench_arrives(&b, 0, 'D', 4, 1), strerror(ENOSPC));
    CHECK_STR(bench_ends(&b, 1, 'B'), "");
    bench_fini(&b);
}

/* ---- a new life ---- */

static void test_resumed(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 2);
    bench_init(&b, &c, &policy_gang_backfill);
    court_hold(b.court, 100, true);
    struct court_order o = bench_order('A', 2, 50);
    nodeset_clear(&b.set);
    nodeset_add_range(&b.set, 1, 2);
    CHECK_EQ(court_resume(b.court, 100, &o, 80, &b.set, 1, &b.job['A']), 0);
    CHECK_EQ(bench_job(&b, 'A')->ends, 180);
    o = bench_order('B', 2, 50);
    CHECK_EQ(court_resume(b.court, 100, &o, 80, &b.set, 1, &b.job['B']), -EBUSY);
    CHECK_EQ(court_resume(b.court, 100, &o, 80, &b.set, 0, &b.job['B']), 0);
    CHECK_STR(bench_arrives(&b, 100, 'C', 1, 50), "turn1");
    court_hold(b.court, 101, false);
    CHECK_STR(bench_taken(&b), "C:0@0");
    CHECK_EQ(bench_job(&b, 'C')->slots, 3);
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

static void hand_over(const struct storm_policy *p, uint64_t estimate) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    bench_init(&b, &c, p);
    CHECK_STR(bench_arrives(&b, 0, 'A', 3, 100), "A:[0-2]@0");
    bench_arrives(&b, 1, 'B', 4, 100);
    bench_arrives(&b, 1, 'C', 2, 40);
    court_hold(b.court, 2, true);
    uint32_t whole = b.job['A'];
    court_hand_over(b.court, 2, whole);
    for (uint32_t n = 0; n < 3; n++) {
        struct court_order o = bench_order((char)('X' + n), 1, estimate);
        nodeset_clear(&b.set);
        nodeset_add(&b.set, n);
        CHECK_EQ(court_resume(b.court, 2, &o, 2, &b.set, 0, &b.job['X' + n]), 0);
    }
    court_end(b.court, 2, whole);
    court_hold(b.court, 2, false);
    CHECK_STR(bench_taken(&b), "");
    CHECK(court_conserved(b.court));
    CHECK_EQ(court_running(b.court), 3);
    bench_ends(&b, 3, 'X'); /* now there is room for C, if it may overtake */
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

/* Others take its place. Who has a reservation gets nothing that is theirs; and keeps it, unless they are to take longer. */
static void test_handed_over(void) {
    const struct storm_policy *p;
    for (uint32_t i = 0; (p = policies_at(i)) != NULL; i++) {
        hand_over(p, 98);
        hand_over(p, 500);
        hand_over(p, STORM_NEVER);
    }
}

static void test_policies_are_exchanged(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 3);
    bench_init(&b, &c, &policy_gang);
    CHECK_STR(bench_arrives(&b, 0, 'A', 4, 100), "A:[0-3]@0");
    CHECK_STR(bench_arrives(&b, 0, 'B', 4, 100), "B:[0-3]@1");
    CHECK_STR(bench_arrives(&b, 0, 'C', 4, 100), "C:[0-3]@2");
    CHECK_STR(bench_arrives(&b, 0, 'D', 4, 100), "");
    const struct storm_policy *p;
    for (uint32_t i = 0; (p = policies_at(i)) != NULL; i++) {
        court_change(b.court, i, p, 3, 10);
        bench_taken(&b);
        CHECK_EQ(court_running(b.court), 3);
        CHECK_EQ(court_queued(b.court), 1);
        CHECK(court_conserved(b.court));
    }
    court_change(b.court, 10, &policy_fcfs, 3, 10);
    bench_taken(&b);
    CHECK_EQ(court_due(b.court), 20); /* what is in other slots still has its turns */
    CHECK_STR(bench_ends(&b, 15, 'A'), "D:[0-3]@0");
    CHECK_STR(bench_ends(&b, 16, 'C'), "");
    CHECK_STR(bench_ends(&b, 17, 'B'), "");
    CHECK_EQ(court_due(b.court), STORM_NEVER);
    CHECK_STR(bench_ends(&b, 18, 'D'), "");
    bench_fini(&b);
}

static void wake_at_once(void *self, struct storm_host *h) {
    (void)self;
    storm_wake(h, storm_now(h));
}

/* A policy that wants to be asked again at once is asked again soon. */
static void test_not_woken_too_soon(void) {
    static const struct storm_policy restless = {
        .version = STORM_POLICY_VERSION, .name = "restless", .words = "", .decide = wake_at_once};
    struct bench b;
    struct court_config c = bench_config(2, 1, 1);
    c.wake_least = 7;
    bench_init(&b, &c, &restless);
    CHECK_STR(bench_arrives(&b, 3, 'A', 2, 10), "");
    CHECK_EQ(court_due(b.court), 10);
    court_tick(b.court, 10);
    CHECK_EQ(court_due(b.court), 17);
    bench_fini(&b);
}

/* ---- turns ---- */

/* Whoever owns the court need not tick for every turn. */
static void test_late_ticks(void) {
    struct bench b;
    struct court_config c = bench_config(2, 1, 4);
    bench_init(&b, &c, policies_find("gang"));
    bench_arrives(&b, 0, 'A', 2, 500);
    CHECK_EQ(court_cycle(b.court), 0);
    bench_arrives(&b, 0, 'B', 2, 500);
    bench_arrives(&b, 0, 'C', 2, 500);
    CHECK_EQ(court_cycle(b.court), 7);
    CHECK_EQ(court_turn_ends(b.court), 10);
    CHECK_EQ(court_due_but_turns(b.court), STORM_NEVER);
    court_tick(b.court, 12);
    CHECK_STR(bench_taken(&b), "turn1");
    CHECK_EQ(court_turn_ends(b.court), 20); /* on the grid */
    court_tick(b.court, 40);                /* three turns were due: the same again */
    CHECK_EQ(court_slot(b.court), 1);
    CHECK_EQ(court_turn_ends(b.court), 50);
    court_tick(b.court, 69); /* two */
    CHECK_EQ(court_slot(b.court), 0);
    CHECK_EQ(court_turn_ends(b.court), 70);
    bench_fini(&b);
}

static void test_turns(void) {
    struct bench b;
    struct court_config c = bench_config(2, 1, 3);
    bench_init(&b, &c, &policy_gang);
    CHECK_STR(bench_arrives(&b, 0, 'A', 2, 100), "A:[0-1]@0");
    CHECK_EQ(court_due(b.court), STORM_NEVER); /* alone: no turns */
    CHECK_STR(bench_arrives(&b, 3, 'B', 2, 100), "B:[0-1]@1");
    CHECK_EQ(court_due(b.court), 13);
    CHECK_STR(bench_ticks(&b), "turn1");
    CHECK_STR(bench_arrives(&b, 14, 'C', 2, 100), "C:[0-1]@2");
    CHECK_STR(bench_ticks(&b), "turn2");
    CHECK_STR(bench_ticks(&b), "turn0");
    CHECK_STR(bench_ends(&b, 35, 'A'), "turn1"); /* at once */
    CHECK_EQ(court_due(b.court), 45);            /* a whole slice */
    CHECK_STR(bench_ends(&b, 36, 'B'), "turn2");
    CHECK_EQ(court_due(b.court), STORM_NEVER);
    bench_fini(&b);
}

/* ---- policies that are wrong ---- */

static const struct storm_job *victim;

static void start_twice(void *self, struct storm_host *h) {
    (void)self;
    const struct storm_job *j = storm_queued(h, NULL);
    if (j != NULL && storm_fits(h, j, 0)) {
        CHECK_EQ(storm_start(h, j, 0), 0);
        CHECK_EQ(storm_start(h, j, 0), -EINVAL);
        CHECK_EQ(storm_start(h, j, 0), -EINVAL); /* it is not heard any more */
    }
}

static void start_on_busy(void *self, struct storm_host *h) {
    (void)self;
    static const uint32_t nodes[] = {0, 1};
    const struct storm_job *j = storm_queued(h, NULL);
    if (j != NULL)
        storm_start_on(h, j, 0, nodes, 2);
}

static void start_where_full(void *self, struct storm_host *h) {
    (void)self;
    const struct storm_job *j = storm_queued(h, NULL);
    if (j != NULL)
        storm_start(h, j, 0);
}

static void start_nobody(void *self, struct storm_host *h) {
    (void)self;
    static const struct storm_job ghost;
    storm_start(h, storm_queued(h, NULL) ? &ghost : NULL, 0);
}

static void start_dead(void *self, struct storm_host *h) {
    (void)self;
    if (victim != NULL && victim->state == STORM_OVER)
        storm_start(h, victim, 0);
    else if (storm_queued(h, NULL))
        victim = storm_queued(h, NULL);
}

static void start_beyond(void *self, struct storm_host *h) {
    (void)self;
    if (storm_queued(h, NULL))
        storm_start(h, storm_queued(h, NULL), 7);
}

static void stop_waiting(void *self, struct storm_host *h) {
    (void)self;
    if (storm_queued(h, NULL))
        storm_stop(h, storm_queued(h, NULL));
}

static void start_short(void *self, struct storm_host *h) {
    (void)self;
    static const uint32_t nodes[] = {2, 2};
    if (storm_queued(h, NULL))
        storm_start_on(h, storm_queued(h, NULL), 0, nodes, 2);
}

static struct storm_policy wrong(void (*decide)(void *, struct storm_host *)) {
    return (struct storm_policy){
        .version = STORM_POLICY_VERSION, .name = "wrong", .decide = decide};
}

/* It insists on some nodes, and will not have one of them. */
static void test_a_node_that_is_not_wanted(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    struct storm_policy p = wrong(start_on_busy);
    uint64_t words[2][8];
    struct nodeset only, exclude;
    nodeset_init(&only, 4, words[0]);
    nodeset_init(&exclude, 4, words[1]);
    nodeset_add_range(&only, 0, 2);
    nodeset_add(&exclude, 1);
    bench_init(&b, &c, &p);
    struct court_order o = bench_order('A', 2, 10);
    o.only = &only;
    o.exclude = &exclude;
    const char *said = bench_order_arrives(&b, 0, &o);
    CHECK(strstr(said, "on a node that it must not have (job 65, node 1)") != NULL);
    CHECK(strstr(said, "A:[0,2]@0") != NULL); /* as fcfs has it */
    bench_fini(&b);
}

static void start_unasked(void *self, struct storm_host *h, const struct storm_job *j) {
    (void)self;
    storm_start(h, j, 0);
}

/* While nothing may start it is found out, too: who is told of it sees fcfs. */
static void test_wrong_while_held(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    struct storm_policy p = wrong(start_where_full);
    struct court_effect e;
    uint32_t job;
    p.arrived = start_unasked;
    bench_init(&b, &c, &p);
    court_hold(b.court, 0, true);
    struct court_order o = bench_order('A', 1, 10);
    CHECK_EQ(court_arrive(b.court, 0, &o, &job), 0);
    court_ask(b.court, 0, false);
    CHECK(court_next(b.court, &e) && e.kind == COURT_FAULT);
    CHECK(court_policy(b.court) == &policy_fcfs);
    CHECK(!court_next(b.court, &e));
    court_ask(b.court, 0, true);
    CHECK(court_next(b.court, &e) && e.kind == COURT_START && e.job == job);
    bench_fini(&b);
}

/* One that waits for a node that is away keeps its time, and no longer: nothing need happen for the next to start. */
static void test_conservative_past_one_that_cannot(void) {
    struct bench b;
    struct court_config c = bench_config(2, 1, 1);
    uint64_t words[8];
    struct nodeset away;
    nodeset_init(&away, 2, words);
    nodeset_add(&away, 0);
    bench_init(&b, &c, &policy_conservative);
    court_set_usable(b.court, 0, &away, false);
    struct court_order o = bench_order('A', 1, 10);
    o.only = &away;
    CHECK_STR(bench_order_arrives(&b, 1, &o), "");
    CHECK_STR(bench_arrives(&b, 1, 'B', 1, 10), "");
    CHECK_EQ(bench_job(&b, 'B')->reserved, 11);
    CHECK_EQ(court_due(b.court), 11);
    CHECK_STR(bench_ticks(&b), "B:1@0");
    bench_fini(&b);
}

static void test_wrong_decisions(void) {
    static const struct {
        void (*decide)(void *, struct storm_host *);
        const char *words;
    } cases[] = {
        {start_twice, "starts a job twice (job 65)"},
        {start_on_busy, "starts a job on processors that are busy (job 66, node 0)"},
        {start_where_full, "starts a job where too few processors are free (job 67)"},
        {start_nobody, "starts a job that is not there"},
        {start_dead, "starts a job that is not there"},
        {start_beyond, "starts a job in a slot that is not there (job 65)"},
        {stop_waiting, "stops a job that does not run (job 65)"},
        {start_short, "starts a job on another number of nodes than it needs (job 65)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct bench b;
        struct storm_policy p = wrong(cases[i].decide);
        struct court_config c = bench_config(4, 1, 1);
        char heard[4096] = "";
        victim = NULL;
        bench_init(&b, &c, &p);
        strncat(heard, bench_taken(&b), 900);
        strncat(heard, bench_arrives(&b, 0, 'A', 2, 10), 900);
        strncat(heard, bench_arrives(&b, 1, 'B', 2, 10), 900);
        strncat(heard, bench_arrives(&b, 2, 'C', 2, 10), 900);
        if (cases[i].decide == start_dead)
            strncat(heard, bench_ends(&b, 3, 'A'), 900);
        if (!CHECK(strstr(heard, cases[i].words) != NULL))
            printf("# %s\n", heard);
        CHECK_STR(court_policy(b.court)->name, "fcfs");
        CHECK_EQ(court_running(b.court), 2); /* nobody is lost, and all goes on */
        CHECK(court_conserved(b.court));
        bench_fini(&b);
    }
}

static void test_down_node(void) {
    struct bench b;
    struct storm_policy p = wrong(start_on_busy);
    struct court_config c = bench_config(4, 1, 1);
    bench_init(&b, &c, &p);
    bench_usable(&b, 0, 1, 1, false);
    CHECK_STR(bench_arrives(&b, 0, 'A', 2, 10),
              "fault the policy wrong starts a job on a node that is down (job 65, node 1); going "
              "on under fcfs; A:[0,2]@0");
    bench_fini(&b);
}

/* ---- windows ---- */

static int window(struct bench *b, uint64_t now, uint32_t id, uint64_t from, uint64_t to,
                  uint32_t first, uint32_t last) {
    uint64_t words[8];
    struct nodeset set;
    nodeset_init(&set, b->court->config.universe, words);
    nodeset_add_range(&set, first, last);
    return court_window_add(b->court, now, id, from, to, &set);
}

static void test_windows_keep_others_out(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    bench_init(&b, &c, &policy_fcfs);
    CHECK_EQ(window(&b, 0, 7, 100, 200, 0, 1), 0);
    CHECK_EQ(court_due(b.court), 100);
    CHECK_STR(bench_arrives(&b, 0, 'A', 1, 100), "A:0@0"); /* is over by then */
    CHECK_STR(bench_arrives(&b, 0, 'B', 1, 101), "B:2@0");
    CHECK_STR(bench_arrives(&b, 0, 'C', 1, STORM_NEVER), "C:3@0");
    CHECK_STR(bench_arrives(&b, 0, 'D', 1, 150), "");
    CHECK_STR(bench_ends(&b, 100, 'A'), ""); /* it is open now */
    CHECK(court_conserved(b.court));
    CHECK_EQ(court_due(b.court), 200);
    CHECK_STR(bench_ticks(&b), "D:0@0");
    CHECK_EQ(court_due(b.court), STORM_NEVER);
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

static void test_windows_have_jobs_of_their_own(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    bench_init(&b, &c, &policy_conservative);
    CHECK_EQ(window(&b, 0, 7, 50, 100, 2, 3), 0);
    struct court_order o = bench_order('A', 2, 500);
    o.window = 7;
    CHECK_STR(bench_order_arrives(&b, 0, &o), "");
    CHECK_STR(bench_arrives(&b, 0, 'B', 3, 20), "B:[0-2]@0");
    CHECK_STR(bench_arrives(&b, 0, 'C', 3, 60), ""); /* only when the window is over */
    CHECK_EQ(bench_job(&b, 'C')->reserved, 100);
    o = bench_order('D', 3, 10);
    o.window = 7;
    CHECK_EQ(court_could(b.court, &o), false); /* it has two nodes */
    CHECK_STR(bench_ends(&b, 20, 'B'), "");
    CHECK_EQ(court_due(b.court), 50);
    CHECK_STR(bench_ticks(&b), "A:[2-3]@0"); /* no policy has to start it */
    CHECK(court_conserved(b.court));
    CHECK_STR(bench_ticks(&b), ""); /* it outlasts the window, and is known from then on */
    CHECK(court_conserved(b.court));
    CHECK_EQ(bench_job(&b, 'C')->reserved, 550);
    CHECK_STR(bench_ends(&b, 300, 'A'), "C:[0-2]@0");
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

static void test_windows_that_cannot_be(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    bench_init(&b, &c, &policy_easy);
    CHECK_EQ(window(&b, 10, 1, 5, 10, 0, 0), -EINVAL);
    CHECK_EQ(window(&b, 10, 0, 20, 30, 0, 0), -EINVAL);
    CHECK_EQ(window(&b, 10, 1, 30, 30, 0, 0), -EINVAL);
    CHECK_EQ(window(&b, 10, 1, 20, 30, 0, 1), 0);
    CHECK_EQ(window(&b, 10, 1, 40, 50, 0, 1), -EINVAL); /* the same number */
    CHECK_EQ(window(&b, 10, 2, 25, 35, 1, 2), -EEXIST);
    CHECK_EQ(window(&b, 10, 2, 30, 35, 1, 2), 0); /* one after the other */
    for (uint32_t i = 3; i <= STORM_WINDOWS_MAX; i++)
        CHECK_EQ(window(&b, 10, i, 100 * i, 100 * i + 50, 0, 3), 0);
    CHECK_EQ(window(&b, 10, 99, 20000, 20001, 0, 0), -ENOSPC);
    CHECK(court_conserved(b.court));
    CHECK_STR(bench_ticks(&b), ""); /* one begins */
    CHECK_STR(bench_ticks(&b), ""); /* it ends, the next begins */
    CHECK(court_conserved(b.court));
    CHECK_EQ(window(&b, 30, 99, 20000, 20001, 0, 0), 0);
    for (uint32_t i = 0; i <= STORM_WINDOWS_MAX; i++)
        court_window_remove(b.court, 30, i);
    court_window_remove(b.court, 30, 99);
    CHECK_EQ(court_due(b.court), STORM_NEVER);
    CHECK_STR(bench_arrives(&b, 31, 'A', 4, STORM_NEVER), "A:[0-3]@0");
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

/* ---- what is to be expected ---- */

static struct court_outlook outlook(struct bench *b, char name) {
    struct court_outlook o;
    court_outlook(b->court,
                  (uint32_t)((const struct court_job *)bench_job(b, name) - b->court->jobs), &o);
    return o;
}

static void test_outlook(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    bench_init(&b, &c, &policy_fcfs);
    bench_arrives(&b, 0, 'A', 2, 100);
    bench_arrives(&b, 0, 'B', 1, 50);
    bench_arrives(&b, 0, 'C', 4, 30);
    bench_arrives(&b, 0, 'D', 1, 10);
    struct court_outlook o = outlook(&b, 'C');
    CHECK(o.at == 100 && o.lacks == 3 && o.ends == 'A' && o.endless == 0 && o.window == 0);
    o = outlook(&b, 'D');
    CHECK(o.at == 130 && o.lacks == 0); /* behind C */
    court_change(b.court, 1, &policy_easy, 1, 1);
    CHECK_EQ(court_running(b.court), 3); /* D overtakes */
    bench_arrives(&b, 1, 'E', 1, STORM_NEVER);
    o = outlook(&b, 'E');
    CHECK(o.at == 130 && o.ends == 'D'); /* C comes before it */
    CHECK_EQ(window(&b, 1, 9, 120, 160, 0, 3), 0);
    CHECK(outlook(&b, 'C').at == 160 && outlook(&b, 'C').window == 9);
    bench_fini(&b);
}

static void test_outlook_without_estimates(void) {
    struct bench b;
    struct court_config c = bench_config(2, 1, 2);
    bench_init(&b, &c, &policy_gang);
    bench_arrives(&b, 0, 'A', 2, STORM_NEVER);
    bench_arrives(&b, 0, 'B', 2, 100);
    bench_arrives(&b, 0, 'C', 1, 10);
    struct court_outlook o = outlook(&b, 'C');
    CHECK(o.at == 200 && o.ends == 'B' && o.slot == 1 && o.lacks == 1); /* two share */
    court_change(b.court, 0, &policy_fcfs, 1, 1);
    o = outlook(&b, 'C');
    CHECK(o.at == STORM_NEVER && o.endless == 'A' && o.ends == 0);
    bench_fini(&b);
}

int main(void) {
    TEST(test_queue_in_order_of_priority);
    TEST(test_earliest_start);
    TEST(test_nodes_of_several_pes);
    TEST(test_jobs_that_choose);
    TEST(test_nodes_come_and_go);
    TEST(test_held);
    TEST(test_too_much);
    TEST(test_resumed);
    TEST(test_handed_over);
    TEST(test_policies_are_exchanged);
    TEST(test_not_woken_too_soon);
    TEST(test_turns);
    TEST(test_late_ticks);
    TEST(test_conservative_past_one_that_cannot);
    TEST(test_wrong_decisions);
    TEST(test_a_node_that_is_not_wanted);
    TEST(test_wrong_while_held);
    TEST(test_down_node);
    TEST(test_windows_keep_others_out);
    TEST(test_windows_have_jobs_of_their_own);
    TEST(test_windows_that_cannot_be);
    TEST(test_outlook);
    TEST(test_outlook_without_estimates);
    return tap_finish();
}

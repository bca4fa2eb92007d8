/* SPDX-License-Identifier: MIT */
/* Best fit on nodes that are not alike, against brute force.
 *
 * Jobs that are queued together on at most 8 nodes, under a policy that starts whoever fits, in the order of the queue:
 * one is left out only if no choice of nodes, for it and for all that were started before it, would do. Where each
 * wants one whole node these are as many as any choice of jobs could be. */
#include <stdlib.h>

#include "base/bits.h"
#include "base/random.h"
#include "sched/bench_court.h"
#include "sched/court_inside.h"
#include "tap.h"

#ifdef STORM_SLOW
enum { SEEDS = 40 };
#else
enum { SEEDS = 600 };
#endif

enum { NODES = 8, JOBS = 6, WIDTH = 4 };

/* Whoever fits starts. */
static void decide(void *self, struct storm_host *h) {
    (void)self;
    for (const struct storm_job *j = NULL; (j = storm_queued(h, j)) != NULL;)
        if (storm_fits(h, j, 0) && storm_start(h, j, 0) < 0)
            return;
}

/* The same, by another question. */
static void decide_candidates(void *self, struct storm_host *h) {
    (void)self;
    for (const struct storm_job *j = NULL; (j = storm_candidate(h, j, 0)) != NULL;)
        if (storm_start(h, j, 0) < 0)
            return;
}

static const struct storm_policy eager = {
    .version = STORM_POLICY_VERSION, .name = "eager", .decide = decide};
static const struct storm_policy keen = {
    .version = STORM_POLICY_VERSION, .name = "keen", .decide = decide_candidates};

struct guest {
    struct court_order order;
    struct nodeset meets, exclude;
    uint64_t words[2][8];
    uint32_t number;
    bool runs;
};

struct play {
    struct random random;
    struct bench bench;
    uint32_t nodes, width_max, count;
    uint64_t now;
    uint32_t width[NODES], left[NODES]; /* left: as brute force has it */
    uint32_t memory[NODES];             /* that is left */
    bool memories;                      /* it matters */
    struct guest at[2 * JOBS];
};

/* ---- drawing ---- */

static void draw_set(struct play *p, struct nodeset *set, uint64_t *words, uint32_t of) {
    nodeset_init(set, p->nodes, words);
    for (uint32_t n = 0; n < p->nodes; n++)
        if (random_chance(&p->random, 1, of))
            nodeset_add(set, n);
}

static void draw_job(struct play *p, bool single) {
    struct random *r = &p->random;
    struct guest *g = &p->at[p->count];
    *g = (struct guest){.order = bench_order((char)('A' + p->count), 1, 100)};
    g->order.nodes = single ? 1 : (uint32_t)random_between(r, 1, p->nodes < 3 ? p->nodes : 3);
    g->order.ppn = (uint32_t)random_between(r, 1, p->width_max);
    g->order.exclusive = single || random_chance(r, 1, 4);
    g->order.memory = p->memories ? (uint32_t)random_below(r, 6) : 0;
    draw_set(p, &g->meets, g->words[0], (uint32_t)random_between(r, 1, 3));
    draw_set(p, &g->exclude, g->words[1], 4);
    if (random_chance(r, 3, 4))
        g->order.meets = &g->meets;
    if (random_chance(r, 1, 4))
        g->order.exclude = &g->exclude;
    else if (random_chance(r, 1, 4))
        g->order.avoid = &g->exclude;
    if (!court_could(p->bench.court, &g->order))
        return;
    g->order.estimate = random_between(r, 1, 200);
    CHECK_EQ(court_arrive(p->bench.court, p->now, &g->order, &g->number), 0);
    p->count++;
}

static void begin(struct play *p, uint64_t seed, const struct storm_policy *policy) {
    random_init(&p->random, seed);
    p->count = 0;
    p->now = 0;
    p->nodes = (uint32_t)random_between(&p->random, 2, NODES);
    p->width_max = random_chance(&p->random, 1, 3) ? 1 : WIDTH;
    p->memories = random_chance(&p->random, 1, 2);
    struct court_config c = bench_config(p->nodes, p->width_max, 1);
    c.guest = policy;
    bench_init(&p->bench, &c, policy);
    bench_usable(&p->bench, 0, 0, p->nodes - 1, false);
    for (uint32_t n = 0; n < p->nodes; n++) {
        p->width[n] = p->left[n] = (uint32_t)random_between(&p->random, 1, p->width_max);
        court_node_pes(p->bench.court, n, p->width[n]);
        court_node_rank(p->bench.court, n, (uint8_t)random_below(&p->random, 3));
        p->memory[n] = p->memories ? (uint32_t)random_between(&p->random, 2, 8) : 0;
        if (p->memories)
            court_node_memory(p->bench.court, n, p->memory[n]);
    }
    bench_usable(&p->bench, 0, 0, p->nodes - 1, true);
}

/* ---- brute force ---- */

static bool will_do(const struct play *p, const struct guest *g, uint32_t n) {
    const struct court_order *o = &g->order;
    return p->width[n] >= o->ppn && p->left[n] >= (o->exclusive ? p->width[n] : o->ppn) &&
           p->memory[n] >= o->memory && (o->meets == NULL || nodeset_has(o->meets, n)) &&
           (o->exclude == NULL || !nodeset_has(o->exclude, n)) &&
           (o->avoid == NULL || !nodeset_has(o->avoid, n));
}

static bool can_all(struct play *p, uint32_t who, uint32_t i);

/* This one on some nodes from `from` on, and all after it. */
static bool can_from(struct play *p, uint32_t who, uint32_t i, uint32_t from, uint32_t missing) {
    const struct guest *g = &p->at[i];
    if (missing == 0)
        return can_all(p, who, i + 1);
    for (uint32_t n = from; n + missing <= p->nodes; n++) {
        if (!will_do(p, g, n))
            continue;
        uint32_t each = g->order.exclusive ? p->width[n] : g->order.ppn;
        p->left[n] -= each;
        p->memory[n] -= g->order.memory;
        bool can = can_from(p, who, i, n + 1, missing - 1);
        p->left[n] += each;
        p->memory[n] += g->order.memory;
        if (can)
            return true;
    }
    return false;
}

/* Those whose bits are set, from the i'th on, at once. */
static bool can_all(struct play *p, uint32_t who, uint32_t i) {
    while (i < p->count && !(who >> i & 1))
        i++;
    return i == p->count || can_from(p, who, i, 0, p->at[i].order.nodes);
}

/* ---- judging ---- */

static uint32_t take_starts(struct play *p, uint32_t first) {
    struct court_effect e;
    uint32_t who = 0;
    while (court_next(p->bench.court, &e)) {
        CHECK(e.kind != COURT_FAULT);
        for (uint32_t i = first; i < p->count; i++)
            if (e.kind == COURT_START && !p->at[i].runs && p->at[i].number == e.job)
                who |= (uint32_t)1 << i;
    }
    return who;
}

/* Those that run hold what they want, from now on for good. */
static void settle(struct play *p, uint32_t who) {
    for (; who != 0; who &= who - 1) {
        struct guest *g = &p->at[__builtin_ctz(who)];
        const struct nodeset *set = court_nodes(p->bench.court, g->number);
        CHECK_EQ(nodeset_count(set), g->order.nodes);
        NODESET_EACH (n, set) {
            CHECK(will_do(p, g, n));
            p->left[n] -= g->order.exclusive ? p->width[n] : g->order.ppn;
            p->memory[n] -= g->order.memory;
        }
        g->runs = true;
    }
    CHECK(court_conserved(p->bench.court));
}

/* Whom brute force starts, in the order of the queue. */
static uint32_t expected(struct play *p, uint32_t first) {
    uint32_t who = 0;
    for (uint32_t i = first; i < p->count; i++)
        if (can_all(p, who | (uint32_t)1 << i, 0))
            who |= (uint32_t)1 << i;
    return who;
}

static uint32_t most(struct play *p, uint32_t first) {
    uint32_t best = 0;
    for (uint32_t who = 0; who >> (p->count - first) == 0; who++)
        if (bits_popcount(who) > best && can_all(p, who << first, 0))
            best = bits_popcount(who);
    return best;
}

static void one_decision(struct play *p, bool single) {
    uint32_t first = p->count;
    for (int i = 0; i < JOBS && p->count < 2 * JOBS; i++)
        draw_job(p, single);
    uint32_t should = expected(p, first);
    if (single)
        CHECK_EQ(bits_popcount(should), most(p, first));
    court_hold(p->bench.court, 0, false);
    uint32_t who = take_starts(p, first);
    CHECK_EQ(who, should);
    settle(p, who);
}

/* What runs already stays where it is; who waits stays away, so that each decision has its own jobs. */
static void one_play(uint64_t seed, const struct storm_policy *policy, bool single) {
    struct play p;
    begin(&p, seed, policy);
    court_hold(p.bench.court, 0, true);
    take_starts(&p, 0);
    one_decision(&p, single);
    court_hold(p.bench.court, 0, true);
    for (uint32_t i = 0; i < p.count; i++)
        if (!p.at[i].runs)
            court_end(p.bench.court, 0, p.at[i].number);
    one_decision(&p, single);
    bench_fini(&p.bench);
}

static void test_none_left_out(void) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        one_play(seed, seed % 2 ? &eager : &keen, false);
}

static void test_as_many_as_can_be(void) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        one_play(seed, seed % 2 ? &eager : &keen, true);
}

/* ---- as time goes by ---- */

/* The last one: orders are borrowed, so nobody changes places. */
static void end_last(struct play *p) {
    struct guest *g = &p->at[--p->count];
    if (g->runs)
        NODESET_EACH (n, court_nodes(p->bench.court, g->number)) {
            p->left[n] += g->order.exclusive ? p->width[n] : g->order.ppn;
            p->memory[n] += g->order.memory;
        }
    court_end(p->bench.court, p->now, g->number);
}

/* Whatever the policy is, nodes have no more than their width, and jobs what they need. */
static void play_policy(const struct storm_policy *policy, uint64_t seed) {
    struct play p;
    begin(&p, seed, policy);
    for (int step = 0; step < 60; step++) {
        p.now += random_below(&p.random, 30);
        if (p.count < 2 * JOBS && random_chance(&p.random, 2, 3))
            draw_job(&p, false);
        else if (p.count > 0)
            end_last(&p);
        settle(&p, take_starts(&p, 0));
    }
    bench_fini(&p.bench);
}

static void test_needs_and_widths(void) {
    for (uint32_t i = 0; policies_at(i) != NULL; i++)
        for (uint64_t seed = 1; seed <= SEEDS / 20; seed++)
            play_policy(policies_at(i), seed);
}

/* ---- by hand ---- */

static void test_least_special_first(void) {
    struct bench b;
    struct court_config c = bench_config(6, 4, 1);
    bench_init(&b, &c, &policy_fcfs);
    court_node_rank(b.court, 0, 2);
    court_node_rank(b.court, 1, 1);
    bench_usable(&b, 0, 2, 3, false);
    court_node_pes(b.court, 3, 2);
    bench_usable(&b, 0, 2, 3, true);
    CHECK_STR(bench_arrives(&b, 0, 'A', 1, 10), "A:3@0"); /* the narrowest of those of rank 0 */
    CHECK_STR(bench_arrives(&b, 0, 'B', 1, 10), "B:3@0");
    CHECK_STR(bench_arrives(&b, 0, 'C', 2, 10), "C:[2,4]@0");
    CHECK_STR(bench_arrives(&b, 0, 'D', 5, 10), "D:[0-2,4-5]@0");
    struct court_order o = bench_order('E', 1, 10);
    o.exclusive = true;
    CHECK_STR(bench_order_arrives(&b, 0, &o), "");
    court_node_rank(b.court, 4, 3);
    CHECK_STR(bench_ends(&b, 1, 'D'), "E:5@0");
    CHECK_STR(bench_arrives(&b, 1, 'F', 1, 10), "F:2@0");
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

static void test_coveted_nodes_last(void) {
    struct bench b;
    struct court_config c = bench_config(4, 1, 1);
    uint64_t words[8];
    struct nodeset meets;
    nodeset_init(&meets, 4, words);
    nodeset_add_range(&meets, 0, 1);
    bench_init(&b, &c, &policy_easy);
    struct court_order o = bench_order('A', 1, 50);
    o.meets = &meets;
    CHECK_STR(bench_order_arrives(&b, 0, &o), "A:0@0");
    o = bench_order('B', 2, 10);
    o.meets = &meets;
    CHECK_STR(bench_order_arrives(&b, 0, &o), ""); /* waits for node 0 */
    CHECK_STR(bench_arrives(&b, 0, 'C', 1, 20), "C:2@0");
    CHECK_STR(bench_arrives(&b, 0, 'D', 1, 20), "D:3@0");
    CHECK_STR(bench_arrives(&b, 0, 'E', 1, 20),
              "E:1@0"); /* there is no other, and it is over in time */
    bench_fini(&b);
}

/* Gangs are seated in blocks that the policy keeps in mind: nobody moves them. */
static void test_seen_nodes_stay(void) {
    uint64_t words[8];
    struct nodeset meets;
    nodeset_init(&meets, 2, words);
    nodeset_add(&meets, 0);
    for (int gang = 0; gang < 2; gang++) {
        struct bench b;
        struct court_config c = bench_config(2, 1, 1);
        bench_init(&b, &c, gang ? &policy_gang : &policy_fcfs);
        court_hold(b.court, 0, true);
        bench_arrives(&b, 0, 'A', 1, 10);
        struct court_order o = bench_order('B', 1, 10);
        o.meets = &meets;
        bench_order_arrives(&b, 0, &o);
        court_hold(b.court, 0, false);
        CHECK_STR(bench_taken(&b), gang ? "A:0@0" : "A:1@0 B:0@0");
        CHECK(court_conserved(b.court));
        CHECK_STR(bench_ends(&b, 1, 'A'), gang ? "B:0@0" : "");
        CHECK_STR(bench_ends(&b, 1, 'B'), "");
        bench_fini(&b);
    }
}

/* On a large machine, too: 200 nodes change hands. */
static void test_many_are_moved(void) {
    enum { MANY = 1000 };
    static uint64_t words[2][64];
    struct bench b;
    struct court_config c = bench_config(MANY, 1, 1);
    struct nodeset low, high;
    nodeset_init(&low, MANY, words[0]);
    nodeset_init(&high, MANY, words[1]);
    nodeset_add_range(&low, 0, 599);
    nodeset_add_range(&high, 400, 999);
    bench_init(&b, &c, &policy_fcfs);
    for (uint32_t n = 0; n < 400; n++) /* so the first goes where only the second can go */
        court_node_rank(b.court, n, 1);
    court_hold(b.court, 0, true);
    struct court_order o = bench_order('A', 300, 10);
    o.meets = &low;
    bench_order_arrives(&b, 0, &o);
    o = bench_order('B', 600, 10);
    o.meets = &high;
    bench_order_arrives(&b, 0, &o);
    court_hold(b.court, 0, false);
    CHECK_STR(bench_taken(&b), "A:[0-299]@0 B:[400-999]@0");
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

/* Who did not fit is not looked at again before something has changed for it: be it anything. */
static void test_looked_at_again(void) {
    struct bench b;
    struct court_config c = bench_config(4, 4, 1);
    struct nodeset meets;
    uint64_t words[8];
    bench_init(&b, &c, &policy_easy);
    nodeset_init(&meets, 4, words);
    nodeset_add(&meets, 0);
    struct court_order o = bench_order('A', 2, 100);
    o.meets = &meets;
    o.ppn = 3;
    CHECK_STR(bench_order_arrives(&b, 0, &o), "");
    nodeset_add(&meets, 1);
    court_met(b.court, 1);
    CHECK_STR(bench_taken(&b), "A:[0-1]@0");
    nodeset_clear(&b.set);
    nodeset_add(&b.set, 3);
    CHECK_EQ(court_window_add(b.court, 1, 7, 10, 20, &b.set), 0);
    o = bench_order('B', 2, 100);
    o.ppn = 3;
    CHECK_STR(bench_order_arrives(&b, 1, &o), ""); /* it would reach the window */
    court_window_remove(b.court, 2, 7);
    CHECK_STR(bench_taken(&b), "B:[2-3]@0");
    o = bench_order('C', 3, 100);
    o.ppn = 2;
    CHECK_STR(bench_order_arrives(&b, 2, &o), "");
    CHECK_STR(bench_ends(&b, 3, 'A'), ""); /* two are given back: one too few */
    bench_usable(&b, 3, 3, 3, false);
    CHECK_STR(bench_ends(&b, 4, 'B'), "C:[0-2]@0");
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

int main(void) {
    TEST(test_none_left_out);
    TEST(test_as_many_as_can_be);
    TEST(test_needs_and_widths);
    TEST(test_least_special_first);
    TEST(test_coveted_nodes_last);
    TEST(test_seen_nodes_stay);
    TEST(test_many_are_moved);
    TEST(test_looked_at_again);
    return tap_finish();
}

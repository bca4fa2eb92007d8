/* SPDX-License-Identifier: MIT */
/* Memory of nodes: one book for all slots. Nothing starts where there is too little of it, under any policy; and whoever
 * waits under a policy that starts all who fit does not, by brute force. */
#include <errno.h>
#include <stdlib.h>

#include "base/random.h"
#include "sched/bench_court.h"
#include "sched/court_inside.h"
#include "tap.h"

#ifdef STORM_SLOW
enum { SEEDS = 10 };
#else
enum { SEEDS = 120 };
#endif

enum { NODES = 8, JOBS = 20, WIDTH = 4, SECTIONS = 3, MEMORY = 12 };

struct guest {
    struct court_order order;
    struct court_section sections[SECTIONS];
    uint32_t number;
    bool runs;
};

struct play {
    struct random random;
    struct bench bench;
    uint32_t nodes, width, slots, count;
    uint32_t has[NODES];
    uint64_t now;
    struct guest at[JOBS];
};

/* ---- drawing ---- */

static void begin(struct play *p, uint64_t seed, const struct storm_policy *policy) {
    memset(p, 0, sizeof *p);
    random_init(&p->random, seed);
    p->nodes = (uint32_t)random_between(&p->random, 2, NODES);
    p->width = random_chance(&p->random, 1, 3) ? 1 : WIDTH;
    p->slots = policy->flags & STORM_SLICED ? 3 : 1;
    struct court_config c = bench_config(p->nodes, p->width, p->slots);
    c.sections = 60;
    bench_init(&p->bench, &c, policy);
    for (uint32_t n = 0; n < p->nodes; n++) {
        p->has[n] = (uint32_t)random_between(&p->random, 4, MEMORY);
        court_node_memory(p->bench.court, n, p->has[n]);
    }
}

static void draw_job(struct play *p) {
    struct random *r = &p->random;
    struct guest *g = &p->at[p->count];
    *g = (struct guest){.order = bench_order((char)('A' + p->count), 1, 1)};
    struct court_order *o = &g->order;
    o->estimate = random_between(r, 1, 100);
    o->nodes = (uint32_t)random_between(r, 1, 3);
    o->ppn = (uint32_t)random_between(r, 1, p->width);
    o->memory = (uint32_t)random_below(r, MEMORY);
    o->exclusive = random_chance(r, 1, 5);
    o->sections = g->sections;
    o->section_count = random_chance(r, 1, 3) ? (uint32_t)random_between(r, 1, SECTIONS) : 0;
    for (uint32_t k = 0; k < o->section_count; k++)
        g->sections[k] = (struct court_section){.nodes = 1,
                                                .ppn = (uint32_t)random_between(r, 1, p->width),
                                                .memory = (uint32_t)random_below(r, MEMORY)};
    if (court_arrive(p->bench.court, p->now, o, &g->number) == 0)
        p->count++;
}

/* It may have less than is held there. */
static void draw_memory(struct play *p) {
    uint32_t n = (uint32_t)random_below(&p->random, p->nodes);
    p->has[n] = random_chance(&p->random, 1, 6) ? COURT_MEMORY_ANY
                                                : (uint32_t)random_between(&p->random, 1, MEMORY);
    court_node_memory(p->bench.court, n, p->has[n]);
    court_met(p->bench.court, p->now);
}

/* ---- brute force ---- */

static uint32_t parts_of(const struct guest *g) {
    return g->order.section_count > 0 ? g->order.section_count : 1;
}

static uint32_t memory_of(const struct guest *g, uint32_t k) {
    return g->order.section_count > 0 ? g->sections[k].memory : g->order.memory;
}

static uint64_t held(const struct play *p, uint32_t n) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t k = 0; p->at[i].runs && k < parts_of(&p->at[i]); k++)
            if (nodeset_has(court_section_nodes(p->bench.court, p->at[i].number, k), n))
                sum += memory_of(&p->at[i], k);
    return sum;
}

static bool will_do(const struct play *p, const struct guest *g, uint32_t k, uint32_t slot,
                    uint32_t n) {
    uint32_t ppn = g->order.section_count > 0 ? g->sections[k].ppn : g->order.ppn;
    uint32_t left = p->width - court_node_used(p->bench.court, slot, n);
    return left >= (g->order.exclusive ? p->width : ppn) &&
           (memory_of(g, k) == 0 || held(p, n) + memory_of(g, k) <= p->has[n]);
}

/* Section k lacks so many, from this node on; bits of `used` are nodes of others. */
static bool can(const struct play *p, const struct guest *g, uint32_t k, uint32_t slot,
                uint32_t used, uint32_t from, uint32_t lacks) {
    if (lacks == 0)
        return k + 1 == parts_of(g) || can(p, g, k + 1, slot, used, 0, g->sections[k + 1].nodes);
    for (uint32_t n = from; n < p->nodes; n++)
        if (!(used >> n & 1) && will_do(p, g, k, slot, n) &&
            can(p, g, k, slot, used | (uint32_t)1 << n, n + 1, lacks - 1))
            return true;
    return false;
}

static bool fits(const struct play *p, const struct guest *g, uint32_t slot) {
    return can(p, g, 0, slot, 0, 0,
               g->order.section_count > 0 ? g->sections[0].nodes : g->order.nodes);
}

/* ---- judging ---- */

static void check_start(struct play *p, struct guest *g) {
    g->runs = true;
    for (uint32_t k = 0; k < parts_of(g); k++)
        NODESET_EACH (n, court_section_nodes(p->bench.court, g->number, k))
            CHECK(memory_of(g, k) == 0 || held(p, n) <= p->has[n]);
}

static void obey(struct play *p) {
    struct court_effect e;
    while (court_next(p->bench.court, &e)) {
        CHECK(e.kind != COURT_FAULT);
        for (uint32_t i = 0; i < p->count && e.kind == COURT_START; i++)
            if (!p->at[i].runs && p->at[i].number == e.job)
                check_start(p, &p->at[i]);
    }
    CHECK(court_conserved(p->bench.court));
    for (uint32_t n = 0; n < p->nodes; n++)
        CHECK_EQ(court_node_memory_held(p->bench.court, n), held(p, n));
}

/* Nobody waits who fits, and nobody is told that he lacks nothing. */
static void check_waiting(struct play *p) {
    struct court_outlook look;
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->at[i].runs)
            continue;
        for (uint32_t s = 0; s < p->slots; s++)
            CHECK(!fits(p, &p->at[i], s));
        court_outlook(p->bench.court, p->at[i].number, &look);
        CHECK(look.lacks > 0 || look.lacks_memory > 0);
    }
}

static void play(const struct storm_policy *policy, uint64_t seed) {
    bool all = policy == &policy_gang || policy == &policy_local;
    struct play p;
    begin(&p, seed, policy);
    for (int step = 0; step < 60; step++) {
        uint32_t before = p.count, what = (uint32_t)random_below(&p.random, 10);
        p.now += random_below(&p.random, 20);
        if (what == 0) {
            draw_memory(&p);
        } else if (what < 7 && p.count < JOBS) {
            draw_job(&p);
            if (p.count == before) /* refused: nothing was decided */
                continue;
        } else if (p.count > 0) {
            court_end(p.bench.court, p.now, p.at[--p.count].number);
        }
        obey(&p);
        if (all)
            check_waiting(&p);
    }
    bench_fini(&p.bench);
}

static void test_never_too_much(void) {
    for (uint32_t i = 0; policies_at(i) != NULL; i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            play(policies_at(i), seed);
}

/* ---- by hand ---- */

static struct court_order order(char letter, uint32_t nodes, uint64_t estimate, uint32_t memory) {
    struct court_order o = bench_order(letter, nodes, estimate);
    o.memory = memory;
    return o;
}

static const char *arrives(struct bench *b, uint64_t now, char letter, uint32_t nodes,
                           uint64_t estimate, uint32_t memory) {
    struct court_order o = order(letter, nodes, estimate, memory);
    return bench_order_arrives(b, now, &o);
}

static void set_memory(struct bench *b, uint32_t nodes, uint32_t units) {
    for (uint32_t n = 0; n < nodes; n++)
        court_node_memory(b->court, n, units);
}

static void test_shared_by_slots(void) {
    struct bench b;
    struct court_config c = bench_config(2, 1, 3);
    bench_init(&b, &c, &policy_gang);
    set_memory(&b, 2, 10);
    CHECK_STR(arrives(&b, 0, 'A', 2, 10, 6), "A:[0-1]@0");
    CHECK_STR(arrives(&b, 0, 'B', 2, 10, 5), ""); /* though a slot is empty */
    CHECK_STR(arrives(&b, 0, 'C', 2, 10, 4), "C:[0-1]@1");
    CHECK_STR(arrives(&b, 0, 'D', 2, 10, 0), "D:[0-1]@2");
    CHECK_EQ(court_node_memory_held(b.court, 1), 10);
    CHECK_EQ(court_node_memory_of(b.court, 1), 10);
    struct court_outlook look;
    court_outlook(b.court, b.job['B'], &look);
    CHECK_EQ(look.at, 30); /* as A or C end, in three slots */
    CHECK(look.ends == 'A' || look.ends == 'C');
    CHECK(court_conserved(b.court));
    CHECK(strstr(bench_ends(&b, 1, 'D'), "B") == NULL);
    CHECK(strstr(bench_ends(&b, 1, 'C'), "B") == NULL);
    CHECK(strstr(bench_ends(&b, 1, 'A'), "B:[0-1]@") != NULL);
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

/* What is held for the head is memory in other slots, too. */
static void test_reserved_in_all_slots(void) {
    struct bench b;
    struct court_config c = bench_config(2, 1, 2);
    bench_init(&b, &c, &policy_gang_backfill);
    set_memory(&b, 2, 10);
    CHECK_STR(arrives(&b, 0, 'A', 2, 10, 6), "A:[0-1]@0");
    CHECK_STR(arrives(&b, 0, 'B', 2, 10, 8), "");
    CHECK_EQ(bench_job(&b, 'B')->reserved, 20);
    CHECK_STR(arrives(&b, 0, 'C', 1, 50, 3), ""); /* it would be there still, with too much */
    CHECK(strstr(arrives(&b, 0, 'D', 1, 5, 3), "D:") != NULL); /* over by then */
    CHECK(strstr(arrives(&b, 0, 'E', 1, 50, 2), "E:") != NULL);
    CHECK_EQ(bench_job(&b, 'B')->reserved, 20);
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

static void test_easy_keeps_memory(void) {
    struct bench b;
    struct court_config c = bench_config(2, 4, 1);
    bench_init(&b, &c, &policy_easy);
    set_memory(&b, 2, 10);
    CHECK_STR(arrives(&b, 0, 'A', 2, 10, 6), "A:[0-1]@0");
    CHECK_STR(arrives(&b, 0, 'B', 2, 10, 8), "");
    CHECK_EQ(bench_job(&b, 'B')->reserved, 10);
    CHECK_STR(arrives(&b, 0, 'C', 1, 50, 3), "");
    CHECK_STR(arrives(&b, 0, 'D', 1, 50, 2), "D:0@0");
    CHECK_STR(arrives(&b, 0, 'E', 1, 50, 1), "E:1@0");
    CHECK_STR(arrives(&b, 0, 'F', 2, 50, 0), "F:[0-1]@0");
    CHECK_STR(bench_ends(&b, 5, 'A'), "B:[0-1]@0");
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

static void test_too_much(void) {
    struct bench b;
    struct court_config c = bench_config(3, 1, 1);
    struct court_section sections[2] = {{.nodes = 1, .ppn = 1, .memory = 20},
                                        {.nodes = 1, .ppn = 1, .memory = 10}};
    c.sections = 4;
    bench_init(&b, &c, &policy_fcfs);
    struct court_order o = order('A', 2, 10, 20), s = bench_order('S', 0, 10);
    s.sections = sections;
    s.section_count = 2;
    CHECK(court_could(b.court, &o));
    court_node_memory(b.court, 0, 10);
    CHECK(court_could(b.court, &o));
    court_node_memory(b.court, 1, 10);
    CHECK(!court_could(b.court, &o));
    CHECK_STR(bench_order_arrives(&b, 0, &o), strerror(E2BIG));
    CHECK(court_could(b.court, &s)); /* the third is not limited */
    court_node_memory(b.court, 2, 19);
    CHECK(!court_could(b.court, &s));
    court_node_memory(b.court, 2, 20);
    CHECK_STR(bench_order_arrives(&b, 0, &s), "S:[0,2]@0");
    CHECK_EQ(court_node_memory_held(b.court, 2), 20);
    CHECK_EQ(court_node_memory_held(b.court, 0), 10);
    court_node_memory(b.court, 2, COURT_MEMORY_ANY);
    CHECK_EQ(court_node_memory_of(b.court, 2), COURT_MEMORY_ANY);
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

/* Nobody is sent away, and nobody comes, until there is room again. */
static void test_less_and_more(void) {
    struct bench b;
    struct court_config c = bench_config(1, 4, 2);
    struct nodeset set;
    uint64_t words[8];
    uint32_t job;
    bench_init(&b, &c, &policy_fcfs);
    set_memory(&b, 1, 10);
    CHECK_STR(arrives(&b, 0, 'A', 1, 10, 6), "A:0@0");
    set_memory(&b, 1, 5);
    CHECK_STR(arrives(&b, 0, 'B', 1, 10, 0), "B:0@0");
    CHECK_STR(arrives(&b, 0, 'C', 1, 10, 1), "");
    struct court_outlook look;
    court_outlook(b.court, b.job['C'], &look);
    CHECK(look.lacks == 0 && look.lacks_memory == 1 && look.at == 10);
    set_memory(&b, 1, 7);
    court_met(b.court, 1);
    CHECK_STR(bench_taken(&b), "C:0@0");
    nodeset_init(&set, 1, words);
    nodeset_add(&set, 0);
    struct court_order o = order('D', 1, 10, 100); /* it was there before the limit */
    CHECK_EQ(court_resume(b.court, 1, &o, 0, &set, 1, &job), 0);
    CHECK_EQ(court_node_memory_held(b.court, 0), 107);
    CHECK(court_conserved(b.court));
    court_end(b.court, 2, job);
    CHECK_STR(bench_ends(&b, 2, 'A'), "");
    CHECK_EQ(court_node_memory_held(b.court, 0), 1);
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

static void test_window(void) {
    struct bench b;
    struct court_config c = bench_config(2, 4, 1);
    bench_init(&b, &c, &policy_easy);
    set_memory(&b, 2, 10);
    CHECK_STR(arrives(&b, 0, 'A', 1, 100, 6), "A:0@0");
    nodeset_clear(&b.set);
    nodeset_add(&b.set, 0);
    CHECK_EQ(court_window_add(b.court, 0, 7, 10, 50, &b.set), 0);
    struct court_order o = order('B', 1, 10, 5);
    o.window = 7;
    CHECK_STR(bench_order_arrives(&b, 0, &o), "");
    o = order('C', 1, 10, 4);
    o.window = 7;
    CHECK_STR(bench_order_arrives(&b, 0, &o), "");
    CHECK_STR(bench_ticks(&b), "C:0@0");
    CHECK_STR(bench_ends(&b, 12, 'A'), "B:0@0");
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

/* Jobs that start together make room for each other. */
static void test_moved(void) {
    struct bench b;
    struct court_config c = bench_config(2, 1, 1);
    bench_init(&b, &c, &policy_fcfs);
    court_node_memory(b.court, 0, 20);
    court_node_memory(b.court, 1, 10);
    court_hold(b.court, 0, true);
    arrives(&b, 0, 'A', 1, 10, 5);
    arrives(&b, 0, 'B', 1, 10, 15);
    court_hold(b.court, 0, false);
    CHECK_STR(bench_taken(&b), "A:1@0 B:0@0");
    CHECK_EQ(court_node_memory_held(b.court, 0), 15);
    CHECK_EQ(court_node_memory_held(b.court, 1), 5);
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

static void decide(void *self, struct storm_host *h) {
    static const uint32_t first[1] = {0};
    (void)self;
    const struct storm_job *j = storm_queued(h, NULL);
    if (j != NULL)
        storm_start_on(h, j, 0, first, 1);
}

static void test_named_nodes(void) {
    static const struct storm_policy namer = {
        .version = STORM_POLICY_VERSION, .name = "namer", .decide = decide};
    struct bench b;
    struct court_config c = bench_config(2, 4, 1);
    c.guest = &namer;
    bench_init(&b, &c, &namer);
    court_node_memory(b.court, 0, 10);
    CHECK_STR(arrives(&b, 0, 'A', 1, 10, 6), "A:0@0");
    const char *taken = arrives(&b, 0, 'B', 1, 10, 6);
    CHECK(strstr(taken, "too little memory (job 66, node 0)") != NULL);
    CHECK(strstr(taken, "B:1@0") != NULL);
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

int main(void) {
    TEST(test_never_too_much);
    TEST(test_shared_by_slots);
    TEST(test_reserved_in_all_slots);
    TEST(test_easy_keeps_memory);
    TEST(test_too_much);
    TEST(test_less_and_more);
    TEST(test_window);
    TEST(test_moved);
    TEST(test_named_nodes);
    return tap_finish();
}

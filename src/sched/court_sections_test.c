/* SPDX-License-Identifier: MIT */
/* Jobs of several sections, against brute force on small machines: whether they start, when they are promised to, and
 * that every section has what it wants. */
#include <errno.h>
#include <stdlib.h>

#include "base/random.h"
#include "sched/bench_court.h"
#include "sched/court_inside.h"
#include "tap.h"

#ifdef STORM_SLOW
enum { SEEDS = 40 };
#else
enum { SEEDS = 500 };
#endif

enum { NODES = 8, JOBS = 14, WIDTH = 4, SECTIONS = 4 };

struct guest {
    struct court_order order;
    struct court_section sections[SECTIONS];
    struct nodeset meets[SECTIONS], only[SECTIONS], exclude;
    uint64_t words[2 * SECTIONS + 1][8];
    uint32_t number;
    uint64_t ends;
    bool runs;
};

struct play {
    struct random random;
    struct bench bench;
    uint32_t nodes, width_max, memory_max, count;
    uint32_t width[NODES], left[NODES];
    uint32_t memory[NODES]; /* that is left */
    bool used[NODES];       /* by brute force, for a section */
    uint64_t now;
    struct guest at[JOBS];
};

/* ---- drawing ---- */

static const struct nodeset *draw_set(struct play *p, struct nodeset *set, uint64_t *words,
                                      uint32_t of) {
    nodeset_init(set, p->nodes, words);
    for (uint32_t n = 0; n < p->nodes; n++)
        if (random_chance(&p->random, 1, of))
            nodeset_add(set, n);
    return random_chance(&p->random, 1, 2) ? set : NULL;
}

static void draw_job(struct play *p, uint32_t sections) {
    struct random *r = &p->random;
    struct guest *g = &p->at[p->count];
    *g = (struct guest){.order = bench_order((char)('A' + p->count), 1, 1)};
    struct court_order *o = &g->order;
    o->estimate = random_between(r, 1, 100);
    o->exclusive = random_chance(r, 1, 5);
    const struct nodeset *exclude = draw_set(p, &g->exclude, g->words[SECTIONS], 6);
    o->exclude = exclude;
    o->sections = g->sections;
    o->section_count = sections;
    o->memory = (uint32_t)random_below(r, p->memory_max + 1);
    o->ppn = (uint32_t)random_between(r, 1, p->width_max);
    for (uint32_t k = 0; k < sections; k++) {
        g->sections[k].nodes = (uint32_t)random_between(r, 1, sections > 2 ? 2 : 3);
        g->sections[k].ppn = (uint32_t)random_between(r, 1, p->width_max);
        g->sections[k].memory = (uint32_t)random_below(r, p->memory_max + 1);
        g->sections[k].meets = draw_set(p, &g->meets[k], g->words[k], 2);
        g->sections[k].only = draw_set(p, &g->only[k], g->words[SECTIONS + 1 + k], 2);
    }
    if (court_arrive(p->bench.court, p->now, o, &g->number) == 0)
        p->count++;
}

static void begin(struct play *p, uint64_t seed, const struct storm_policy *policy,
                  uint32_t slots) {
    memset(p, 0, sizeof *p);
    random_init(&p->random, seed);
    p->nodes = (uint32_t)random_between(&p->random, 2, NODES);
    p->width_max = random_chance(&p->random, 1, 4) ? 1 : WIDTH;
    p->memory_max = random_chance(&p->random, 1, 2) ? 8 : 0;
    struct court_config c = bench_config(p->nodes, p->width_max, slots);
    c.sections = 40;
    bench_init(&p->bench, &c, policy);
    bench_usable(&p->bench, 0, 0, p->nodes - 1, false);
    for (uint32_t n = 0; n < p->nodes; n++) {
        p->width[n] = p->left[n] = (uint32_t)random_between(&p->random, 1, p->width_max);
        court_node_pes(p->bench.court, n, p->width[n]);
        court_node_rank(p->bench.court, n, (uint8_t)random_below(&p->random, 3));
        p->memory[n] = (uint32_t)random_between(&p->random, 2, 12);
        if (p->memory_max > 0)
            court_node_memory(p->bench.court, n, p->memory[n]);
    }
    bench_usable(&p->bench, 0, 0, p->nodes - 1, true);
}

/* ---- brute force ---- */

static struct court_section section_of(const struct guest *g, uint32_t k) {
    if (g->order.section_count > 0)
        return g->sections[k];
    return (struct court_section){
        .nodes = g->order.nodes, .ppn = g->order.ppn, .memory = g->order.memory};
}

static uint32_t sections_of(const struct guest *g) {
    return g->order.section_count > 0 ? g->order.section_count : 1;
}

static uint32_t each(const struct play *p, const struct guest *g, uint32_t k, uint32_t n) {
    return g->order.exclusive ? p->width[n] : section_of(g, k).ppn;
}

static bool will_do(const struct play *p, const struct guest *g, uint32_t k, uint32_t n) {
    struct court_section s = section_of(g, k);
    return !p->used[n] && p->width[n] >= s.ppn && p->left[n] >= each(p, g, k, n) &&
           p->memory[n] >= s.memory && (s.meets == NULL || nodeset_has(s.meets, n)) &&
           (s.only == NULL || nodeset_has(s.only, n)) &&
           (g->order.exclude == NULL || !nodeset_has(g->order.exclude, n));
}

/* Section k, which lacks so many nodes still, from this one on; and all behind it. */
static bool can(struct play *p, const struct guest *g, uint32_t k, uint32_t from, uint32_t lacks) {
    if (lacks == 0)
        return k + 1 == sections_of(g) || can(p, g, k + 1, 0, section_of(g, k + 1).nodes);
    for (uint32_t n = from; n + lacks <= p->nodes; n++) {
        if (!will_do(p, g, k, n))
            continue;
        p->used[n] = true;
        bool found = can(p, g, k, n + 1, lacks - 1);
        p->used[n] = false;
        if (found)
            return true;
    }
    return false;
}

static bool fits(struct play *p, const struct guest *g) {
    return can(p, g, 0, 0, section_of(g, 0).nodes);
}

static void change(struct play *p, const struct guest *g, bool take) {
    for (uint32_t k = 0; k < sections_of(g); k++)
        NODESET_EACH (n, court_section_nodes(p->bench.court, g->number, k)) {
            uint32_t pes = each(p, g, k, n), memory = section_of(g, k).memory;
            p->left[n] = take ? p->left[n] - pes : p->left[n] + pes;
            p->memory[n] = take ? p->memory[n] - memory : p->memory[n] + memory;
        }
}

/* When it fits, by the ends of what runs. */
static uint64_t earliest(struct play *p, const struct guest *g) {
    uint32_t left[NODES], memory[NODES];
    uint64_t best = STORM_NEVER;
    memcpy(left, p->left, sizeof left);
    memcpy(memory, p->memory, sizeof memory);
    for (uint32_t i = 0; i < p->count; i++) { /* for the end of each: all that is over by then */
        uint64_t at = p->at[i].ends > p->now ? p->at[i].ends : p->now + 1;
        if (!p->at[i].runs)
            continue;
        for (uint32_t e = 0; e < p->count; e++)
            if (p->at[e].runs && p->at[e].ends <= at)
                change(p, &p->at[e], false);
        if (at < best && fits(p, g))
            best = at;
        memcpy(p->left, left, sizeof left);
        memcpy(p->memory, memory, sizeof memory);
    }
    return best;
}

/* ---- judging ---- */

static void started(struct play *p, struct guest *g) {
    struct court *c = p->bench.court;
    uint32_t sum = 0;
    for (uint32_t k = 0; k < sections_of(g); k++) {
        const struct nodeset *set = court_section_nodes(c, g->number, k);
        CHECK_EQ(nodeset_count(set), section_of(g, k).nodes);
        CHECK(nodeset_covers(court_nodes(c, g->number), set));
        NODESET_EACH (n, set) {
            CHECK(will_do(p, g, k, n));
            p->used[n] = true; /* no other section has it */
        }
        sum += nodeset_count(set);
    }
    CHECK_EQ(nodeset_count(court_nodes(c, g->number)), sum);
    memset(p->used, 0, sizeof p->used);
    change(p, g, true);
    g->runs = true;
    g->ends = p->now + g->order.estimate;
}

static void obey(struct play *p) {
    struct court_effect e;
    while (court_next(p->bench.court, &e)) {
        CHECK(e.kind != COURT_FAULT);
        for (uint32_t i = 0; i < p->count && e.kind == COURT_START; i++)
            if (!p->at[i].runs && p->at[i].number == e.job)
                started(p, &p->at[i]);
    }
    CHECK(court_conserved(p->bench.court));
}

static struct guest *head_of(struct play *p) {
    uint32_t head = court_head(p->bench.court);
    for (uint32_t i = 0; i < p->count; i++)
        if (!p->at[i].runs && p->at[i].number == head)
            return &p->at[i];
    return NULL;
}

static void check_head(struct play *p) {
    const struct guest *head = head_of(p);
    if (head == NULL)
        return;
    CHECK(!fits(p, head));
    CHECK_EQ(court_job(p->bench.court, head->number)->reserved, earliest(p, head));
}

static void play_easy(uint64_t seed) {
    struct play p;
    begin(&p, seed, &policy_easy, 1);
    for (int step = 0; step < 40; step++) {
        p.now += random_below(&p.random, 20);
        if (p.count < JOBS && random_chance(&p.random, 2, 3)) {
            uint32_t before = p.count;
            draw_job(&p, (uint32_t)random_below(&p.random, SECTIONS + 1));
            if (p.count == before) /* refused: nothing was decided */
                continue;
        } else if (p.count > 0) {
            struct guest *g = &p.at[--p.count];
            if (g->runs)
                change(&p, g, false);
            court_end(p.bench.court, p.now, g->number);
        }
        obey(&p);
        check_head(&p);
    }
    bench_fini(&p.bench);
}

static void test_against_brute_force(void) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        play_easy(seed);
}

/* ---- policies that share time, and who comes back ---- */

static void play_gang(uint64_t seed) {
    struct play p;
    begin(&p, seed, seed % 2 ? &policy_gang : &policy_gang_backfill, 3);
    for (int step = 0; step < 40; step++) {
        struct court_effect e;
        p.now += random_below(&p.random, 20);
        if (p.count < JOBS && random_chance(&p.random, 2, 3))
            draw_job(&p, (uint32_t)random_below(&p.random, SECTIONS + 1));
        else if (p.count > 0)
            court_end(p.bench.court, p.now, p.at[--p.count].number);
        while (court_next(p.bench.court, &e))
            CHECK(e.kind != COURT_FAULT);
        CHECK(court_conserved(p.bench.court));
    }
    bench_fini(&p.bench);
}

static void test_gangs(void) {
    for (uint64_t seed = 1; seed <= SEEDS / 5; seed++)
        play_gang(seed);
}

static struct court_order two_sections(struct court_section *sections, char letter) {
    struct court_order o = bench_order(letter, 0, 10);
    sections[0] = (struct court_section){.nodes = 1, .ppn = 4};
    sections[1] = (struct court_section){.nodes = 2, .ppn = 1};
    o.sections = sections;
    o.section_count = 2;
    return o;
}

static void test_resume(void) {
    struct bench b;
    struct court_config c = bench_config(4, 4, 2);
    struct court_section sections[2];
    struct nodeset sets[2];
    uint64_t words[2][8];
    uint32_t job;
    c.sections = 3;
    bench_init(&b, &c, &policy_fcfs);
    nodeset_init(&sets[0], 4, words[0]);
    nodeset_init(&sets[1], 4, words[1]);
    nodeset_add(&sets[0], 2);
    nodeset_add_range(&sets[1], 2, 3);
    struct court_order o = two_sections(sections, 'A');
    CHECK_EQ(court_resume(b.court, 5, &o, 1, sets, 1, &job), -EINVAL); /* node 2 twice */
    nodeset_remove(&sets[1], 2);
    CHECK_EQ(court_resume(b.court, 5, &o, 1, sets, 1, &job), -EINVAL); /* one is missing */
    nodeset_add(&sets[1], 0);
    CHECK_EQ(court_resume(b.court, 5, &o, 1, sets, 1, &job), 0);
    CHECK(nodeset_equal(court_section_nodes(b.court, job, 1), &sets[1]));
    CHECK_EQ(nodeset_count(court_nodes(b.court, job)), 3);
    CHECK_EQ(court_node_used(b.court, 1, 2), 4);
    CHECK_EQ(court_node_used(b.court, 1, 3), 1);
    const struct storm_job *j = court_job(b.court, job);
    CHECK(j->nodes == 3 && j->ppn == 4 && j->pes == 6 && j->procs == 6 && j->chooses);
    uint32_t other;
    CHECK_EQ(court_resume(b.court, 5, &o, 1, sets, 1, &other), -ENOSPC); /* of sets */
    CHECK(court_conserved(b.court));
    court_end(b.court, 6, job);
    CHECK(court_conserved(b.court));
    CHECK_EQ(court_resume(b.court, 6, &o, 1, sets, 0, &other), 0);
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

static void test_too_much(void) {
    struct bench b;
    struct court_config c = bench_config(3, 4, 1);
    struct court_section sections[2];
    c.sections = 2;
    bench_init(&b, &c, &policy_fcfs);
    struct court_order o = two_sections(sections, 'A');
    CHECK(court_could(b.court, &o));
    bench_usable(&b, 0, 0, 2, false);
    court_node_pes(b.court, 0, 3);
    court_node_pes(b.court, 1, 3);
    CHECK(court_could(b.court, &o));
    court_node_pes(b.court, 2, 3);
    CHECK(!court_could(b.court, &o)); /* nobody has four */
    sections[0].ppn = 3;
    CHECK(court_could(b.court, &o));
    sections[1].nodes = 3;
    CHECK(!court_could(b.court, &o));
    sections[1].nodes = 0;
    CHECK(!court_could(b.court, &o));
    o.section_count = 9;
    CHECK(!court_could(b.court, &o));
    bench_fini(&b);
}

/* Nodes of an open window are for those that name it: sections and all. */
static void test_window(void) {
    struct bench b;
    struct court_config c = bench_config(5, 4, 1);
    struct court_section sections[2];
    c.sections = 8;
    bench_init(&b, &c, &policy_easy);
    nodeset_clear(&b.set);
    nodeset_add_range(&b.set, 2, 4);
    CHECK_EQ(court_window_add(b.court, 0, 7, 10, 50, &b.set), 0);
    struct court_order o = two_sections(sections, 'A');
    o.window = 7;
    CHECK_STR(bench_order_arrives(&b, 1, &o), "");
    CHECK_EQ(bench_job(&b, 'A')->nodes, 3);
    CHECK_STR(bench_ticks(&b), "A:[2-4]@0");
    CHECK_EQ(nodeset_count(court_section_nodes(b.court, b.job['A'], 0)), 1);
    CHECK_EQ(nodeset_count(court_section_nodes(b.court, b.job['A'], 1)), 2);
    CHECK(court_conserved(b.court));
    struct court_section more[2];
    struct court_order outside = two_sections(more, 'B');
    CHECK_STR(bench_order_arrives(&b, 11, &outside),
              ""); /* too few outside, until the window ends */
    CHECK_EQ(bench_job(&b, 'B')->reserved, 50);
    struct court_outlook look;
    court_outlook(b.court, b.job['B'], &look);
    CHECK_EQ(look.at, 50);
    CHECK_EQ(look.lacks, 4); /* one node, of the largest kind */
    CHECK_STR(bench_ends(&b, 12, 'A'), "");
    CHECK_STR(bench_ticks(&b), "B:[0-2]@0");
    CHECK(court_conserved(b.court));
    bench_fini(&b);
}

/* ---- a policy that names the nodes ---- */

static uint32_t named[3];

static void decide(void *self, struct storm_host *h) {
    (void)self;
    const struct storm_job *j = storm_queued(h, NULL);
    if (j != NULL)
        storm_start_on(h, j, 0, named, 3);
}

static void test_named_nodes(void) {
    static const struct storm_policy namer = {
        .version = STORM_POLICY_VERSION, .name = "namer", .decide = decide};
    for (int wrong = 0; wrong < 2; wrong++) {
        struct bench b;
        struct court_config c = bench_config(4, 4, 1);
        struct court_section sections[2];
        uint64_t words[8];
        struct nodeset meets;
        c.sections = 2;
        c.guest = &namer;
        bench_init(&b, &c, &namer);
        nodeset_init(&meets, 4, words);
        nodeset_add(&meets, wrong ? 0 : 3);
        named[0] = 3;
        named[1] = 1;
        named[2] = 2;
        struct court_order o = two_sections(sections, 'A');
        sections[0].meets = &meets;
        const char *taken = bench_order_arrives(&b, 0, &o);
        if (wrong)
            CHECK(strstr(taken, "nodes that are not for its sections") != NULL);
        else
            CHECK_STR(taken, "A:[1-3]@0");
        CHECK_EQ(nodeset_first(court_section_nodes(b.court, b.job['A'], 0)), wrong ? 0 : 3);
        CHECK(court_conserved(b.court));
        bench_fini(&b);
    }
}

int main(void) {
    TEST(test_against_brute_force);
    TEST(test_gangs);
    TEST(test_resume);
    TEST(test_too_much);
    TEST(test_window);
    TEST(test_named_nodes);
    return tap_finish();
}

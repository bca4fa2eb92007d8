/* SPDX-License-Identifier: MIT */
/* Free processors against a plain array that is searched from the front.
 *
 * The random test draws the cluster's shape, whom jobs may and may not use, nodes that come and go,
 * and the order of the ends; after every step all that is derived is reckoned anew. */
#include "sched/places.h"

#include <errno.h>
#include <stdlib.h>

#include "base/random.h"
#include "tap.h"

enum { NODES = 150, ROOTS = 2, UNIVERSE = NODES + ROOTS, PES = 6, JOBS = 40, WORDS = 64 };

struct bench {
    struct places p;
    void *memory;
    struct nodeset set, only, exclude;
    uint64_t storage[3][WORDS];
};

static void setup(struct bench *b, uint32_t nodes, uint32_t pes, uint32_t pes_max) {
    struct places_config c = {
        .nodes = nodes, .universe = nodes + ROOTS, .pes = pes, .pes_max = pes_max};
    size_t bytes = places_bytes(&c);
    struct arena a;
    b->memory = malloc(bytes);
    memset(b->memory, 0xEE, bytes); /* it must not rely on zeros */
    arena_init(&a, b->memory, bytes);
    places_init(&b->p, &c, &a);
    CHECK_EQ(arena_used(&a), bytes);
    nodeset_init(&b->set, nodes + ROOTS, b->storage[0]);
    nodeset_init(&b->only, nodes + ROOTS, b->storage[1]);
    nodeset_init(&b->exclude, nodes + ROOTS, b->storage[2]);
}

static void all_usable(struct bench *b) {
    nodeset_clear(&b->set);
    nodeset_add_range(&b->set, 0, b->p.config.universe - 1);
    places_set_usable(&b->p, &b->set, true);
}

static const char *names(const struct nodeset *s) {
    static char text[200];
    nodeset_format(s, "n", text, sizeof text);
    return text;
}

static int take(struct bench *b, uint32_t nodes, uint32_t ppn) {
    struct places_want w = {.nodes = nodes, .ppn = ppn};
    return places_take(&b->p, &w, &b->set);
}

static void test_lowest_first(void) {
    struct bench b;
    setup(&b, 8, 2, 2);
    CHECK_EQ(take(&b, 1, 1), -EAGAIN); /* nobody is here yet */
    all_usable(&b);
    CHECK_EQ(places_pes(&b.p), 16);
    CHECK_EQ(places_free(&b.p), 16);
    CHECK_EQ(take(&b, 3, 1), 0);
    CHECK_STR(names(&b.set), "n[0-2]");
    CHECK_EQ(take(&b, 3, 2), 0);
    CHECK_STR(names(&b.set), "n[3-5]");
    CHECK_EQ(take(&b, 4, 1), 0);
    CHECK_STR(names(&b.set), "n[0-2,6]");
    CHECK_EQ(take(&b, 2, 2), -EAGAIN);
    CHECK_STR(names(&b.set), "");
    CHECK_EQ(take(&b, 2, 1), 0);
    CHECK_STR(names(&b.set), "n[6-7]");
    CHECK_EQ(places_free(&b.p), 1);
    CHECK_EQ(places_used(&b.p), 15);
    CHECK_EQ(places_node_used(&b.p, 7), 1);
    CHECK_EQ(places_node_used(&b.p, 8), 0);
    CHECK_EQ(take(&b, 9, 1), -ENOSPC);
    CHECK_EQ(take(&b, 1, 3), -ENOSPC);
    CHECK(places_conserved(&b.p));
    free(b.memory);
}

static void test_only_and_exclude(void) {
    struct bench b;
    setup(&b, 16, 1, 1);
    all_usable(&b);
    nodeset_add_range(&b.only, 4, 9);
    nodeset_add(&b.only, 17); /* a manager's seat has no PEs */
    nodeset_add_range(&b.exclude, 5, 6);
    struct places_want w = {.nodes = 4, .ppn = 1, .only = &b.only, .exclude = &b.exclude};
    CHECK_EQ(places_take(&b.p, &w, &b.set), 0);
    CHECK_STR(names(&b.set), "n[4,7-9]");
    w.nodes = 1;
    CHECK_EQ(places_take(&b.p, &w, &b.set), -EAGAIN);
    w.nodes = 5;
    CHECK_EQ(places_take(&b.p, &w, &b.set), -ENOSPC);
    w = (struct places_want){.nodes = 3, .ppn = 1, .exclude = &b.exclude};
    CHECK_EQ(places_take(&b.p, &w, &b.set), 0);
    CHECK_STR(names(&b.set), "n[0-2]");
    w.nodes = 15;
    CHECK_EQ(places_take(&b.p, &w, &b.set), -ENOSPC);
    w.nodes = 14;
    CHECK_EQ(places_take(&b.p, &w, &b.set), -EAGAIN);
    free(b.memory);
}

static void test_exclusive(void) {
    struct bench b;
    setup(&b, 4, 3, 3);
    all_usable(&b);
    CHECK_EQ(take(&b, 1, 1), 0);
    struct places_want w = {.nodes = 2, .ppn = 1, .exclusive = true};
    CHECK_EQ(places_take(&b.p, &w, &b.set), 0);
    CHECK_STR(names(&b.set), "n[1-2]");
    CHECK_EQ(places_node_used(&b.p, 1), 3);
    CHECK_EQ(places_free(&b.p), 5);
    struct nodeset held;
    uint64_t storage[WORDS];
    nodeset_init(&held, b.set.universe, storage);
    nodeset_copy(&held, &b.set);
    CHECK_EQ(places_take(&b.p, &w, &b.set), -EAGAIN);
    places_give(&b.p, &held, places_each(&w));
    CHECK_EQ(places_free(&b.p), 11);
    CHECK_EQ(places_take(&b.p, &w, &b.set), 0);
    w.nodes = 5;
    CHECK_EQ(places_take(&b.p, &w, &b.set), -ENOSPC);
    CHECK(places_conserved(&b.p));
    free(b.memory);
}

/* A node that is away is not taken; what is held there stays held until it is given back. */
static void test_unusable(void) {
    struct bench b;
    setup(&b, 4, 1, 1);
    all_usable(&b);
    CHECK_EQ(take(&b, 2, 1), 0);
    nodeset_clear(&b.only);
    nodeset_add_range(&b.only, 1, 2);
    places_set_usable(&b.p, &b.only, false);
    places_set_usable(&b.p, &b.only, false); /* twice is once */
    CHECK_EQ(places_free(&b.p), 1);
    CHECK_EQ(places_used(&b.p), 2);
    nodeset_clear(&b.set);
    nodeset_add_range(&b.set, 0, 1);
    places_give(&b.p, &b.set, 1);
    CHECK_EQ(places_free(&b.p), 2);
    CHECK_EQ(take(&b, 3, 1), -EAGAIN);
    CHECK_EQ(take(&b, 2, 1), 0);
    CHECK_STR(names(&b.set), "n[0,3]");
    places_set_usable(&b.p, &b.only, true);
    CHECK_EQ(take(&b, 2, 1), 0);
    CHECK_STR(names(&b.set), "n[1-2]");
    CHECK(places_conserved(&b.p));
    free(b.memory);
}

static void test_hold(void) {
    struct bench b;
    setup(&b, 4, 2, 2);
    nodeset_add_range(&b.only, 1, 2);
    CHECK_EQ(places_hold(&b.p, &b.only, 1), 0); /* nobody need be usable */
    CHECK_EQ(places_hold(&b.p, &b.only, PLACES_WHOLE), -EBUSY);
    CHECK_EQ(places_hold(&b.p, &b.only, 2), -EBUSY);
    CHECK_EQ(places_used(&b.p), 2);
    nodeset_add(&b.only, 4);
    CHECK_EQ(places_hold(&b.p, &b.only, 1), -EINVAL);
    CHECK_EQ(places_used(&b.p), 2);
    nodeset_remove(&b.only, 4);
    places_give(&b.p, &b.only, 1);
    CHECK_EQ(places_hold(&b.p, &b.only, PLACES_WHOLE), 0);
    CHECK_EQ(places_used(&b.p), 4);
    CHECK(places_conserved(&b.p));
    free(b.memory);
}

/* What is checked always must be able to fail. */
static void test_conserved_can_fail(void) {
    struct bench b;
    setup(&b, 5, 2, 4);
    all_usable(&b);
    places_set_pes(&b.p, 3, 4);
    CHECK(places_conserved(&b.p));
    CHECK_EQ(places_pes(&b.p), 12);
    b.p.used_all++;
    CHECK(!places_conserved(&b.p));
    b.p.used_all--;
    b.p.used[2]++;
    CHECK(!places_conserved(&b.p));
    b.p.used[2]--;
    b.p.free_count[2]++;
    CHECK(!places_conserved(&b.p));
    b.p.free_count[2]--;
    b.p.whole_tree[1] = 2;
    CHECK(!places_conserved(&b.p));
    free(b.memory);
}

/* With 100,000 nodes nearly all taken, the last free ones are found all the same. */
static void test_many_nodes(void) {
    static uint64_t storage[2][100064 / 64 + 8];
    struct places_config c = {.nodes = 100000, .universe = 100001, .pes = 1, .pes_max = 1};
    size_t bytes = places_bytes(&c);
    void *memory = malloc(bytes);
    struct arena a;
    struct places p;
    struct nodeset all, set;
    arena_init(&a, memory, bytes);
    places_init(&p, &c, &a);
    nodeset_init(&all, c.universe, storage[0]);
    nodeset_init(&set, c.universe, storage[1]);
    nodeset_add_range(&all, 0, c.nodes - 1);
    places_set_usable(&p, &all, true);
    struct places_want w = {.nodes = 99936, .ppn = 1};
    CHECK_EQ(places_take(&p, &w, &set), 0);
    w.nodes = 64;
    for (unsigned i = 0; i < 20000; i++) { /* searched from the front: 2 * 10^9 steps */
        CHECK_EQ(places_take(&p, &w, &set), 0);
        CHECK_EQ(nodeset_first(&set), 99936);
        if (i % 2 == 0)
            CHECK_EQ(places_take(&p, &w, &all), -EAGAIN);
        places_give(&p, &set, 1);
    }
    CHECK(places_conserved(&p));
    free(memory);
}

/* ---- the model ---- */

struct job {
    bool live;
    struct places_want want;
    struct nodeset set;
    uint64_t storage[WORDS];
};

struct model {
    uint32_t nodes, pes[NODES], used[NODES];
    bool usable[NODES];
};

static bool model_allowed(const struct places_want *w, uint32_t n) {
    return (!w->only || nodeset_has(w->only, n)) && !(w->exclude && nodeset_has(w->exclude, n));
}

static int model_take(struct model *m, const struct places_want *w, bool chosen[NODES]) {
    uint32_t found = 0, ever = 0;
    memset(chosen, 0, NODES);
    for (uint32_t n = 0; n < m->nodes; n++) {
        if (!model_allowed(w, n) || m->pes[n] < w->ppn)
            continue;
        ever++;
        if (!m->usable[n] || m->pes[n] - m->used[n] < w->ppn || (w->exclusive && m->used[n] > 0))
            continue;
        chosen[n] = found++ < w->nodes;
    }
    if (found < w->nodes) {
        memset(chosen, 0, NODES);
        return ever < w->nodes ? -ENOSPC : -EAGAIN;
    }
    for (uint32_t n = 0; n < m->nodes; n++)
        if (chosen[n])
            m->used[n] += w->exclusive ? m->pes[n] : w->ppn;
    return 0;
}

static void draw_set(struct random *r, uint32_t universe, struct nodeset *s) {
    nodeset_clear(s);
    for (uint64_t i = random_below(r, 12); i > 0; i--) {
        uint32_t first = (uint32_t)random_below(r, universe);
        uint32_t length = (uint32_t)random_below(r, random_chance(r, 1, 4) ? universe : 3);
        nodeset_add_range(s, first, first + length < universe ? first + length : universe - 1);
    }
}

static void try_take(struct bench *b, struct model *m, struct job *j, struct random *r,
                     unsigned outcomes[3]) {
    uint32_t universe = b->p.config.universe;
    bool chosen[NODES];
    uint32_t most = random_chance(r, 1, 3) ? m->nodes + 2 : m->nodes / 6 + 1;
    j->want = (struct places_want){.nodes = (uint32_t)random_between(r, 1, most)};
    j->want.ppn = (uint32_t)random_between(r, 1, random_chance(r, 1, 3) ? PES : 2);
    j->want.exclusive = random_chance(r, 1, 5);
    draw_set(r, universe, &b->only);
    draw_set(r, universe, &b->exclude);
    j->want.only = random_chance(r, 1, 4) ? &b->only : NULL;
    j->want.exclude = random_chance(r, 1, 4) ? &b->exclude : NULL;
    nodeset_init(&j->set, universe, j->storage);
    nodeset_add(&j->set, 0); /* what was there must not matter */
    int expected = model_take(m, &j->want, chosen);
    CHECK_EQ(places_take(&b->p, &j->want, &j->set), expected);
    for (uint32_t n = 0; n < m->nodes; n++)
        CHECK_EQ(nodeset_has(&j->set, n), chosen[n]);
    CHECK_EQ(nodeset_count(&j->set), expected == 0 ? j->want.nodes : 0);
    j->live = expected == 0;
    outcomes[expected == 0 ? 0 : expected == -EAGAIN ? 1 : 2]++;
}

static void give(struct bench *b, struct model *m, struct job *j) {
    places_give(&b->p, &j->set, places_each(&j->want));
    NODESET_EACH (n, &j->set)
        m->used[n] -= j->want.exclusive ? m->pes[n] : j->want.ppn;
    j->live = false;
}

static void come_and_go(struct bench *b, struct model *m, struct random *r) {
    bool usable = random_chance(r, 2, 3);
    draw_set(r, b->p.config.universe, &b->set);
    places_set_usable(&b->p, &b->set, usable);
    NODESET_EACH (n, &b->set)
        if (n < m->nodes)
            m->usable[n] = usable;
}

static void compare(const struct bench *b, const struct model *m) {
    uint64_t used = 0, left = 0;
    for (uint32_t n = 0; n < m->nodes; n++) {
        CHECK_EQ(places_node_used(&b->p, n), m->used[n]);
        CHECK_EQ(nodeset_has(places_usable(&b->p), n), m->usable[n]);
        used += m->used[n];
        left += m->usable[n] ? m->pes[n] - m->used[n] : 0;
    }
    CHECK_EQ(places_used(&b->p), used);
    CHECK_EQ(places_free(&b->p), left);
    CHECK(places_conserved(&b->p));
}

static void play(uint64_t seed, unsigned outcomes[3]) {
    struct random r;
    struct bench b;
    static struct job jobs[JOBS];
    struct model m = {0};
    random_init(&r, seed);
    m.nodes = (uint32_t)random_between(&r, 1, NODES);
    setup(&b, m.nodes, 1, PES);
    memset(jobs, 0, sizeof jobs);
    for (uint32_t n = 0; n < m.nodes; n++) {
        m.pes[n] = (uint32_t)random_between(&r, random_chance(&r, 1, 9) ? 0 : 1, PES);
        places_set_pes(&b.p, n, m.pes[n]);
    }
    for (unsigned step = 0; step < 300; step++) {
        struct job *j = &jobs[random_below(&r, JOBS)];
        if (random_chance(&r, 1, 8))
            come_and_go(&b, &m, &r);
        else if (j->live)
            give(&b, &m, j);
        else
            try_take(&b, &m, j, &r, outcomes);
        compare(&b, &m);
    }
    for (unsigned i = 0; i < JOBS; i++)
        if (jobs[i].live)
            give(&b, &m, &jobs[i]);
    CHECK_EQ(places_used(&b.p), 0);
    compare(&b, &m);
    free(b.memory);
}

static void test_random(void) {
    unsigned outcomes[3] = {0};
    for (uint64_t seed = 1; seed <= 60 && !tap_current_fail; seed++) {
        play(seed, outcomes);
        if (tap_current_fail)
            printf("# seed %llu\n", (unsigned long long)seed);
    }
    CHECK(outcomes[0] > 500 && outcomes[1] > 500 && outcomes[2] > 200);
}

int main(void) {
    TEST(test_lowest_first);
    TEST(test_only_and_exclude);
    TEST(test_exclusive);
    TEST(test_unusable);
    TEST(test_hold);
    TEST(test_conserved_can_fail);
    TEST(test_many_nodes);
    TEST(test_random);
    return tap_finish();
}

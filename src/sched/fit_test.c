/* SPDX-License-Identifier: MIT */
/* Nodes for sections, against a matching of single nodes with single places. */
#include "sched/fit.h"

#include <string.h>

#include "base/random.h"
#include "tap.h"

enum { NODES = 24, PLACES = 32 };

struct match {
    uint32_t masks[NODES];
    bool in[NODES]; /* those that take part */
    uint32_t section_of[PLACES], places;
    uint32_t holder[PLACES]; /* a node, NODES: none */
    bool seen[PLACES];
};

static bool find(struct match *m, uint32_t n) {
    for (uint32_t p = 0; p < m->places; p++) {
        if (!(m->masks[n] >> m->section_of[p] & 1) || m->seen[p])
            continue;
        m->seen[p] = true;
        if (m->holder[p] == NODES || find(m, m->holder[p])) {
            m->holder[p] = n;
            return true;
        }
    }
    return false;
}

/* Most nodes, of those that take part, that can have places of their own. */
static uint32_t largest(struct match *m) {
    uint32_t count = 0;
    for (uint32_t p = 0; p < m->places; p++)
        m->holder[p] = NODES;
    for (uint32_t n = 0; n < NODES; n++) {
        memset(m->seen, 0, sizeof m->seen);
        count += m->in[n] && find(m, n);
    }
    return count;
}

static void draw(struct random *r, struct match *m, struct want *w,
                 struct court_section *sections) {
    memset(m, 0, sizeof *m);
    *w = (struct want){.ppn = 1, .sections = sections};
    w->section_count = (uint32_t)random_between(r, 1, COURT_SECTIONS_MAX);
    for (uint32_t k = 0; k < w->section_count; k++) {
        sections[k] = (struct court_section){.nodes = (uint32_t)random_between(r, 1, 4), .ppn = 1};
        w->nodes += sections[k].nodes;
        for (uint32_t i = 0; i < sections[k].nodes; i++)
            m->section_of[m->places++] = k;
    }
    uint32_t few = (uint32_t)random_between(r, 2, 12);
    for (uint32_t n = 0; n < NODES; n++)
        for (uint32_t k = 0; k < w->section_count; k++)
            m->masks[n] |= (uint32_t)random_chance(r, 1, few) << k;
}

static void check_picks(struct match *m, const struct want *w, bool enough) {
    uint32_t count = 0, got[COURT_SECTIONS_MAX] = {0};
    struct fit f;
    fit_init(&f, w);
    memset(m->in, 0, sizeof m->in);
    for (uint32_t n = 0; n < NODES; n++) {
        m->in[n] = true;
        bool more = largest(m) > count;
        CHECK_EQ(fit_pick(&f, m->masks[n]), more); /* the first that can be used */
        m->in[n] = more;
        count += more;
    }
    CHECK_EQ(fit_picked(&f), enough);
    for (uint32_t n = 0; n < NODES && enough; n++)
        if (m->in[n]) {
            uint32_t k = fit_assign(&f, m->masks[n]);
            CHECK(m->masks[n] >> k & 1);
            got[k]++;
        }
    for (uint32_t k = 0; k < w->section_count && enough; k++)
        CHECK_EQ(got[k], w->sections[k].nodes);
}

static void test_as_a_matching(void) {
    struct court_section sections[COURT_SECTIONS_MAX];
    uint32_t fitted = 0, missed = 0;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        struct random r;
        struct match m;
        struct want w;
        struct fit f;
        random_init(&r, seed);
        draw(&r, &m, &w, sections);
        fit_init(&f, &w);
        for (uint32_t n = 0; n < NODES; n++) {
            fit_tell(&f, m.masks[n]);
            m.in[n] = true;
        }
        uint32_t missing = w.nodes - largest(&m);
        CHECK_EQ(fit_missing(&f), missing);
        check_picks(&m, &w, missing == 0);
        fitted += missing == 0;
        missed += missing > 0;
    }
    CHECK(fitted > 200 && missed > 200);
}

static uint32_t mask_of(const struct want *w, uint32_t left, int64_t memory) {
    return fit_mask(w, 0, &(struct fit_node){4, left, memory});
}

static void test_memory(void) {
    struct court_section sections[2] = {{.nodes = 1, .ppn = 1, .memory = 5},
                                        {.nodes = 1, .ppn = 2}};
    struct want w = {.nodes = 1, .ppn = 1, .memory = 5};
    CHECK_EQ(mask_of(&w, 4, 5), 1);
    CHECK_EQ(mask_of(&w, 4, 4), 0);
    w = (struct want){.nodes = 2, .ppn = 1, .sections = sections, .section_count = 2};
    CHECK_EQ(mask_of(&w, 4, 5), 3);
    CHECK_EQ(mask_of(&w, 4, -1), 2); /* who takes none may come */
    CHECK_EQ(mask_of(&w, 1, 5), 1);
}

static void test_without_sections(void) {
    struct want w = {.nodes = 2, .ppn = 3};
    struct fit f;
    fit_init(&f, &w);
    CHECK_EQ(mask_of(&w, 3, FIT_MEMORY_ANY), 1);
    CHECK_EQ(mask_of(&w, 2, FIT_MEMORY_ANY), 0);
    w.exclusive = true;
    CHECK_EQ(mask_of(&w, 3, FIT_MEMORY_ANY), 0);
    CHECK_EQ(mask_of(&w, 4, FIT_MEMORY_ANY), 1);
    fit_tell(&f, 1);
    fit_tell(&f, 0);
    CHECK_EQ(fit_missing(&f), 1);
    fit_tell(&f, 1);
    CHECK_EQ(fit_missing(&f), 0);
    fit_untell(&f, 1);
    CHECK_EQ(fit_missing(&f), 1);
    fit_init(&f, &w);
    CHECK(fit_pick(&f, 1) && !fit_pick(&f, 0) && fit_pick(&f, 1) && !fit_pick(&f, 1));
    CHECK_EQ(fit_assign(&f, 1), 0);
}

int main(void) {
    TEST(test_as_a_matching);
    TEST(test_without_sections);
    TEST(test_memory);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* The matrix against plain arrays, with random jobs, wishes, and nodes that come and go. */
#include "sched/matrix.h"

#include <errno.h>
#include <stdlib.h>

#include "base/random.h"
#include "tap.h"

enum { NODES = 130, ROWS = 3, PES = 4, JOBS = 60 };

struct holding {
    uint32_t row, each;
    struct nodeset set;
    uint64_t words[16];
    bool held;
};

struct bench {
    struct matrix m;
    void *memory;
    uint32_t nodes, pes;
    uint32_t used[ROWS][NODES];
    bool usable[NODES];
    struct holding jobs[JOBS];
};

static void setup(struct bench *b, uint32_t nodes, uint32_t pes) {
    struct matrix_config c = {
        .nodes = nodes, .universe = nodes, .pes = pes, .pes_max = pes, .rows = ROWS};
    struct arena a;
    size_t bytes = matrix_bytes(&c);
    memset(b, 0, sizeof *b);
    b->memory = malloc(bytes);
    b->nodes = nodes;
    b->pes = pes;
    memset(b->memory, 0xEE, bytes);
    arena_init(&a, b->memory, bytes);
    matrix_init(&b->m, &c, &a);
    CHECK_EQ(arena_used(&a), bytes);
    for (int i = 0; i < JOBS; i++)
        nodeset_init(&b->jobs[i].set, nodes, b->jobs[i].words);
}

/* The lowest nodes that fit, searched from the front; how many there are. */
static uint32_t expect(const struct bench *b, uint32_t row, const struct want *w,
                       const struct matrix_where *at, uint32_t *nodes) {
    uint32_t count = 0;
    for (uint32_t n = at->first; n < b->nodes && n <= at->last && count < w->nodes; n++) {
        uint32_t left = b->usable[n] ? b->pes - b->used[row][n] : 0;
        if (left < w->ppn || (w->exclusive && left < b->pes) ||
            (w->only && !nodeset_has(w->only, n)) || (w->exclude && nodeset_has(w->exclude, n)) ||
            (w->avoid && nodeset_has(w->avoid, n)))
            continue;
        nodes[count++] = n;
    }
    return count;
}

static void change(struct bench *b, const struct holding *j, int sign) {
    NODESET_EACH (n, &j->set)
        b->used[j->row][n] += (uint32_t)(sign * (int)(j->each == WANT_WHOLE ? b->pes : j->each));
}

static void one_take(struct bench *b, struct random *r, struct holding *j) {
    uint64_t words[2][16];
    struct nodeset only, exclude;
    nodeset_init(&only, b->nodes, words[0]);
    nodeset_init(&exclude, b->nodes, words[1]);
    for (uint32_t n = 0; n < b->nodes; n++) {
        if (random_chance(r, 1, 2))
            nodeset_add(&only, n);
        if (random_chance(r, 1, 5))
            nodeset_add(&exclude, n);
    }
    struct want w = {.nodes = (uint32_t)random_between(r, 1, b->nodes / 2)};
    w.ppn = (uint32_t)random_between(r, 1, b->pes);
    w.exclusive = random_chance(r, 1, 5);
    w.only = random_chance(r, 1, 4) ? &only : NULL;
    w.exclude = random_chance(r, 1, 4) ? &exclude : NULL;
    w.avoid = random_chance(r, 1, 4) ? &exclude : NULL;
    struct matrix_where at = {.row = (uint32_t)random_below(r, ROWS), .last = UINT32_MAX};
    if (random_chance(r, 1, 3)) {
        at.first = (uint32_t)random_below(r, b->nodes);
        at.last = (uint32_t)random_between(r, at.first, b->nodes + 3);
    }
    uint32_t nodes[NODES], count = expect(b, at.row, &w, &at, nodes);
    CHECK_EQ(matrix_fits(&b->m, &at, &w), count == w.nodes);
    int res = matrix_take(&b->m, &at, &w, &j->set);
    CHECK_EQ(res, count == w.nodes ? 0 : -EAGAIN);
    if (res < 0)
        return;
    for (uint32_t i = 0; i < count; i++)
        CHECK(nodeset_has(&j->set, nodes[i]));
    CHECK_EQ(nodeset_count(&j->set), count);
    j->row = at.row;
    j->each = want_each(&w);
    j->held = true;
    change(b, j, 1);
}

static void move(struct bench *b, struct random *r, struct holding *j) {
    uint32_t to = (uint32_t)random_below(r, ROWS), node;
    bool idle = true;
    if (to == j->row)
        return;
    NODESET_EACH (n, &j->set)
        idle = idle && b->used[to][n] + (j->each ? j->each : b->pes) <= b->pes;
    CHECK_EQ(matrix_idle(&b->m, to, &j->set, j->each), idle);
    int res = matrix_hold(&b->m, to, &j->set, j->each, true, &node);
    CHECK_EQ(res, idle ? 0 : -EBUSY);
    if (res < 0)
        return;
    matrix_give(&b->m, j->row, &j->set, j->each);
    change(b, j, -1);
    j->row = to;
    change(b, j, 1);
}

static void toggle(struct bench *b, struct random *r) {
    uint64_t words[16];
    struct nodeset set;
    nodeset_init(&set, b->nodes, words);
    uint32_t first = (uint32_t)random_below(r, b->nodes);
    uint32_t last = (uint32_t)random_between(r, first, b->nodes - 1);
    bool up = random_chance(r, 3, 4);
    nodeset_add_range(&set, first, last);
    matrix_set_usable(&b->m, &set, up);
    for (uint32_t n = first; n <= last; n++)
        b->usable[n] = up;
}

static void check_rows(struct bench *b) {
    CHECK(matrix_conserved(&b->m));
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t n = 0; n < b->nodes; n++)
            CHECK_EQ(matrix_node_used(&b->m, row, n), b->used[row][n]);
    bool disjoint = true;
    for (uint32_t n = 0; n < b->nodes; n++)
        disjoint = disjoint && b->used[0][n] + b->used[1][n] <= b->pes;
    CHECK_EQ(matrix_disjoint(&b->m, 0, 1), disjoint);
}

static void run_seed(uint64_t seed, uint32_t pes) {
    struct bench b;
    struct random r;
    random_init(&r, seed);
    setup(&b, (uint32_t)random_between(&r, 3, NODES), pes);
    for (int step = 0; step < 120; step++) {
        struct holding *j = &b.jobs[random_below(&r, JOBS)];
        if (random_chance(&r, 1, 6)) {
            toggle(&b, &r);
        } else if (!j->held) {
            one_take(&b, &r, j);
        } else if (random_chance(&r, 1, 3)) {
            move(&b, &r, j);
        } else {
            matrix_give(&b.m, j->row, &j->set, j->each);
            change(&b, j, -1);
            j->held = false;
        }
        check_rows(&b);
    }
    free(b.memory);
}

static void test_one_pe(void) {
    for (uint64_t seed = 1; seed <= 20; seed++)
        run_seed(seed, 1);
}

static void test_several_pes(void) {
    for (uint64_t seed = 1; seed <= 20; seed++)
        run_seed(seed, PES);
}

static void test_hold_says_why(void) {
    struct bench b;
    uint32_t node;
    setup(&b, 8, 2);
    struct nodeset *s = &b.jobs[0].set;
    nodeset_add_range(s, 0, 5);
    matrix_set_usable(&b.m, s, true);
    nodeset_add(s, 6);
    CHECK_EQ(matrix_hold(&b.m, 0, s, 1, false, &node), -EHOSTDOWN);
    CHECK_EQ(node, 6);
    CHECK_EQ(matrix_hold(&b.m, 0, s, 3, true, &node), -EINVAL);
    CHECK_EQ(matrix_hold(&b.m, 0, s, 2, true, &node), 0);
    nodeset_clear(s);
    nodeset_add(s, 3);
    CHECK_EQ(matrix_hold(&b.m, 0, s, 1, true, &node), -EBUSY);
    CHECK_EQ(node, 3);
    CHECK_EQ(matrix_hold(&b.m, 1, s, 1, true, &node), 0);
    free(b.memory);
}

int main(void) {
    TEST(test_one_pe);
    TEST(test_several_pes);
    TEST(test_hold_says_why);
    return tap_finish();
}

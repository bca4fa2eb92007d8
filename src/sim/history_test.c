/* SPDX-License-Identifier: MIT */
/* Tests of the history: what it records, and when lives end. */
#include "sim/history.h"

#include <string.h>

#include "tap.h"

enum { NODES = 2, ROOT = 2, ALL = 3, VARIABLES = 2, EVENTS = 2, HEAP = 32 };

struct fake {
    struct history *h;
    uint64_t variables[VARIABLES];
    uint64_t events[EVENTS];
    uint8_t heap[HEAP];
    uint64_t storage[8];
    struct nodeset set;
};

static struct globals memory(struct fake *f) {
    return (struct globals){f->variables, f->events};
}

static void setup(struct fake *f) {
    memset(f, 0, sizeof *f);
    struct limits limits = {.nodes = NODES, .roots = 1, .variables = VARIABLES, .events = EVENTS};
    struct layout layout;
    layout_init(&layout, &limits, 2, 16);
    f->h = history_new(&layout);
    nodeset_init(&f->set, ALL, f->storage);
}

static void look(struct fake *f, uint32_t node) {
    history_observe(f->h, node, 0, memory(f), f->heap, 1);
}

static void join(struct fake *f, uint32_t node, uint32_t epoch, uint64_t order) {
    struct input in = {.kind = INPUT_JOINED,
                       .joined = {.epoch = epoch, .incarnation = epoch, .order = order}};
    history_input(f->h, node, &in, memory(f));
    look(f, node);
}

/* The root's daemon hears of one node, or of none. */
static void tell(struct fake *f, bool up, uint32_t node, uint64_t order) {
    nodeset_clear(&f->set);
    if (node != NO_NODE)
        nodeset_add(&f->set, node);
    struct input in = {.kind = INPUT_NODES, .nodes = {.nodes = &f->set, .up = up, .order = order}};
    history_input(f->h, ROOT, &in, memory(f));
    look(f, ROOT);
}

static uint32_t changes(const struct fake *f) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->h->event_count; i++)
        count += f->h->events[i].kind == HISTORY_CHANGE;
    return count;
}

static void test_changes_are_seen_once(void) {
    struct fake f;
    setup(&f);
    f.variables[1] = 7; /* before it is a member */
    look(&f, 0);
    CHECK_EQ(changes(&f), 0);
    join(&f, 0, 1, 0);
    CHECK_EQ(changes(&f), 0);
    CHECK_EQ(f.h->lives[0].variables[1], 7);
    f.variables[1] = 8;
    f.events[0] = 1;
    look(&f, 0);
    look(&f, 0);
    CHECK_EQ(changes(&f), 2);
    history_free(f.h);
}

static void test_torn_cells(void) {
    struct fake f;
    setup(&f);
    join(&f, 0, 1, 0);
    store_le64(f.heap, 5);
    look(&f, 0);
    look(&f, 0);
    CHECK_EQ(changes(&f), 1);
    CHECK(f.h->events[f.h->event_count - 1].torn);
    store_le64(f.heap + 8, 5);
    look(&f, 0);
    CHECK_EQ(changes(&f), 2);
    CHECK(!f.h->events[f.h->event_count - 1].torn);
    history_free(f.h);
}

static void test_a_life_ends_at_the_root_s_word(void) {
    struct fake f;
    setup(&f);
    join(&f, ROOT, 1, 0);
    tell(&f, true, 0, 1);
    join(&f, 0, 1, 1);
    CHECK_EQ(history_open_life(f.h, 0), 1);
    tell(&f, false, 0, 4);
    CHECK_EQ(history_open_life(f.h, 0), NO_LIFE);
    CHECK_EQ(f.h->lives[1].why, LIFE_GIVEN_UP);
    join(&f, 0, 1, 3); /* the word that it joined comes late */
    CHECK_EQ(f.h->lives[2].why, LIFE_STILLBORN);
    join(&f, 0, 1, 5);
    CHECK_EQ(history_open_life(f.h, 0), 3);
    history_free(f.h);
}

static void test_whoever_is_not_collected_ended_with_the_root(void) {
    struct fake f;
    setup(&f);
    join(&f, ROOT, 1, 0);
    tell(&f, true, 0, 0);
    join(&f, 0, 1, 0);
    join(&f, 1, 1, 0);
    history_crash(f.h, ROOT, 0);
    uint64_t crash_step = f.h->step;
    look(&f, 1);
    join(&f, ROOT, 2, 0);
    tell(&f, true, 0, 0);
    CHECK_EQ(history_open_life(f.h, 0), 1);
    CHECK_EQ(history_open_life(f.h, 1), NO_LIFE);
    CHECK_EQ(f.h->lives[2].end_step, crash_step);
    CHECK_EQ(f.h->lives[2].why, LIFE_NOT_COLLECTED);
    history_free(f.h);
}

static void test_tags_lead_to_their_operation(void) {
    struct fake f;
    setup(&f);
    join(&f, 0, 1, 0);
    nodeset_add(&f.set, 1);
    struct primitive r = {.kind = PRIMITIVE_COMPARE,
                          .tag = history_next_tag(f.h),
                          .set = &f.set,
                          .write_variable = 1};
    CHECK_EQ(history_op_of(f.h, r.tag), NO_OP);
    uint32_t op = history_request(f.h, 0, 0, &r);
    CHECK_EQ(history_op_of(f.h, r.tag), op);
    CHECK_EQ(history_op_of(f.h, 3), NO_OP);
    CHECK_EQ(f.h->ops[op].first_place, 1);
    CHECK_EQ(f.h->ops[op].places, 1);
    history_free(f.h);
}

int main(void) {
    TEST(test_changes_are_seen_once);
    TEST(test_torn_cells);
    TEST(test_a_life_ends_at_the_root_s_word);
    TEST(test_whoever_is_not_collected_ended_with_the_root);
    TEST(test_tags_lead_to_their_operation);
    return tap_finish();
}

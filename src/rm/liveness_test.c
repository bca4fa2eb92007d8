/* SPDX-License-Identifier: MIT */
/* Tests of liveness: when it asks, and what becomes of each node. */
#include "rm/liveness.h"

#include <stdlib.h>

#include "tap.h"

enum { NODES = 5, ROOT = 5, UNIVERSE = 6, TAG = 33, PERIOD = 1000 };

struct bench {
    struct liveness *l;
    void *memory;
    struct effects out;
    struct effect list[8];
    uint64_t bytes[256];
    struct nodeset set;
    uint64_t storage[8];
    uint64_t now;
    uint64_t tick;
    const struct liveness_news *news;
};

static void feed(struct bench *b, struct input in) {
    effects_clear(&b->out);
    in.now = b->now;
    b->news = liveness_input(b->l, &in, &b->out);
}

static void nodes(struct bench *b, const char *set, bool up) {
    CHECK_EQ(nodeset_parse(&b->set, set, "n", NULL), 0);
    feed(b, (struct input){.kind = INPUT_NODES, .nodes = {.nodes = &b->set, .up = up}});
}

/* All six are up. */
static void setup(struct bench *b) {
    struct liveness_config c = {.limits = {.nodes = NODES, .roots = 1, .record_channels = 1},
                                .period_ns = PERIOD,
                                .tag = TAG};
    struct arena a;
    size_t bytes = liveness_bytes(&c);
    *b = (struct bench){.now = 100, .tick = 7, .memory = malloc(bytes)};
    memset(b->memory, 0xEE, bytes); /* it must not rely on zeros */
    arena_init(&a, b->memory, bytes);
    b->l = liveness_new(&c, &a);
    CHECK_EQ(arena_used(&a), bytes);
    effects_init(&b->out, b->list, 8, (uint8_t *)b->bytes, sizeof b->bytes);
    nodeset_init(&b->set, UNIVERSE, b->storage);
    CHECK_EQ(liveness_node(b->l, 3).state, LIVENESS_DOWN);
    CHECK_EQ(liveness_node(b->l, 3).since_ns, 0);
    nodes(b, "n[0-5]", true);
}

/* The next wave; is it followed by a gather? */
static bool wave(struct bench *b, uint32_t count, bool complete) {
    b->now += PERIOD;
    feed(b, (struct input){.kind = INPUT_WAVE,
                           .wave = {.tick = ++b->tick,
                                    .nodes = count,
                                    .complete = complete,
                                    .started_ns = b->now - 40}});
    bool asks = b->out.count == 1 && b->list[0].kind == EFFECT_REQUEST;
    CHECK(asks || b->out.count == 0);
    return asks;
}

static void gathered(struct bench *b, const char *missing) {
    b->now += PERIOD / 4;
    CHECK_EQ(nodeset_parse(&b->set, missing, "n", NULL), 0);
    feed(b, (struct input){.kind = INPUT_GATHERED,
                           .gathered = {.tag = TAG, .channel = NO_CHANNEL, .missing = &b->set}});
}

static bool is(const struct nodeset *set, const char *text) {
    char now[64];
    nodeset_format(set, "n", now, sizeof now);
    return strcmp(now, text) == 0;
}

static bool told(const struct bench *b, const char *up, const char *silent, const char *back,
                 const char *down) {
    return b->news != NULL && is(&b->news->up, up) && is(&b->news->silent, silent) &&
           is(&b->news->back, back) && is(&b->news->down, down);
}

static void test_as_long_as_all_are_there_nothing_is_asked(void) {
    struct bench b;
    setup(&b);
    CHECK(told(&b, "n[0-5]", "", "", ""));
    CHECK_EQ(liveness_wave_ns(b.l), 0);
    for (uint32_t i = 0; i < 10; i++) {
        CHECK(!wave(&b, UNIVERSE, true));
        CHECK(b.news == NULL);
    }
    CHECK_EQ(liveness_wave_ns(b.l), 40);
    CHECK(!wave(&b, UNIVERSE + 1, true)); /* one has attached and will be a member soon */
    CHECK_EQ(liveness_node(b.l, 2).state, LIVENESS_UP);
    CHECK_EQ(liveness_node(b.l, 2).since_ns, 100);
    CHECK(is(liveness_up(b.l), "n[0-5]"));
    free(b.memory);
}

static void test_a_node_that_misses_heartbeats(void) {
    struct bench b;
    setup(&b);
    CHECK(wave(&b, 3, false));
    const struct primitive *r = &b.list[0].request;
    CHECK(r->kind == PRIMITIVE_GATHER && r->tag == TAG && r->channel == NO_CHANNEL);
    CHECK(r->timeout_ns == PERIOD / 2 && is(r->set, "n[0-5]"));
    gathered(&b, "n2");
    CHECK(told(&b, "", "n2", "", ""));
    CHECK_EQ(liveness_node(b.l, 2).state, LIVENESS_SILENT);
    CHECK_EQ(liveness_node(b.l, 2).missed, 1);
    CHECK_EQ(liveness_node(b.l, 2).since_ns, b.now);
    CHECK(is(liveness_up(b.l), "n[0-1,3-5]") && is(liveness_silent(b.l), "n2"));
    CHECK(wave(&b, 5, true));
    CHECK(is(b.list[0].request.set, "n[0-5]"));
    gathered(&b, "n2");
    CHECK(b.news == NULL); /* nothing new */
    CHECK_EQ(liveness_node(b.l, 2).missed, 2);
    CHECK(wave(&b, 5, true));
    gathered(&b, "n[1-2]");
    CHECK(told(&b, "", "n1", "", ""));
    CHECK_EQ(liveness_node(b.l, 1).missed, 1);
    CHECK_EQ(liveness_node(b.l, 2).missed, 3);
    CHECK(wave(&b, UNIVERSE, true)); /* whole, but another may have been counted in its place */
    gathered(&b, "n1");
    CHECK(told(&b, "", "", "n2", ""));
    CHECK_EQ(liveness_node(b.l, 2).state, LIVENESS_UP);
    CHECK_EQ(liveness_node(b.l, 2).missed, 0);
    nodes(&b, "n1", false);
    CHECK(told(&b, "", "", "", "n1"));
    CHECK_EQ(liveness_node(b.l, 1).state, LIVENESS_DOWN);
    CHECK_EQ(liveness_node(b.l, 1).since_ns, b.now);
    CHECK(!wave(&b, 5, true));
    free(b.memory);
}

/* A node goes down and joins anew while the gather is under way: it is not its new life that is
 * missing. */
static void test_a_life_that_began_meanwhile(void) {
    struct bench b;
    setup(&b);
    CHECK(wave(&b, 5, true));
    nodes(&b, "n[2-3]", false);
    nodes(&b, "n2", true);
    gathered(&b, "n[2-3]");
    CHECK(b.news == NULL);
    CHECK_EQ(liveness_node(b.l, 2).state, LIVENESS_UP);
    CHECK_EQ(liveness_node(b.l, 3).state, LIVENESS_DOWN);
    free(b.memory);
}

static void test_one_question_at_a_time(void) {
    struct bench b;
    setup(&b);
    CHECK(wave(&b, 1, false));
    CHECK(!wave(&b, 1, false));
    feed(&b, (struct input){.kind = INPUT_COMPLETION,
                            .completion = {.tag = TAG + 1, .outcome = OUTCOME_REFUSED}});
    CHECK(!wave(&b, 1, false));
    feed(&b, (struct input){.kind = INPUT_COMPLETION,
                            .completion = {.tag = TAG, .outcome = OUTCOME_REFUSED}});
    CHECK(b.news == NULL);
    CHECK(wave(&b, 1, false)); /* refused: again */
    gathered(&b, "");
    CHECK(b.news == NULL);
    gathered(&b, "n[0-4]"); /* nobody has asked */
    CHECK(b.news == NULL);
    CHECK(is(liveness_up(b.l), "n[0-5]"));
    free(b.memory);
}

/* A new root hears waves before it knows who its members are. */
static void test_before_anyone_is_known(void) {
    struct bench b;
    setup(&b);
    nodes(&b, "n[0-5]", false);
    CHECK(told(&b, "", "", "", "n[0-5]"));
    CHECK(!wave(&b, 3, false));
    CHECK(!wave(&b, 1, true));
    free(b.memory);
}

int main(void) {
    TEST(test_as_long_as_all_are_there_nothing_is_asked);
    TEST(test_a_node_that_misses_heartbeats);
    TEST(test_a_life_that_began_meanwhile);
    TEST(test_one_question_at_a_time);
    TEST(test_before_anyone_is_known);
    return tap_finish();
}

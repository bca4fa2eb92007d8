/* SPDX-License-Identifier: MIT */
/* Tests of gathering status: what it asks for, when it asks again, what it keeps. */
#include "rm/gather.h"

#include <stdlib.h>

#include "tap.h"

enum { NODES = 5, UNIVERSE = 6, CHANNEL = 1, TAG = 77, TIMER = 9, TRIES = 3, RECORD = 8 };

struct bench {
    struct gather *g;
    void *memory;
    struct effects out;
    struct effect list[16];
    uint64_t bytes[512];
    struct nodeset set, missing;
    uint64_t storage[2][8];
    uint8_t records[256];
    size_t used;
};

static void setup(struct bench *b) {
    struct gather_config c = {.limits = {.nodes = NODES,
                                         .roots = 1,
                                         .record_channels = CHANNEL + 1,
                                         .record_bytes = RECORD},
                              .channel = CHANNEL,
                              .tries = TRIES,
                              .timer = TIMER,
                              .tag = TAG};
    struct arena a;
    size_t bytes = gather_bytes(&c);
    b->memory = malloc(bytes);
    memset(b->memory, 0xEE, bytes); /* it must not rely on zeros */
    arena_init(&a, b->memory, bytes);
    b->g = gather_new(&c, &a);
    CHECK_EQ(arena_used(&a), bytes);
    effects_init(&b->out, b->list, 16, (uint8_t *)b->bytes, sizeof b->bytes);
    nodeset_init(&b->set, UNIVERSE, b->storage[0]);
    nodeset_init(&b->missing, UNIVERSE, b->storage[1]);
    nodeset_add_range(&b->set, 0, NODES - 1);
    b->used = 0;
}

static enum gather_news feed(struct bench *b, const struct input *in) {
    effects_clear(&b->out);
    return gather_input(b->g, in, &b->out);
}

/* The one request that was just made; NULL if none, or if there is more. */
static const struct primitive *asked(const struct bench *b) {
    bool one = b->out.count == 1 && b->list[0].kind == EFFECT_REQUEST;
    return one ? &b->list[0].request : NULL;
}

static void start(struct bench *b, uint64_t timeout_ns, uint64_t now) {
    effects_clear(&b->out);
    CHECK(gather_start(b->g, &b->set, timeout_ns, now, &b->out));
}

static void reply(struct bench *b, uint32_t node, const char *text) {
    struct reply r = {node, bytes_from_str(text)};
    b->used += reply_store(room_of(b->records + b->used, sizeof b->records - b->used), &r);
}

/* The primitives' answer, with the replies made since the one before. */
static enum gather_news gathered(struct bench *b, const char *missing, uint64_t now) {
    CHECK_EQ(nodeset_parse(&b->missing, missing, "n", NULL), 0);
    struct input in = {.kind = INPUT_GATHERED, .now = now};
    in.gathered = (struct input_gathered){.tag = TAG,
                                          .channel = CHANNEL,
                                          .records = bytes_of(b->records, b->used),
                                          .missing = &b->missing};
    b->used = 0;
    return feed(b, &in);
}

static bool holds(const struct bench *b, uint32_t node, const char *text, uint64_t at) {
    struct gather_record r;
    return gather_get(b->g, node, &r) && bytes_equal(r.bytes, bytes_from_str(text)) && r.at == at;
}

static bool knows(const struct bench *b, uint32_t node) {
    struct gather_record r;
    return gather_get(b->g, node, &r);
}

static void test_all_answer(void) {
    struct bench b;
    setup(&b);
    CHECK(!gather_busy(b.g));
    start(&b, 300, 1000);
    const struct primitive *r = asked(&b);
    if (!CHECK(r != NULL))
        return;
    CHECK(r->kind == PRIMITIVE_GATHER && r->tag == TAG && r->channel == CHANNEL);
    CHECK(r->timeout_ns == 100 && nodeset_equal(r->set, &b.set));
    CHECK(gather_busy(b.g));
    CHECK(!gather_start(b.g, &b.set, 300, 1000, &b.out));
    reply(&b, 0, "zero");
    reply(&b, 3, "three");
    CHECK_EQ(gathered(&b, "", 1010), GATHER_COMPLETE);
    CHECK_EQ(b.out.count, 0);
    CHECK(!gather_busy(b.g));
    CHECK(nodeset_empty(gather_missing(b.g)));
    CHECK(holds(&b, 0, "zero", 1010) && holds(&b, 3, "three", 1010));
    CHECK(!knows(&b, 1) && !knows(&b, 4) && !knows(&b, 99));
    free(b.memory);
}

/* Those who are missing are asked again: at once if the time of the first try is over, else then. */
static void test_the_missing_are_asked_again(void) {
    struct bench b;
    setup(&b);
    start(&b, 300, 1000);
    reply(&b, 0, "zero");
    CHECK_EQ(gathered(&b, "n[1-4]", 1100), GATHER_NOTHING);
    const struct primitive *r = asked(&b);
    CHECK(r != NULL && r->timeout_ns == 100 && nodeset_equal(r->set, &b.missing));
    reply(&b, 2, "two");
    CHECK_EQ(gathered(&b, "n[1,4]", 1120), GATHER_NOTHING);
    CHECK(b.out.count == 1 && b.list[0].kind == EFFECT_TIMER);
    CHECK(b.list[0].timer.id == TIMER && b.list[0].timer.at == 1200);
    CHECK(gather_busy(b.g));
    CHECK_EQ(feed(&b, &(struct input){.kind = INPUT_TIMER, .now = 1200, .timer = {TIMER + 1}}),
             GATHER_NOTHING);
    CHECK_EQ(b.out.count, 0);
    CHECK_EQ(feed(&b, &(struct input){.kind = INPUT_TIMER, .now = 1200, .timer = {TIMER}}),
             GATHER_NOTHING);
    r = asked(&b);
    CHECK(r != NULL && r->timeout_ns == 100 && nodeset_equal(r->set, &b.missing));
    CHECK_EQ(gathered(&b, "n4", 1300), GATHER_ENDED); /* the third try was the last */
    CHECK(!gather_busy(b.g));
    CHECK(nodeset_equal(gather_missing(b.g), &b.missing));
    CHECK(holds(&b, 0, "zero", 1100) && holds(&b, 2, "two", 1120));
    free(b.memory);
}

static void test_refused_at_first(void) {
    struct bench b;
    setup(&b);
    start(&b, 300, 1000);
    struct input refused = {.kind = INPUT_COMPLETION, .now = 1000};
    refused.completion = (struct completion){.tag = TAG + 1, .outcome = OUTCOME_REFUSED};
    CHECK_EQ(feed(&b, &refused), GATHER_NOTHING);
    CHECK_EQ(b.out.count, 0);
    refused.completion.tag = TAG;
    CHECK_EQ(feed(&b, &refused), GATHER_NOTHING);
    CHECK(b.out.count == 1 && b.list[0].timer.at == 1100);
    feed(&b, &(struct input){.kind = INPUT_TIMER, .now = 1100, .timer = {TIMER}});
    CHECK(asked(&b) != NULL);
    CHECK_EQ(gathered(&b, "", 1101), GATHER_COMPLETE);
    start(&b, 300, 2000);
    feed(&b, &refused);
    CHECK_EQ(feed(&b, &(struct input){.kind = INPUT_TIMER, .now = 9000, .timer = {TIMER}}),
             GATHER_ENDED); /* far too late */
    CHECK(nodeset_equal(gather_missing(b.g), &b.set));
    free(b.memory);
}

/* The newest answer counts, also one without a record; a node that is down is forgotten. */
static void test_the_newest_is_kept(void) {
    struct bench b;
    setup(&b);
    start(&b, 300, 1000);
    for (uint32_t n = 0; n < NODES; n++)
        reply(&b, n, "old");
    CHECK_EQ(gathered(&b, "", 1001), GATHER_COMPLETE);
    start(&b, 300, 2000);
    reply(&b, 1, "new");
    reply(&b, 2, "too long a record");
    reply(&b, 1000, "x");
    CHECK_EQ(gathered(&b, "n[3-4]", 2300), GATHER_ENDED);
    CHECK(!knows(&b, 0) && holds(&b, 1, "new", 2300) && !knows(&b, 2));
    CHECK(holds(&b, 3, "old", 1001) && holds(&b, 4, "old", 1001));
    struct input down = {.kind = INPUT_NODES, .now = 2400, .nodes = {.nodes = &b.missing}};
    feed(&b, &down);
    CHECK(!knows(&b, 3) && !knows(&b, 4) && knows(&b, 1));
    down.nodes.up = true;
    down.nodes.nodes = &b.set;
    feed(&b, &down);
    CHECK(knows(&b, 1));
    free(b.memory);
}

static void test_what_is_not_ours(void) {
    struct bench b;
    setup(&b);
    CHECK_EQ(gathered(&b, "", 1), GATHER_NOTHING); /* nobody has asked */
    nodeset_clear(&b.set);
    CHECK(!gather_start(b.g, &b.set, 300, 1000, &b.out));
    nodeset_add(&b.set, 2);
    start(&b, 300, 1000);
    struct input other = {.kind = INPUT_GATHERED, .now = 1001};
    other.gathered = (struct input_gathered){.tag = TAG + 1, .missing = &b.missing};
    CHECK_EQ(feed(&b, &other), GATHER_NOTHING);
    CHECK_EQ(feed(&b, &(struct input){.kind = INPUT_FENCED}), GATHER_NOTHING);
    CHECK(gather_busy(b.g));
    free(b.memory);
}

static void test_publish(void) {
    struct bench b;
    setup(&b);
    char text[] = "load 3";
    gather_publish(CHANNEL, bytes_from_str(text), &b.out);
    text[5] = '9'; /* the effect has its own copy */
    const struct primitive *r = asked(&b);
    CHECK(r != NULL && r->kind == PRIMITIVE_RECORD && r->channel == CHANNEL);
    CHECK(bytes_equal(r->body, bytes_from_str("load 3")));
    free(b.memory);
}

int main(void) {
    TEST(test_all_answer);
    TEST(test_the_missing_are_asked_again);
    TEST(test_refused_at_first);
    TEST(test_the_newest_is_kept);
    TEST(test_what_is_not_ours);
    TEST(test_publish);
    return tap_finish();
}

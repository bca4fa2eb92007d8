/* SPDX-License-Identifier: MIT */
/* The stack hands requests down and notices up, in order, and leaves the rest to the world. */
#include "machine/stack.h"

#include "tap.h"

struct scene {
    int boots;
    int requests;
    int completions;
    uint64_t last_tag;
};

/* Below: answers each request with a completion and a timer of its own. */
static void below(void *self, const struct input *in, struct effects *out) {
    struct scene *s = self;
    if (in->kind == INPUT_BOOT)
        s->boots++;
    if (in->kind != INPUT_REQUEST)
        return;
    s->requests++;
    effects_raise(out, INPUT_COMPLETION, in->now)->completion.tag = in->request.tag;
    effects_timer(out, 1, in->now + 5);
}

/* Above: asks again until the third answer. */
static void above(void *self, const struct input *in, struct effects *out) {
    struct scene *s = self;
    if (in->kind == INPUT_BOOT)
        s->boots++;
    if (in->kind == INPUT_COMPLETION) {
        s->completions++;
        s->last_tag = in->completion.tag;
    }
    if (s->completions < 3)
        effects_add(out, EFFECT_REQUEST)->request.tag = (uint64_t)s->completions + 10;
    else
        effects_timer(out, 2, in->now + 9);
}

static void test_ping_pong(void) {
    struct scene s = {0};
    struct effect list[32];
    uint8_t bytes[256];
    struct effects out;
    effects_init(&out, list, 32, bytes, sizeof bytes);
    struct stack stack = {.daemon = {&s, above}, .prim = {&s, below}};
    struct input boot = {.kind = INPUT_BOOT, .now = 100};
    stack_boot(&stack, &boot, &out);
    CHECK_EQ(s.boots, 2);
    CHECK_EQ(s.requests, 3);
    CHECK_EQ(s.completions, 3);
    CHECK_EQ(s.last_tag, 12);
    int timers[2] = {0};
    for (uint32_t i = 0; i < out.count; i++) {
        CHECK(list[i].kind == EFFECT_NONE || list[i].kind == EFFECT_TIMER);
        if (list[i].kind != EFFECT_TIMER)
            continue;
        timers[list[i].layer]++;
        CHECK_EQ(list[i].timer.id, list[i].layer == LAYER_PRIM ? 1 : 2);
        CHECK_EQ(list[i].timer.at, list[i].layer == LAYER_PRIM ? 105 : 109);
    }
    CHECK_EQ(timers[LAYER_PRIM], 3);
    CHECK_EQ(timers[LAYER_DAEMON], 1);
}

static void test_effects_own_their_bytes(void) {
    struct effect list[4];
    uint8_t bytes[512];
    struct effects out;
    effects_init(&out, list, 4, bytes, sizeof bytes);
    uint64_t storage[8];
    struct nodeset set;
    nodeset_init(&set, 40, storage);
    nodeset_add_range(&set, 3, 9);
    char text[] = "bytes";
    struct bytes copy = effects_copy(&out, bytes_of(text, 5));
    const struct nodeset *kept = effects_copy_set(&out, &set);
    text[0] = 'x';
    nodeset_clear(&set);
    CHECK(bytes_equal(copy, bytes_of("bytes", 5)));
    CHECK_EQ(nodeset_count(kept), 7);
    CHECK_EQ(effects_copy(&out, (struct bytes){0}).len, 0);
}

static void test_relations(void) {
    CHECK(relation_holds(RELATION_GE, 5, 5) && !relation_holds(RELATION_GE, 4, 5));
    CHECK(relation_holds(RELATION_LT, 4, 5) && !relation_holds(RELATION_LT, 5, 5));
    CHECK(relation_holds(RELATION_EQ, 5, 5) && !relation_holds(RELATION_EQ, 4, 5));
    CHECK(relation_holds(RELATION_NE, 4, 5) && !relation_holds(RELATION_NE, 5, 5));
}

int main(void) {
    TEST(test_ping_pong);
    TEST(test_effects_own_their_bytes);
    TEST(test_relations);
    return tap_finish();
}

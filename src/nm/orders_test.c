/* SPDX-License-Identifier: MIT */
/* Transfers that this node takes part in, while its file mover cannot be reached, or comes late, or dies. */
#include "node_alone.h"

#include <errno.h>

#include "rm/say.h"

enum { MOVER = 7 };

/* The root tells of a transfer. */
static void order(struct bench *b, uint64_t transfer) {
    uint8_t words[256], body[512];
    struct nodeset set;
    nodeset_init(&set, limits_universe(&config.limits), words);
    nodeset_clear(&set);
    nodeset_add(&set, SELF);
    union message m = {.transfer = {.transfer = transfer, .arity = 2, .slots = 4, .set = &set}};
    store_le16(body, MESSAGE_TRANSFER);
    long len = message_encode(MESSAGE_TRANSFER, &m,
                              room_of(body + SAY_TYPE_BYTES, sizeof body - SAY_TYPE_BYTES));
    CHECK(len > 0);
    feed(b, (struct input){.kind = INPUT_SIGNAL,
                           .signal = {.event = EVENT_FILES,
                                      .body = bytes_of(body, SAY_TYPE_BYTES + (size_t)len)}});
}

static void mover_is(struct bench *b, bool there) {
    feed(b, (struct input){.kind = there ? INPUT_LINK_UP : INPUT_LINK_DOWN,
                           .link = {.link = there ? MOVER : 0, .role = ROLE_MOVER}});
}

static bool reached_for(const struct bench *b) {
    for (uint32_t i = 0; i < b->out.count; i++)
        if (b->out.list[i].kind == EFFECT_OPEN && b->out.list[i].open.purpose == PURPOSE_MOVER)
            return true;
    return false;
}

static bool handed_over(const struct bench *b) {
    return spoken(b, EFFECT_SEND, MESSAGE_TRANSFER) != NULL;
}

/* Was the root told this? NULL: was it told nothing? */
static bool failed(const struct bench *b, const char *why) {
    const struct effect *e = spoken(b, EFFECT_REQUEST, MESSAGE_ARRIVED);
    union message m;
    if (e == NULL || why == NULL)
        return e == NULL && why == NULL;
    CHECK_EQ(message_decode(MESSAGE_ARRIVED, e->request.body, NULL, &m), 0);
    return m.arrived.error == -EIO && bytes_equal(m.arrived.text, bytes_from_str(why));
}

static void test_one_that_was_just_ending(void) {
    static struct bench b;
    begin(&b);
    order(&b, 42);
    CHECK(reached_for(&b));
    mover_is(&b, false); /* it took the link, and was gone */
    CHECK(reached_for(&b) && failed(&b, NULL));
    mover_is(&b, true);
    CHECK(handed_over(&b) && failed(&b, NULL));
    free(b.memory);
}

static void test_one_that_cannot_be_reached(void) {
    static struct bench b;
    begin(&b);
    for (uint64_t i = 0; i < 2; i++) { /* a later order is tried as often */
        order(&b, 42 + i);
        CHECK(reached_for(&b));
        mover_is(&b, false);
        CHECK(reached_for(&b) && failed(&b, NULL));
        mover_is(&b, false);
        CHECK(!reached_for(&b) && failed(&b, "the node's file mover cannot be reached"));
    }
    free(b.memory);
}

static void test_one_that_dies(void) {
    static struct bench b;
    begin(&b);
    order(&b, 42);
    mover_is(&b, true);
    CHECK(handed_over(&b));
    mover_is(&b, false);
    CHECK(!reached_for(&b) && failed(&b, "the node's file mover has died"));
    order(&b, 43);
    CHECK(reached_for(&b));
    free(b.memory);
}

int main(void) {
    TEST(test_one_that_was_just_ending);
    TEST(test_one_that_cannot_be_reached);
    TEST(test_one_that_dies);
    return tap_finish();
}

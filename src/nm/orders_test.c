/* SPDX-License-Identifier: MIT */
/* Transfers that this node takes part in, while its file mover cannot be reached, or comes late, or dies. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "nm/inside.h"
#include "rm/say.h"
#include "tap.h"

enum { MOVER = 7, NODES = 4, EFFECTS = 64, BYTES = 64 * 1024 };

static const struct roster roster = {.prefix = "n", .capacity = NODES, .count = NODES};
static const struct nm_config config = {
    .limits = {.nodes = NODES, .roots = 1, .body_bytes = 256}, .runs = 8, .roster = &roster};

static void *memory, *list, *bytes;
static struct nm *nm;
static struct effects effects;

static void begin(void) {
    struct arena a;
    size_t size = nm_bytes(&config);
    memory = calloc(1, size);
    list = calloc(EFFECTS, sizeof(struct effect));
    bytes = calloc(1, BYTES);
    arena_init(&a, memory, size);
    nm = nm_new(&config, &a);
    effects_init(&effects, list, EFFECTS, bytes, BYTES);
    nm->out = &effects;
    nm->now = NS_PER_S;
    nm->settled = 1;
    nm->ready = true;
}

static void end(void) {
    free(memory);
    free(list);
    free(bytes);
}

/* The root tells of a transfer. */
static void order(uint64_t transfer) {
    static uint8_t words[256], body[512];
    struct nodeset set;
    nodeset_init(&set, NODES + 1, words);
    nodeset_clear(&set);
    nodeset_add(&set, 0);
    union message m = {
        .transfer = {.transfer = transfer, .source = 1, .arity = 2, .slots = 4, .set = &set}};
    store_le16(body, MESSAGE_TRANSFER);
    long len = message_encode(MESSAGE_TRANSFER, &m,
                              room_of(body + SAY_TYPE_BYTES, sizeof body - SAY_TYPE_BYTES));
    CHECK(len > 0);
    orders_heard(nm, &(struct input_signal){.body = bytes_of(body, SAY_TYPE_BYTES + (size_t)len)});
}

static void up(void) {
    orders_up(nm, &(struct input_link){.link = MOVER, .role = ROLE_MOVER});
}

/* What happened since this was asked last: how often the mover was to be reached, what it was told, what the root was. */
struct seen {
    int reached, handed, failed;
    char why[64];
};

static void note_failure(struct seen *s, struct bytes body) {
    union message m;
    CHECK_EQ(message_decode(MESSAGE_ARRIVED, body, nm->scratch, &m), 0);
    s->failed += m.arrived.error == -EIO;
    CHECK(m.arrived.text.len < sizeof s->why);
    memcpy(s->why, m.arrived.text.at, m.arrived.text.len);
}

static struct seen look(void) {
    struct seen s = {0};
    for (uint32_t i = 0; i < effects.count; i++) {
        const struct effect *e = &effects.list[i];
        s.reached += e->kind == EFFECT_OPEN && e->open.purpose == PURPOSE_MOVER;
        s.handed += e->kind == EFFECT_SEND && e->send.type == MESSAGE_TRANSFER;
        if (e->kind == EFFECT_REQUEST && e->request.kind == PRIMITIVE_MAIL &&
            e->request.type == MESSAGE_ARRIVED)
            note_failure(&s, e->request.body);
    }
    effects_clear(&effects);
    return s;
}

static void test_one_that_was_just_ending(void) {
    begin();
    order(42);
    CHECK_EQ(look().reached, 1);
    orders_down(nm); /* it took the link, and was gone */
    struct seen s = look();
    CHECK_EQ(s.reached, 1);
    CHECK_EQ(s.failed, 0);
    up();
    s = look();
    CHECK_EQ(s.handed, 1);
    CHECK_EQ(s.failed, 0);
    end();
}

static void test_one_that_cannot_be_reached(void) {
    begin();
    order(42);
    for (int i = 0; i < 2; i++) { /* a later order is tried as often */
        CHECK_EQ(look().reached, 1);
        orders_down(nm);
        CHECK_EQ(look().failed, 0);
        orders_down(nm);
        struct seen s = look();
        CHECK_EQ(s.reached, 0);
        CHECK_EQ(s.failed, 1);
        CHECK_STR(s.why, "the node's file mover cannot be reached");
        order(43);
    }
    end();
}

static void test_one_that_dies(void) {
    begin();
    order(42);
    up();
    CHECK_EQ(look().handed, 1);
    orders_down(nm);
    struct seen s = look();
    CHECK_EQ(s.reached, 0);
    CHECK_EQ(s.failed, 1);
    CHECK_STR(s.why, "the node's file mover has died");
    order(43);
    CHECK_EQ(look().reached, 1);
    end();
}

int main(void) {
    TEST(test_one_that_was_just_ending);
    TEST(test_one_that_cannot_be_reached);
    TEST(test_one_that_dies);
    return tap_finish();
}

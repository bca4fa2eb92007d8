/* SPDX-License-Identifier: MIT */
/* Tests of gangs at the node manager: what the root says of slots reaches the launcher, and back. */
#include "node_alone.h"

/* The nth message of this type to the launcher (or, with link 0, to the root); false if there is none. */
static bool said(const struct bench *b, uint32_t link, uint16_t type, uint32_t nth,
                 union message *ret) {
    for (uint32_t i = 0; i < b->out.count; i++) {
        const struct effect *e = &b->list[i];
        bool sent = e->kind == EFFECT_SEND && link != 0 && e->send.type == type;
        bool mailed = e->kind == EFFECT_REQUEST && link == 0 && e->request.type == type &&
                      e->request.kind == PRIMITIVE_MAIL && e->request.way == MAIL_ROOT;
        if ((!sent && !mailed) || nth-- > 0)
            continue;
        CHECK(!sent || (e->send.links[0] == link && e->send.tail.len == 0));
        return message_decode(type, sent ? e->send.head : e->request.body, NULL, ret) == 0;
    }
    return false;
}

static struct bytes as_body(uint8_t *room, size_t size, uint16_t type, const union message *m) {
    long len = message_encode(type, m, room_of(room + 2, size - 2));
    CHECK(len >= 0);
    store_le16(room, type);
    return bytes_of(room, 2 + (size_t)len);
}

static void strobe(struct bench *b, uint64_t number, uint8_t slot) {
    uint8_t room[64];
    union message m = {
        .turn = {.slot = slot, .tell = true, .sent_ns = 77, .quantum_us = 500, .cycle = 9}};
    feed(b, (struct input){.kind = INPUT_STROBE,
                           .strobe = {.channel = CHANNEL_TURN,
                                      .number = number,
                                      .body = as_body(room, sizeof room, MESSAGE_TURN, &m)}});
}

static void launch(struct bench *b, uint64_t run, uint64_t slots) {
    uint8_t room[512];
    uint64_t words[1];
    struct nodeset set;
    nodeset_init(&set, limits_universe(&config.limits), words);
    nodeset_clear(&set);
    nodeset_add(&set, SELF);
    nodeset_add(&set, 2);
    union message m = {
        .launch = {.run = run, .procs = 4, .window = 1, .set = &set, .slots = slots, .version = 3}};
    feed(b, (struct input){.kind = INPUT_SIGNAL,
                           .signal = {.event = EVENT_LAUNCH,
                                      .order = 1,
                                      .body = as_body(room, sizeof room, MESSAGE_LAUNCH, &m)}});
}

static void slots(struct bench *b, uint64_t version, uint64_t run, uint64_t of, bool by_mail) {
    uint8_t room[64], row[SLOTS_ROW_BYTES];
    store_le64(row, run);
    store_le64(row + 8, of);
    union message m = {.slots = {.version = version, .rows = bytes_of(row, sizeof row)}};
    struct bytes body = as_body(room, sizeof room, MESSAGE_SLOTS, &m);
    if (by_mail)
        feed(b, (struct input){.kind = INPUT_MESSAGE,
                               .message = {.type = MESSAGE_SLOTS,
                                           .body = bytes_of(body.at + 2, body.len - 2)}});
    else
        feed(b, (struct input){.kind = INPUT_SIGNAL,
                               .signal = {.event = EVENT_SLOTS, .order = 2, .body = body}});
}

static void test_strobes_reach_the_launcher(void) {
    static struct bench b;
    union message m;
    begin(&b);
    strobe(&b, 40, 3); /* nobody is there */
    CHECK(!said(&b, LINK, MESSAGE_TURN, 0, &m));
    link_up(&b);
    strobe(&b, 41, 3);
    CHECK(said(&b, LINK, MESSAGE_TURN, 0, &m));
    CHECK(m.turn.number == 41 && m.turn.slot == 3 && m.turn.tell && m.turn.sent_ns == 77 &&
          m.turn.quantum_us == 500 && m.turn.cycle == 9);
    feed(&b, (struct input){.kind = INPUT_STROBE,
                            .strobe = {.channel = CHANNEL_TURN, .number = 42, .body = {0}}});
    CHECK_EQ(b.out.count, 0);
    free(b.memory);
}

static void test_slots_go_with_the_set_up_and_after_it(void) {
    static struct bench b;
    union message m;
    begin(&b);
    launch(&b, 10, 2);
    slots(&b, 7, 10, 4, false); /* before there is a launcher */
    slots(&b, 6, 10, 1, true);  /* said before */
    CHECK_EQ(run_find(b.nm, 10)->slots, 4);
    link_up(&b);
    struct ending none = {.cause = CAUSE_UNKNOWN};
    uint8_t bytes[ENDING_BYTES], body[256];
    ending_store(bytes, &none);
    union message ready = {.ended = {.ends = bytes_of(bytes, sizeof bytes)}};
    long len = message_encode(MESSAGE_ENDED, &ready, room_of(body, sizeof body));
    feed(&b, (struct input){.kind = INPUT_MESSAGE,
                            .message = {.link = LINK,
                                        .type = MESSAGE_ENDED,
                                        .body = bytes_of(body, (size_t)len)}});
    CHECK(said(&b, LINK, MESSAGE_SETUP, 0, &m));
    CHECK(m.setup.run == 10 && m.setup.slots == 4 && m.setup.version == 7);
    slots(&b, 8, 10, 8, true);
    CHECK(said(&b, LINK, MESSAGE_SLOTS, 0, &m));
    CHECK(m.slots.version == 8 && m.slots.rows.len == SLOTS_ROW_BYTES &&
          load_le64(m.slots.rows.at + 8) == 8);
    slots(&b, 9, 77, 8, true); /* of no run here */
    CHECK(!said(&b, LINK, MESSAGE_SLOTS, 0, &m));
    free(b.memory);
}

static void test_what_was_switched_is_told(void) {
    static struct bench b;
    union message m = {.turned = {.number = 41, .slot = 3, .at_ns = 9, .took_ns = 5}};
    uint8_t body[64];
    begin(&b);
    link_up(&b);
    long len = message_encode(MESSAGE_TURNED, &m, room_of(body, sizeof body));
    feed(&b, (struct input){.kind = INPUT_MESSAGE,
                            .message = {.link = LINK,
                                        .type = MESSAGE_TURNED,
                                        .body = bytes_of(body, (size_t)len)}});
    CHECK(said(&b, 0, MESSAGE_TURNED, 0, &m));
    CHECK(m.turned.number == 41 && m.turned.at_ns == 9);
    free(b.memory);
}

int main(void) {
    TEST(test_strobes_reach_the_launcher);
    TEST(test_slots_go_with_the_set_up_and_after_it);
    TEST(test_what_was_switched_is_told);
    return tap_finish();
}

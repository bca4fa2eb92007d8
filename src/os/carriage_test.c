/* SPDX-License-Identifier: MIT */
/* Pieces from one mover's world to another's, by a fabric of two storm-fabs; what the link carries is in the test's hands. */
#include "os/carriage.h"

#include <signal.h>

#include "os/companion.h"
#include "os/fabric.h"
#include "turns.h"

enum {
    SLOT = 4096,
    SLOTS = 8,
    BYTES = SLOTS * SLOT,
    LINK = 5,
    BUFFER = 3,
    HERE = 9,
    TOLD_MAX = 64
};
static const uint64_t transfer = 77, offer = 99;

struct said {
    uint16_t type;
    uint8_t body[1024];
    size_t len;
};

struct end {
    struct carriage *carriage;
    struct buffers buffers;
    uint32_t number; /* of its buffer */
    struct said said[TOLD_MAX];
    uint32_t said_count, heard; /* by the other */
    struct input_put told[TOLD_MAX];
    uint32_t told_count;
    uint32_t sent, dropped;
};

static struct loop loop;
static const char *fabric;

static void on_send(void *context, uint32_t link, uint16_t type, const union message *m) {
    struct end *e = context;
    struct said *s = &e->said[e->said_count++];
    CHECK_EQ(link, LINK);
    long len = message_encode(type, m, room_of(s->body, sizeof s->body));
    CHECK(len > 0);
    s->type = type;
    s->len = (size_t)len;
}

static void on_put(void *context, const struct input_put *put) {
    struct end *e = context;
    e->told[e->told_count++] = *put;
}

static void on_sent(void *context, uint64_t tag) {
    struct end *e = context;
    (void)tag;
    e->sent++;
}

static void on_drop(void *context, uint32_t link, enum role peer) {
    struct end *e = context;
    (void)peer;
    e->dropped++;
    carriage_link_gone(e->carriage, link, true);
}

static void begin(struct end *e, uint32_t number) {
    *e = (struct end){.number = number};
    struct carriage_config c = {.loop = &loop,
                                .source = "127.0.0.1",
                                .send = on_send,
                                .put = on_put,
                                .sent = on_sent,
                                .drop = on_drop,
                                .context = e};
    e->carriage = carriage_new(&c);
    struct message_transfer t = {
        .transfer = transfer, .offer = offer, .fabric = bytes_from_str(fabric)};
    carriage_transfer(e->carriage, &t);
    buffers_share(&e->buffers, number, BYTES);
}

static void await_fabric(struct end *e) {
    CHECK(
        TURN_UNTIL(&loop, carriage_settle(e->carriage), !carriage_opening(e->carriage, transfer)));
}

static void finish(struct end *e) {
    carriage_free(e->carriage);
    buffers_fini(&e->buffers);
}

static uint8_t *memory(const struct end *e) {
    return buffers_find(&e->buffers, e->number)->at;
}

/* The other end hears the next that this one has said. */
static void pass_on(struct end *from, struct end *to) {
    union message m;
    const struct said *s = &from->said[from->heard++];
    CHECK_EQ(message_decode(s->type, bytes_of(s->body, s->len), NULL, &m), 0);
    if (s->type == MESSAGE_WINDOW)
        carriage_window(to->carriage, LINK, &m.window);
    else
        CHECK(carriage_placed(to->carriage, LINK, &m.placed,
                              buffers_find(&to->buffers, m.placed.buffer)));
}

static void settle(struct end *a, struct end *b) {
    carriage_settle(a->carriage);
    carriage_settle(b->carriage);
}

/* The second takes from the first. */
static void join(struct end *giver, struct end *taker) {
    struct message_join j = {.transfer = transfer, .buffer = BUFFER, .slots = SLOTS};
    begin(giver, HERE);
    begin(taker, BUFFER);
    await_fabric(taker); /* the giver's may take longer */
    struct buffer *b = buffers_find(&taker->buffers, BUFFER);
    b->link = LINK;
    carriage_join(taker->carriage, LINK, &j, b);
    if (CHECK_EQ(taker->said_count, 1))
        pass_on(taker, giver);
    carriage_joined(giver->carriage, LINK, &j);
    await_fabric(giver);
}

static bool give(struct end *e, uint32_t slot, uint32_t len, uint64_t piece) {
    struct effect_put put = {.link = LINK,
                             .buffer = HERE,
                             .offset = (uint64_t)slot * SLOT,
                             .len = len,
                             .peer_buffer = BUFFER,
                             .peer_offset = (uint64_t)slot * SLOT,
                             .note = piece};
    memset(memory(e) + put.offset, (int)piece, len);
    return carriage_put(e->carriage, &put, buffers_find(&e->buffers, HERE), piece);
}

static bool holds(const struct end *e, uint32_t slot, uint32_t len, uint8_t byte) {
    const uint8_t *at = memory(e) + (size_t)slot * SLOT;
    for (uint32_t i = 0; i < SLOT; i++)
        if (at[i] != (i < len ? byte : 0))
            return false;
    return true;
}

static void test_pieces_and_counts(void) {
    struct end a, b;
    struct message_counted n;
    join(&a, &b);
    for (uint32_t i = 0; i < SLOTS; i++)
        CHECK(give(&a, i, SLOT - i, i + 1));
    while (a.heard < a.said_count)
        pass_on(&a, &b);
    CHECK(TURN_UNTIL(&loop, settle(&a, &b), a.sent == SLOTS && b.told_count == SLOTS));
    for (uint32_t i = 0; i < SLOTS; i++) {
        CHECK_EQ(b.told[i].note, i + 1);
        CHECK_EQ(b.told[i].len, SLOT - i);
        CHECK_EQ(b.told[i].offset, i * SLOT);
        CHECK(holds(&b, i, SLOT - i, (uint8_t)(i + 1)));
    }
    carriage_count(a.carriage, offer, &n);
    CHECK_EQ(n.put_fabric, SLOTS * SLOT - 28);
    CHECK_EQ(n.put_stream, 0);
    carriage_count(b.carriage, offer, &n);
    CHECK_EQ(n.came_fabric, SLOTS * SLOT - 28);
    CHECK_EQ(n.came_stream + n.put_fabric, 0);
    finish(&a);
    finish(&b);
}

/* Bytes may be here before it is said what they are; and nothing is told out of turn. */
static void test_order(void) {
    struct end a, b;
    join(&a, &b);
    for (uint32_t i = 0; i < 3; i++)
        CHECK(give(&a, i, SLOT, i + 1));
    CHECK(TURN_UNTIL(&loop, settle(&a, &b), a.sent == 3 && holds(&b, 2, SLOT, 3)));
    CHECK_EQ(b.told_count, 0);
    pass_on(&a, &b);
    CHECK(TURN_UNTIL(&loop, settle(&a, &b), b.told_count == 1));
    struct input_put late = {
        .link = LINK, .buffer = BUFFER, .offset = 3 * SLOT, .len = 5, .note = 4};
    pass_on(&a, &b);
    pass_on(&a, &b);
    carriage_came(b.carriage, &late);
    CHECK(TURN_UNTIL(&loop, settle(&a, &b), b.told_count == 4));
    for (uint32_t i = 0; i < 4; i++)
        CHECK_EQ(b.told[i].note, i + 1);
    finish(&a);
    finish(&b);
}

/* What was put by the stream waits for what was announced before it. */
static void test_stream_behind_fabric(void) {
    struct end a, b;
    union message m = {.placed = {.buffer = BUFFER, .offset = 0, .len = 9, .note = 1}};
    struct input_put second = {.link = LINK, .buffer = BUFFER, .offset = SLOT, .len = 5, .note = 2};
    join(&a, &b);
    CHECK(carriage_placed(b.carriage, LINK, &m.placed, buffers_find(&b.buffers, BUFFER)));
    carriage_came(b.carriage, &second);
    CHECK_EQ(b.told_count, 0);
    CHECK(give(&a, 0, 9, 1));
    CHECK(TURN_UNTIL(&loop, settle(&a, &b), b.told_count == 2));
    CHECK_EQ(b.told[1].note, 2);
    finish(&a);
    finish(&b);
}

static void test_window_is_shut(void) {
    struct end a, b;
    join(&a, &b);
    carriage_link_gone(b.carriage, LINK, true);
    CHECK(give(&a, 1, SLOT, 8)); /* it does not know yet */
    for (int i = 0; i < 50; i++) {
        loop_turn(&loop, 1);
        settle(&a, &b);
    }
    CHECK(holds(&b, 1, 0, 0));
    CHECK_EQ(b.told_count, 0);
    carriage_link_gone(a.carriage, LINK, false);
    CHECK(TURN_UNTIL(&loop, settle(&a, &b), a.sent == 1));
    finish(&a);
    finish(&b);
}

static void test_what_makes_no_sense(void) {
    struct end a, b;
    join(&a, &b);
    const struct buffer *there = buffers_find(&b.buffers, BUFFER);
    struct message_placed p = {.buffer = BUFFER, .offset = BYTES - 1, .len = 2};
    CHECK(!carriage_placed(b.carriage, LINK, &p, there));
    p = (struct message_placed){.buffer = BUFFER, .offset = UINT64_MAX, .len = 2};
    CHECK(!carriage_placed(b.carriage, LINK, &p, there));
    p = (struct message_placed){.buffer = BUFFER, .len = 2};
    CHECK(!carriage_placed(b.carriage, LINK + 1, &p, there));
    CHECK(!carriage_placed(b.carriage, LINK, &p, NULL));
    CHECK(!carriage_placed(a.carriage, LINK, &p, there)); /* it gives */
    for (int i = 0; i < SLOTS_MAX; i++)
        CHECK(carriage_placed(b.carriage, LINK, &p, there));
    CHECK(!carriage_placed(b.carriage, LINK, &p, there)); /* more than anybody may */
    struct effect_put far = {
        .link = LINK, .buffer = HERE, .len = SLOT, .peer_buffer = BUFFER, .peer_offset = BYTES};
    CHECK(!carriage_put(a.carriage, &far, buffers_find(&a.buffers, HERE), 0));
    finish(&a);
    finish(&b);
}

/* The giver's: its link is ended, and what it gives from then on goes by streams. */
static void test_storm_fab_dies(void) {
    struct end a, b;
    struct message_counted n;
    join(&a, &b);
    CHECK(give(&a, 0, SLOT, 1));
    CHECK(TURN_UNTIL(&loop, settle(&a, &b), a.sent == 1));
    pid_t helper = earlier_of_two();
    kill(helper, SIGSTOP);
    CHECK(give(&a, 1, SLOT, 2));
    kill(helper, SIGKILL);
    CHECK(TURN_UNTIL(&loop, settle(&a, &b), a.dropped == 1 && a.sent == 2));
    CHECK(!give(&a, 2, SLOT, 3));
    CHECK(!carriage_shares(a.carriage) && carriage_shares(b.carriage));
    carriage_count(a.carriage, offer, &n);
    CHECK_EQ(n.put_fabric, SLOT);
    CHECK(n.text.len > 0);
    finish(&a);
    finish(&b);
}

static void test_no_such_fabric(void) {
    struct end a;
    struct message_counted n;
    char why[256];
    struct message_join j = {.transfer = transfer, .buffer = BUFFER, .slots = SLOTS};
    fabric = "ofi:nosuch";
    begin(&a, BUFFER);
    await_fabric(&a);
    carriage_join(a.carriage, LINK, &j, buffers_find(&a.buffers, BUFFER));
    CHECK_EQ(a.said_count, 0);
    carriage_count(a.carriage, offer, &n);
    CHECK(n.text.len > 0);
    CHECK(carriage_prepare(a.carriage, bytes_from_str("ofi:nosuch"), why) < 0);
    CHECK(strstr(why, "nosuch") != NULL);
    CHECK(carriage_prepare(a.carriage, bytes_from_str("what"), why) < 0);
    CHECK(!carriage_shares(a.carriage));
    carriage_settle(a.carriage);
    finish(&a);
}

int main(void) {
    static const char *const fabrics[] = {"ofi:tcp", "ofi:shm"};
    char program[PATH_MAX];
    if (companion_find("storm-fab", program, sizeof program) < 0) {
        SKIP("carriage", "built without libfabric");
        return tap_finish();
    }
    CHECK_EQ(loop_init(&loop), 0);
    for (int i = 0; i < 2; i++) {
        fabric = fabrics[i];
        TEST(test_pieces_and_counts);
        TEST(test_order);
        TEST(test_stream_behind_fabric);
        TEST(test_window_is_shut);
        TEST(test_what_makes_no_sense);
        TEST(test_storm_fab_dies);
    }
    TEST(test_no_such_fabric);
    loop_fini(&loop);
    return tap_finish();
}

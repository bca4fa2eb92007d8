/* SPDX-License-Identifier: MIT */
/* Every message survives a round trip; anything else is refused.
 *
 * The table itself drives the tests, so a new message is tested from the day it has a row. */
#include "wire/message.h"

#include <errno.h>
#include <string.h>

#include "base/random.h"
#include "tap.h"

enum { UNIVERSE = 300, ROOM = 8192 };

static uint64_t storage[4][8];
static struct nodeset sets[4];

static void make_sets(void) {
    for (int i = 0; i < 4; i++)
        nodeset_init(&sets[i], UNIVERSE, storage[i]);
    nodeset_add_range(&sets[0], 3, 17);
    nodeset_add(&sets[0], 299);
    nodeset_add(&sets[1], 0);
}

static const uint8_t body[3 * RECORD_BYTES * RESOLUTION_BYTES * 8];

/* A message of any type with its views and sets in place; other fields from the bytes of `fill`. */
static void fill(uint16_t type, union message *m, uint8_t byte) {
    memset(m, byte, sizeof *m);
    switch (type) {
    case MESSAGE_ATTACHED:
        m->attached.set = &sets[0];
        break;
    case MESSAGE_VIEW:
        m->view.members = &sets[0];
        m->view.joined = &sets[1];
        m->view.variables = bytes_of(body, 24);
        m->view.resolutions = bytes_of(body, (size_t)2 * RESOLUTION_BYTES);
        break;
    case MESSAGE_PREPARE:
        m->prepare.set = &sets[0];
        m->prepare.operation.body = bytes_of(body, 5);
        break;
    case MESSAGE_DECIDE:
        m->decide.set = &sets[0];
        break;
    case MESSAGE_ARM:
        m->arm.set = &sets[0];
        m->arm.active = bytes_of(body, 16);
        break;
    case MESSAGE_STROBE:
        m->strobe.set = &sets[0];
        m->strobe.body = bytes_of(body, 9);
        break;
    case MESSAGE_TICK:
        m->tick.limbo = &sets[0];
        break;
    case MESSAGE_ATTACH:
        m->attach.below = &sets[0];
        m->attach.members = &sets[1];
        m->attach.records = bytes_of(body, RECORD_BYTES);
        break;
    case MESSAGE_LOST:
        m->lost.set = &sets[0];
        break;
    case MESSAGE_ACK:
        m->ack.set = &sets[0];
        break;
    case MESSAGE_REQUEST:
        m->request.set = &sets[0];
        m->request.operation.body = bytes_of(body, 1);
        break;
    case MESSAGE_DONATION:
        m->donation.variables = bytes_of(body, 16);
        break;
    case MESSAGE_PUT:
        m->put.body = bytes_of(body, 100);
        break;
    case MESSAGE_QUERY:
        m->query.set = &sets[0];
        break;
    case MESSAGE_RECORDS:
        m->records.set = &sets[0];
        m->records.records = bytes_of(body, 4 * REPLY_HEAD_BYTES); /* four, of nothing */
        break;
    default:
        break;
    }
}

static void test_every_row_is_whole(void) {
    for (uint16_t t = 1; t < MESSAGE_TYPES; t++) {
        const struct message_rule *rule = message_rule(t);
        if (!CHECK(rule != NULL))
            continue;
        CHECK(rule->from != 0 && rule->lane < LANES && rule->max_bytes > 0 && rule->name != NULL);
    }
    CHECK(message_rule(MESSAGE_NONE) == NULL);
    CHECK(message_rule(MESSAGE_TYPES) == NULL);
    CHECK(message_rule(UINT16_MAX) == NULL);
}

/* Encode, decode, encode: the bytes are the same, and no shorter or longer input is taken. */
static void test_round_trip_and_exact_length(void) {
    static uint8_t one[ROOM], two[ROOM];
    make_sets();
    for (uint16_t t = 1; t < MESSAGE_TYPES; t++) {
        union message m, back;
        fill(t, &m, 1);
        long len = message_encode(t, &m, room_of(one, sizeof one));
        if (!CHECK(len >= 0))
            continue;
        CHECK_EQ(message_decode(t, bytes_of(one, (size_t)len), &sets[2], &back), 0);
        CHECK_EQ(message_encode(t, &back, room_of(two, sizeof two)), len);
        CHECK(memcmp(one, two, (size_t)len) == 0);
        bool open_ended =
            t == MESSAGE_PREPARE || t == MESSAGE_REQUEST || t == MESSAGE_STROBE || t == MESSAGE_PUT;
        if (!open_ended) {
            CHECK_EQ(message_decode(t, bytes_of(one, (size_t)len + 1), &sets[2], &back), -EBADMSG);
            for (size_t cut = 0; cut < (size_t)len; cut++)
                CHECK_EQ(message_decode(t, bytes_of(one, cut), &sets[2], &back), -EBADMSG);
        }
        CHECK_EQ(message_encode(t, &m, room_of(one, len > 0 ? (size_t)len - 1 : 0)),
                 len > 0 ? -ENOBUFS : 0);
    }
}

static void test_random_bytes_never_hurt(void) {
    static uint8_t noise[600];
    struct random r;
    random_init(&r, 7);
    make_sets();
    for (int round = 0; round < 20000; round++) {
        size_t len = random_below(&r, sizeof noise);
        random_bytes(&r, noise, len);
        uint16_t type = (uint16_t)random_below(&r, MESSAGE_TYPES + 2);
        union message m;
        int status = message_decode(type, bytes_of(noise, len), &sets[2], &m);
        CHECK(status == 0 || status == -EBADMSG);
    }
}

static void test_fields_out_of_range_are_refused(void) {
    uint8_t bytes[ROOM];
    union message m, back;
    make_sets();
    fill(MESSAGE_ACK, &m, 0);
    long len = message_encode(MESSAGE_ACK, &m, room_of(bytes, sizeof bytes));
    bytes[0] = ACK_WHATS;
    CHECK_EQ(message_decode(MESSAGE_ACK, bytes_of(bytes, (size_t)len), &sets[2], &back), -EBADMSG);
    bytes[0] = 0;
    bytes[1] = 2; /* a bool is 0 or 1 */
    CHECK_EQ(message_decode(MESSAGE_ACK, bytes_of(bytes, (size_t)len), &sets[2], &back), -EBADMSG);
    bytes[1] = 1;
    store_le32(bytes + 2 + 8 + 1 + 4 + 8 + 4, 300); /* the last node of the set: beyond the end */
    CHECK_EQ(message_decode(MESSAGE_ACK, bytes_of(bytes, (size_t)len), &sets[2], &back), -EBADMSG);
}

/* The last reply is cut, or says that it is longer than it is. */
static void test_replies_that_are_none_are_refused(void) {
    uint8_t replies[64] = {0};
    uint8_t bytes[ROOM];
    union message m, back;
    make_sets();
    fill(MESSAGE_RECORDS, &m, 0);
    size_t len = reply_store(room_of(replies, 64), &(struct reply){3, bytes_of(body, 9)});
    CHECK_EQ(len, 15);
    len += reply_store(room_of(replies + len, 64 - len), &(struct reply){299, {0}});
    for (size_t cut = 0; cut <= len; cut++) {
        m.records.records = bytes_of(replies, cut);
        long size = message_encode(MESSAGE_RECORDS, &m, room_of(bytes, sizeof bytes));
        bool whole = cut == 0 || cut == 15 || cut == len;
        CHECK_EQ(size >= 0, whole);
        if (whole)
            CHECK_EQ(
                message_decode(MESSAGE_RECORDS, bytes_of(bytes, (size_t)size), &sets[2], &back), 0);
    }
    size_t at = 0;
    struct reply r;
    CHECK(reply_next(bytes_of(replies, len), &at, &r));
    CHECK(r.node == 3 && r.record.len == 9);
    CHECK(reply_next(bytes_of(replies, len), &at, &r));
    CHECK(r.node == 299 && r.record.len == 0);
    CHECK(!reply_next(bytes_of(replies, len), &at, &r));
    CHECK_EQ(at, len);
}

static void test_records(void) {
    uint8_t bytes[2 * RECORD_BYTES];
    struct record r = {.order = 77, .id = {3, 4, 5}, .state = RECORD_COMMITTED}, back;
    record_store(bytes, &r);
    r.order = 78;
    record_store(bytes + RECORD_BYTES, &r);
    CHECK(record_load(&back, bytes_of(bytes, sizeof bytes), 1));
    CHECK_EQ(back.order, 78);
    CHECK_EQ(back.id.incarnation, 5);
    CHECK(!record_load(&back, bytes_of(bytes, sizeof bytes), 2));
    bytes[RECORD_BYTES - 1] = RECORD_STATES;
    CHECK(!record_load(&back, bytes_of(bytes, sizeof bytes), 0));
    uint8_t verdict[RESOLUTION_BYTES];
    resolution_store(verdict, &(struct resolution){.order = 9, .commit = true});
    struct resolution v;
    CHECK(resolution_load(&v, bytes_of(verdict, sizeof verdict), 0));
    CHECK_EQ(v.order, 9);
    CHECK(v.commit);
    CHECK(!resolution_load(&v, bytes_of(verdict, sizeof verdict), 1));
}

int main(void) {
    TEST(test_every_row_is_whole);
    TEST(test_round_trip_and_exact_length);
    TEST(test_random_bytes_never_hurt);
    TEST(test_fields_out_of_range_are_refused);
    TEST(test_replies_that_are_none_are_refused);
    TEST(test_records);
    return tap_finish();
}

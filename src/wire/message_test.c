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

static const uint8_t awaits[2 * AWAIT_BYTES] = {AWAIT_OK, 1, 0, 0, 0, AWAIT_ANY, 2};
static const uint8_t body[3 * RECORD_BYTES * RESOLUTION_BYTES * 8];

/* The same for the messages about files. */
static void fill_file(uint16_t type, union message *m) {
    switch (type) {
    case MESSAGE_TRANSFER:
        m->transfer.slots = SLOTS_MAX;
        m->transfer.set = &sets[0];
        m->transfer.address = bytes_of(body, 9);
        m->transfer.fabric = bytes_of(body, 7);
        m->transfer.run = 77;
        m->transfer.switches = bytes_of(body, 24);
        m->transfer.descriptor = bytes_of(body, 10);
        break;
    case MESSAGE_TURN:
        m->turn.slot = GANG_ALL;
        m->turn.cycle = 5;
        break;
    case MESSAGE_SLOTS:
        m->slots.rows = bytes_of(body, (size_t)2 * SLOTS_ROW_BYTES);
        break;
    case MESSAGE_TURNED:
        m->turned.slot = GANG_SLOTS_MAX - 1;
        break;
    case MESSAGE_RESERVE:
        m->reserve.nodes = &sets[0];
        m->reserve.name = bytes_of(body, RESERVATION_NAME_MAX);
        break;
    case MESSAGE_COME:
        m->come.host = bytes_of(body, 15);
        break;
    case MESSAGE_LETTER:
        m->letter.at = bytes_of(body, 20);
        m->letter.files = bytes_of(body, 21);
        m->letter.letter = bytes_of(body, 96);
        break;
    case MESSAGE_OWNER:
        m->owner.watch = bytes_of(body, 12);
        break;
    case MESSAGE_COMMAND:
        m->command.ranks = bytes_of(body, RANKS_RANGE_BYTES);
        break;
    case MESSAGE_PIDS:
        m->pids.node = bytes_of(body, 3);
        m->pids.host = bytes_of(body, 5);
        m->pids.rows = bytes_of(body, (size_t)3 * PIDS_ROW_BYTES);
        break;
    case MESSAGE_PETITION:
        m->petition.body = bytes_of(body, 12);
        break;
    case MESSAGE_REPLY:
        m->reply.body = bytes_of(body, 13);
        break;
    case MESSAGE_CLEAR:
        m->clear.runs = bytes_of(body, 16);
        break;
    case MESSAGE_ENOUGH:
        m->enough.transfers = bytes_of(body, 16);
        break;
    case MESSAGE_ARRIVED:
        m->arrived.error = -28;
        m->arrived.text = bytes_of(body, 6);
        break;
    case MESSAGE_JOIN:
        m->join.slots = 4;
        m->join.slot = 3;
        m->join.room = 2;
        break;
    case MESSAGE_PAGE:
        m->page.table = bytes_of(body, 40);
        break;
    case MESSAGE_NEED:
        m->need.bits = bytes_of(body, 8);
        break;
    case MESSAGE_PART:
        m->part.error = -74;
        m->part.text = bytes_of(body, 6);
        break;
    case MESSAGE_COPY:
        m->copy.slots = 1;
        m->copy.set = &sets[0];
        m->copy.address = bytes_of(body, 9);
        m->copy.fabric = bytes_of(body, 5);
        m->copy.descriptor = bytes_of(body, 11);
        break;
    case MESSAGE_OFFER:
        m->offer.set = &sets[0];
        m->offer.path = bytes_of(body, 7);
        break;
    case MESSAGE_OFFERED:
        m->offered.error = -2;
        m->offered.text = bytes_of(body, 4);
        m->offered.descriptor = bytes_of(body, 12);
        break;
    case MESSAGE_WINDOW:
        m->window.note = 0xabcd00;
        m->window.fabric = bytes_of(body, FABRIC_NAME_MAX);
        m->window.address = bytes_of(body, 30);
        m->window.grant = bytes_of(body, 24);
        break;
    case MESSAGE_PLACED:
        m->placed.len = 1;
        break;
    case MESSAGE_COUNTED:
        m->counted.text = bytes_of(body, 3);
        break;
    case MESSAGE_COPIED:
        m->copied.set = &sets[0];
        m->copied.without = &sets[1];
        m->copied.error = 0;
        m->copied.text = bytes_of(body, 5);
        break;
    default:
        break;
    }
}

/* The same for the messages about jobs. */
static void fill_job(uint16_t type, union message *m) {
    switch (type) {
    case MESSAGE_MAIL:
    case MESSAGE_PARCEL:
        m->mail.set = &sets[0];
        m->mail.body = bytes_of(body, 12);
        break;
    case MESSAGE_LAUNCH:
        m->launch.set = &sets[0];
        m->launch.folder = true;
        m->launch.sections = bytes_of(body, 6);
        m->launch.spec = bytes_of(body, 7);
        break;
    case MESSAGE_FORGET:
        m->forget.runs = bytes_of(body, 24);
        break;
    case MESSAGE_HAVE:
        m->have.runs = bytes_of(body, 8);
        m->have.report = bytes_of(body, 9);
        break;
    case MESSAGE_ENDS:
        m->ends.clean = &sets[0];
        m->ends.ends = bytes_of(body, (size_t)2 * ENDING_BYTES);
        break;
    case MESSAGE_OUTPUT:
        m->output.stream = 1;
        m->output.bytes = bytes_of(body, 8);
        break;
    case MESSAGE_TAKEN:
        m->taken.stream = 2;
        break;
    case MESSAGE_TYPED:
        m->typed.bytes = bytes_of(body, 8);
        break;
    case MESSAGE_SETUP:
        m->setup.setup = bytes_of(body, 6);
        break;
    case MESSAGE_HOLD:
        m->hold.setup = bytes_of(body, 6);
        break;
    case MESSAGE_ENDED:
        m->ended.ends = bytes_of(body, ENDING_BYTES);
        break;
    case MESSAGE_SUBMIT:
        m->submit.flags = JOB_FLAGS_END - 1;
        m->submit.priority = -7;
        m->submit.on = &sets[0];
        m->submit.exclude = &sets[1];
        m->submit.after = bytes_of(awaits, 2 * AWAIT_BYTES);
        m->submit.name = bytes_of(body, 4);
        m->submit.reservation = bytes_of(body, RESERVATION_NAME_MAX);
        m->submit.need = bytes_of(body, 8);
        m->submit.sections = bytes_of(body, 9);
        m->submit.parent = 0x01020304;
        m->submit.together = 5;
        m->submit.classes = bytes_of(body, 3);
        m->submit.files = bytes_of(body, 5);
        m->submit.inputs = bytes_of(body, 6);
        m->submit.spec = bytes_of(body, 7);
        break;
    case MESSAGE_ACT:
        m->act.nodes = &sets[0];
        m->act.jobs = bytes_of(body, 12);
        m->act.text = bytes_of(body, 3);
        m->act.ranks = bytes_of(body, RANKS_RANGE_BYTES);
        break;
    case MESSAGE_ANSWER:
        m->answer.text = bytes_of(body, 11);
        break;
    case MESSAGE_NEWS:
        m->news.nodes = &sets[0];
        m->news.waiting = &sets[1];
        m->news.text = bytes_of(body, 5);
        m->news.sections = bytes_of(body, 6);
        m->news.unwritten = bytes_of(body, 4);
        break;
    case MESSAGE_ASK:
        m->ask.need = bytes_of(body, 3);
        break;
    case MESSAGE_ROWS:
        m->rows.wrong = bytes_of(body, 3);
        m->rows.rows = bytes_of(body, 40);
        break;
    default:
        fill_file(type, m);
        break;
    }
}

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
        fill_job(type, m);
        break;
    }
}

/* Bytes at the end of what fill() makes that have no length of their own. */
static size_t rest_of(uint16_t type) {
    static const uint8_t rests[MESSAGE_TYPES] = {
        [MESSAGE_PREPARE] = 5,   [MESSAGE_STROBE] = 9,    [MESSAGE_REQUEST] = 1,
        [MESSAGE_PUT] = 100,     [MESSAGE_MAIL] = 12,     [MESSAGE_PARCEL] = 12,
        [MESSAGE_LAUNCH] = 7,    [MESSAGE_OUTPUT] = 8,    [MESSAGE_TYPED] = 8,
        [MESSAGE_SETUP] = 6,     [MESSAGE_HOLD] = 6,      [MESSAGE_SUBMIT] = 7,
        [MESSAGE_TRANSFER] = 10, [MESSAGE_COPY] = 11,     [MESSAGE_OFFERED] = 12,
        [MESSAGE_LETTER] = 96,   [MESSAGE_PETITION] = 12, [MESSAGE_REPLY] = 13,
    };
    return rests[type];
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
        size_t rest = rest_of(t);
        if (rest == 0)
            CHECK_EQ(message_decode(t, bytes_of(one, (size_t)len + 1), &sets[2], &back), -EBADMSG);
        for (size_t cut = 0; cut < (size_t)len; cut++)
            CHECK_EQ(message_decode(t, bytes_of(one, cut), &sets[2], &back),
                     cut + rest < (size_t)len ? -EBADMSG : 0);
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

/* Encodes a message of fill(), then puts another byte into it: what becomes of it? */
static int with_byte(uint16_t type, size_t at, uint8_t byte) {
    static uint8_t bytes[ROOM];
    union message m, back;
    make_sets();
    fill(type, &m, 0);
    long len = message_encode(type, &m, room_of(bytes, sizeof bytes));
    CHECK(len > (long)at);
    bytes[at] = byte;
    return message_decode(type, bytes_of(bytes, (size_t)len), &sets[2], &back);
}

static void test_fields_of_jobs_out_of_range_are_refused(void) {
    CHECK_EQ(with_byte(MESSAGE_COMMAND, 8, VERBS - 1), 0);
    CHECK_EQ(with_byte(MESSAGE_COMMAND, 8, VERBS), -EBADMSG);
    CHECK_EQ(with_byte(MESSAGE_MAIL, 4, 2), -EBADMSG); /* upwards: true or false */
    CHECK_EQ(with_byte(MESSAGE_OUTPUT, 12, 2), 0);
    CHECK_EQ(with_byte(MESSAGE_OUTPUT, 12, 0), -EBADMSG);
    CHECK_EQ(with_byte(MESSAGE_OUTPUT, 12, 3), -EBADMSG);
    CHECK_EQ(with_byte(MESSAGE_TAKEN, 12, 0), -EBADMSG);
    CHECK_EQ(with_byte(MESSAGE_FORGET, 0, 23), -EBADMSG); /* not whole numbers */
    CHECK_EQ(with_byte(MESSAGE_SUBMIT, 16, JOB_KINDS), -EBADMSG);
    CHECK_EQ(with_byte(MESSAGE_SUBMIT, 17 + 2, JOB_FLAGS_END >> 16), -EBADMSG);
    CHECK_EQ(with_byte(MESSAGE_ACT, 16, VERBS), -EBADMSG);
    CHECK_EQ(with_byte(MESSAGE_ASK, 16, SUBJECTS), -EBADMSG);
    CHECK_EQ(with_byte(MESSAGE_ANSWER, 16, ANSWERS), -EBADMSG);
    CHECK_EQ(with_byte(MESSAGE_NEWS, 12, STATES), -EBADMSG);
    CHECK_EQ(with_byte(MESSAGE_ROWS, 16, SUBJECTS), -EBADMSG);
    CHECK_EQ(with_byte(MESSAGE_ENDED, 8 + 4 + 4, CAUSES), -EBADMSG);
    CHECK_EQ(with_byte(MESSAGE_ENDED, 8, ENDING_BYTES - 1), -EBADMSG);
    CHECK_EQ(with_byte(MESSAGE_TURN, 8, GANG_SLOTS_MAX - 1), 0);
    CHECK_EQ(with_byte(MESSAGE_TURN, 8, GANG_SLOTS_MAX), -EBADMSG);
    CHECK_EQ(with_byte(MESSAGE_TURNED, 8, GANG_SLOTS_MAX), -EBADMSG);
    CHECK_EQ(with_byte(MESSAGE_TURNED, 9, GANG_MEANS), -EBADMSG);
    CHECK_EQ(with_byte(MESSAGE_SLOTS, 8, SLOTS_ROW_BYTES - 1), -EBADMSG);
    CHECK_EQ(with_byte(MESSAGE_RESERVE, 16, 1), 0);
    CHECK_EQ(with_byte(MESSAGE_RESERVE, 16, 2), -EBADMSG);
}

static void test_endings(void) {
    uint8_t bytes[2 * ENDING_BYTES] = {0};
    struct ending e = {.node = 7,
                       .cause = CAUSE_KILLED,
                       .ours = true,
                       .rank = 12,
                       .value = 9,
                       .bad = 3,
                       .output = (uint64_t)1 << 40};
    ending_store(bytes + ENDING_BYTES, &e);
    struct ending back;
    CHECK(ending_load(&back, bytes_of(bytes, sizeof bytes), 1));
    CHECK(back.node == 7 && back.cause == CAUSE_KILLED && back.ours && back.rank == 12);
    CHECK(!back.more);
    e.more = true;
    ending_store(bytes + ENDING_BYTES, &e);
    CHECK(ending_load(&back, bytes_of(bytes, sizeof bytes), 1));
    CHECK(back.more && back.ours && !back.loose);
    e.more = e.ours = false;
    e.loose = true;
    e.cause = CAUSE_MEMORY;
    ending_store(bytes + ENDING_BYTES, &e);
    CHECK(ending_load(&back, bytes_of(bytes, sizeof bytes), 1));
    CHECK(back.loose && !back.more && !back.ours && back.cause == CAUSE_MEMORY);
    CHECK(back.value == 9 && back.bad == 3 && back.output == (uint64_t)1 << 40);
    CHECK(ending_load(&back, bytes_of(bytes, sizeof bytes), 0));
    CHECK_EQ(back.node, 0);
    CHECK(!ending_load(&back, bytes_of(bytes, sizeof bytes), 2));
    CHECK(!ending_load(&back, bytes_of(bytes, sizeof bytes - 1), 1));
    bytes[5] = SPAWN_STEPS;
    CHECK(!ending_load(&back, bytes_of(bytes, sizeof bytes), 0));
    union message m = {
        .ends = {.run = 1, .clean = &sets[0], .ends = bytes_of(bytes, sizeof bytes)}};
    uint8_t whole[ROOM];
    make_sets();
    long len = message_encode(MESSAGE_ENDS, &m, room_of(whole, sizeof whole));
    CHECK(len > 0); /* whoever makes it knows what an ending is; whoever reads it cannot be sure */
    CHECK_EQ(message_decode(MESSAGE_ENDS, bytes_of(whole, (size_t)len), &sets[2], &m), -EBADMSG);
}

static void test_runs_are_jobs_and_attempts(void) {
    CHECK_EQ(run_job(run_of(77, 3)), 77);
    CHECK_EQ(run_job(run_of(UINT32_MAX, UINT16_MAX)), UINT32_MAX);
    CHECK(run_of(1, UINT16_MAX) < run_of(2, 0));
    CHECK(strcmp(state_name(STATE_QUEUED), "queued") == 0);
    CHECK(strcmp(state_name(STATES), "?") == 0);
    CHECK(!state_over(STATE_ENDING) && state_over(STATE_DONE) && state_over(STATE_LOST));
}

/* Mail needs both lanes of the tree; what nobody sends over a link needs none. */
static void test_lanes_of_links(void) {
    CHECK(message_lane_used(PURPOSE_TREE, LANE_CONTROL));
    CHECK(message_lane_used(PURPOSE_TREE, LANE_BULK));
    CHECK(message_lane_used(PURPOSE_SLOT, LANE_CONTROL) &&
          message_lane_used(PURPOSE_SLOT, LANE_BULK));
    CHECK(message_lane_used(PURPOSE_CLIENT, LANE_CONTROL));
    CHECK(message_lane_used(PURPOSE_FILES, LANE_BULK) &&
          !message_lane_used(PURPOSE_FILES, LANE_CONTROL)); /* one connection is enough */
}

/* Room and slots of a taker, errors that are none. */
static void test_fields_of_files_out_of_range_are_refused(void) {
    uint8_t bytes[ROOM];
    union message m;
    make_sets();
    fill(MESSAGE_JOIN, &m, 0);
    CHECK(message_encode(MESSAGE_JOIN, &m, room_of(bytes, sizeof bytes)) > 0);
    m.join.room = m.join.slots + 1;
    CHECK(message_encode(MESSAGE_JOIN, &m, room_of(bytes, sizeof bytes)) < 0);
    fill(MESSAGE_JOIN, &m, 0);
    m.join.slots = SLOTS_MAX + 1;
    CHECK(message_encode(MESSAGE_JOIN, &m, room_of(bytes, sizeof bytes)) < 0);
    fill(MESSAGE_JOIN, &m, 0);
    m.join.first = m.join.page + 1;
    CHECK(message_encode(MESSAGE_JOIN, &m, room_of(bytes, sizeof bytes)) < 0);
    fill(MESSAGE_WINDOW, &m, 0);
    m.window.note |= 1; /* the byte that counts */
    CHECK(message_encode(MESSAGE_WINDOW, &m, room_of(bytes, sizeof bytes)) < 0);
    fill(MESSAGE_WINDOW, &m, 0);
    m.window.fabric.len++;
    CHECK(message_encode(MESSAGE_WINDOW, &m, room_of(bytes, sizeof bytes)) < 0);
    fill(MESSAGE_ARRIVED, &m, 0);
    m.arrived.error = 5;
    CHECK(message_encode(MESSAGE_ARRIVED, &m, room_of(bytes, sizeof bytes)) < 0);
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
    TEST(test_fields_of_jobs_out_of_range_are_refused);
    TEST(test_endings);
    TEST(test_runs_are_jobs_and_attempts);
    TEST(test_lanes_of_links);
    TEST(test_fields_of_files_out_of_range_are_refused);
    TEST(test_replies_that_are_none_are_refused);
    TEST(test_records);
    return tap_finish();
}

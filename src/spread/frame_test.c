/* SPDX-License-Identifier: MIT */
/* Tests of frames between hops: round trips, what is missing, what is refused. */
#include "spread/frame.h"

#include <errno.h>

#include "spread/hop.h"
#include "tap.h"

static uint8_t wire[FRAME_HEAD + FRAME_BODY_MAX + 1];

/* Writes a frame to the beginning of `wire`; its length. */
static size_t put(const struct frame *f) {
    frame_head(f, wire);
    if (f->body.len > 0)
        memcpy(wire + FRAME_HEAD, f->body.at, f->body.len);
    return FRAME_HEAD + f->body.len;
}

static const struct {
    enum frame_kind kind;
    bool up;
    uint8_t flags; /* below that */
} kinds[] = {
    {FRAME_TASK, false, 1},
    {FRAME_HOSTS, false, 1},
    {FRAME_LAST, false, 1},
    {FRAME_INPUT, false, 1},
    {FRAME_SIGNAL, false, 1},
    {FRAME_PUT, false, FRAME_END + 1},
    {FRAME_READY, true, 2},
    {FRAME_OUTPUT, true, 3},
    {FRAME_FETCHED, true, FETCHED_KINDS},
    {FRAME_OVER, true, FRAME_ENDS},
    {FRAME_RETURN, true, HOP_WHYS},
    {FRAME_LOST, true, 1},
    {FRAME_IDLE, true, 1},
    {FRAME_TAKEN, true, 1},
    {FRAME_BEAT, true, 1},
};
enum { COUNT = sizeof kinds / sizeof *kinds };
_Static_assert(COUNT == (int)FRAME_KINDS, "one of each");

static void test_round_trip(void) {
    struct frame f, back;
    for (int i = 0; i < COUNT; i++) {
        f = (struct frame){.kind = kinds[i].kind,
                           .flag = (uint8_t)(kinds[i].flags - 1),
                           .host = 0x01020304,
                           .number = FRAME_ALL - 1,
                           .body = bytes_from_str("some words")};
        size_t len = put(&f);
        CHECK_EQ(frame_read(bytes_of(wire, len), kinds[i].up, &back), len);
        CHECK_EQ(back.kind, f.kind);
        CHECK_EQ(back.flag, f.flag);
        CHECK_EQ(back.host, f.host);
        CHECK_EQ(back.number, f.number);
        CHECK(bytes_equal(back.body, f.body));
    }
}

static void test_wrong_way(void) {
    struct frame back;
    for (int i = 0; i < COUNT; i++) {
        size_t len = put(&(struct frame){.kind = kinds[i].kind});
        CHECK_EQ(frame_read(bytes_of(wire, len), !kinds[i].up, &back), -EPROTO);
    }
}

static void test_flags(void) {
    struct frame back;
    for (int i = 0; i < COUNT; i++) {
        size_t len = put(&(struct frame){.kind = kinds[i].kind, .flag = kinds[i].flags});
        CHECK_EQ(frame_read(bytes_of(wire, len), kinds[i].up, &back), -EPROTO);
    }
}

static void test_no_body(void) {
    struct frame back;
    size_t len = put(&(struct frame){.kind = FRAME_INPUT, .host = FRAME_ALL});
    CHECK_EQ(len, FRAME_HEAD);
    CHECK_EQ(frame_read(bytes_of(wire, len), false, &back), FRAME_HEAD);
    CHECK_EQ(back.body.len, 0);
    CHECK_EQ(back.host, FRAME_ALL);
}

/* Of whatever is cut off, more is to come. */
static void test_missing(void) {
    struct frame back;
    size_t len = put(&(struct frame){.kind = FRAME_LOST, .body = bytes_from_str("words")});
    for (size_t i = 0; i < len; i++)
        CHECK_EQ(frame_read(bytes_of(wire, i), true, &back), 0);
    CHECK_EQ(frame_read(bytes_of(wire, len + 1), true, &back), len);
}

static void test_longest(void) {
    static uint8_t body[FRAME_BODY_MAX];
    struct frame back;
    memset(body, 'x', sizeof body);
    size_t len =
        put(&(struct frame){.kind = FRAME_OUTPUT, .flag = 1, .body = bytes_of(body, sizeof body)});
    CHECK_EQ(frame_read(bytes_of(wire, len), true, &back), FRAME_HEAD + FRAME_BODY_MAX);
    /* One that is longer is refused before it is there. */
    store_le32(wire, FRAME_BODY_MAX + 1);
    CHECK_EQ(frame_read(bytes_of(wire, FRAME_HEAD), true, &back), -EPROTO);
    store_le32(wire, UINT32_MAX);
    CHECK_EQ(frame_read(bytes_of(wire, FRAME_HEAD), true, &back), -EPROTO);
}

static void test_malformed(void) {
    struct frame back;
    size_t len = put(&(struct frame){.kind = FRAME_BEAT});
    wire[4] = FRAME_KINDS;
    CHECK_EQ(frame_read(bytes_of(wire, len), true, &back), -EPROTO);
    wire[4] = UINT8_MAX;
    CHECK_EQ(frame_read(bytes_of(wire, len), true, &back), -EPROTO);
    for (int i = 6; i < 8; i++) {
        put(&(struct frame){.kind = FRAME_BEAT});
        wire[i] = 1;
        CHECK_EQ(frame_read(bytes_of(wire, len), true, &back), -EPROTO);
    }
}

int main(void) {
    TEST(test_round_trip);
    TEST(test_wrong_way);
    TEST(test_flags);
    TEST(test_no_body);
    TEST(test_missing);
    TEST(test_longest);
    TEST(test_malformed);
    return tap_finish();
}

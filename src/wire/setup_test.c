/* SPDX-License-Identifier: MIT */
/* A setup survives a round trip; what is cut, garbled or has ranks that cannot be is refused. */
#include "wire/setup.h"

#include <errno.h>
#include <string.h>

#include "base/random.h"
#include "tap.h"

enum { ROOM = 256, SPEC = 9 };

static struct setup sample(void) {
    return (struct setup){.run = (uint64_t)5 << 16 | 1,
                          .first = 8,
                          .count = 4,
                          .size = 12,
                          .window = 65536,
                          .node = 2,
                          .array = 77,
                          .node_name = bytes_from_str("n7"),
                          .node_list = bytes_from_str("n[3,5,7]"),
                          .spec = bytes_from_str("some spec")};
}

static int check_ranks(uint32_t first, uint32_t count, uint32_t size) {
    uint8_t bytes[ROOM];
    struct setup s = sample(), back;
    s.first = first;
    s.count = count;
    s.size = size;
    long len = setup_encode(&s, room_of(bytes, sizeof bytes));
    CHECK(len > 0);
    return setup_decode(bytes_of(bytes, (size_t)len), &back);
}

static void test_round_trip(void) {
    uint8_t one[ROOM], two[ROOM];
    struct setup s = sample(), back;
    long len = setup_encode(&s, room_of(one, sizeof one));
    CHECK_EQ(setup_decode(bytes_of(one, (size_t)len), &back), 0);
    CHECK(back.run == s.run && back.first == 8 && back.count == 4 && back.size == 12);
    CHECK(back.window == 65536 && back.node == 2 && back.array == 77);
    CHECK(back.node_name.len == 2 && memcmp(back.node_name.at, "n7", 2) == 0);
    CHECK(back.node_list.len == 8 && memcmp(back.node_list.at, "n[3,5,7]", 8) == 0);
    CHECK(back.spec.len == SPEC && memcmp(back.spec.at, "some spec", SPEC) == 0);
    CHECK_EQ(setup_encode(&back, room_of(two, sizeof two)), len);
    CHECK(memcmp(one, two, (size_t)len) == 0);
}

/* The spec has no length of its own: whoever reads it will see that it is cut. */
static void test_truncation(void) {
    uint8_t bytes[ROOM];
    struct setup s = sample(), back;
    long len = setup_encode(&s, room_of(bytes, sizeof bytes));
    for (size_t cut = 0; cut < (size_t)len; cut++)
        CHECK_EQ(setup_decode(bytes_of(bytes, cut), &back),
                 cut + SPEC < (size_t)len ? -EBADMSG : 0);
    for (size_t room = 0; room < (size_t)len; room++)
        CHECK_EQ(setup_encode(&s, room_of(bytes, room)), -ENOBUFS);
}

static void test_ranks_must_be_of_the_run(void) {
    CHECK_EQ(check_ranks(0, 1, 1), 0);
    CHECK_EQ(check_ranks(11, 1, 12), 0);
    CHECK_EQ(check_ranks(0, 0, 12), -EBADMSG);
    CHECK_EQ(check_ranks(0, 13, 12), -EBADMSG);
    CHECK_EQ(check_ranks(12, 1, 12), -EBADMSG);
    CHECK_EQ(check_ranks(UINT32_MAX, 2, 12), -EBADMSG); /* must not wrap */
    CHECK_EQ(check_ranks(1, UINT32_MAX, UINT32_MAX), -EBADMSG);
}

static int check_listed(uint32_t a, uint32_t b, uint32_t first) {
    uint8_t bytes[ROOM], ranks[2 * SETUP_RANK_BYTES];
    struct setup s = sample(), back;
    store_le32(ranks, a);
    store_le32(ranks + SETUP_RANK_BYTES, b);
    s.first = first;
    s.count = 2;
    s.ranks = bytes_of(ranks, sizeof ranks);
    long len = setup_encode(&s, room_of(bytes, sizeof bytes));
    int status = setup_decode(bytes_of(bytes, (size_t)len), &back);
    if (status == 0) {
        CHECK(setup_rank(&back, 0) == a && setup_rank(&back, 1) == b);
        CHECK(setup_has(&back, a) && setup_has(&back, b) && !setup_has(&back, a + 1));
    }
    return status;
}

static void test_ranks_that_do_not_follow_each_other(void) {
    struct setup s = sample();
    CHECK(setup_rank(&s, 3) == 11 && setup_has(&s, 11) && !setup_has(&s, 12) && !setup_has(&s, 7));
    CHECK_EQ(check_listed(1, 7, 1), 0);
    CHECK_EQ(check_listed(1, 7, 2), -EBADMSG);
    CHECK_EQ(check_listed(7, 1, 7), -EBADMSG);
    CHECK_EQ(check_listed(7, 7, 7), -EBADMSG);
    CHECK_EQ(check_listed(1, 12, 1), -EBADMSG);
}

static void test_garbage_never_hurts(void) {
    uint8_t bytes[ROOM];
    struct setup s = sample(), back;
    struct random r;
    random_init(&r, 4);
    for (int round = 0; round < 20000; round++) {
        size_t len = random_below(&r, sizeof bytes);
        if (round % 2 == 0) {
            len = (size_t)setup_encode(&s, room_of(bytes, sizeof bytes));
            bytes[random_below(&r, len)] = (uint8_t)random_below(&r, 256);
        } else {
            random_bytes(&r, bytes, len);
        }
        int status = setup_decode(bytes_of(bytes, len), &back);
        CHECK(status == -EBADMSG ||
              (status == 0 && back.count > 0 && (uint64_t)back.first + back.count <= back.size));
    }
}

int main(void) {
    TEST(test_round_trip);
    TEST(test_truncation);
    TEST(test_ranks_must_be_of_the_run);
    TEST(test_ranks_that_do_not_follow_each_other);
    TEST(test_garbage_never_hurts);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* What a node says of itself, written and read. */
#include "wire/vitals.h"

#include <errno.h>
#include <string.h>

#include "base/random.h"
#include "tap.h"

enum { ROOM = 256 };

static struct vitals usual = {
    .gauge = {.load_x100 = 312, .memory_bytes = 256ULL << 30, .memory_used = 100ULL << 30}};
static const struct vitals_run working = {.run = 1234ULL << 16 | 1,
                                          .usage = {.user_ns = 3600 * NS_PER_S,
                                                    .system_ns = 20 * NS_PER_S,
                                                    .read_bytes = 3 * GIB,
                                                    .written_bytes = 90 * MIB,
                                                    .peak_bytes = 2 * GIB}};

static size_t write_one(uint8_t out[ROOM], uint32_t runs) {
    long len = vitals_begin(&usual, room_of(out, ROOM));
    CHECK(len > 0);
    size_t at = (size_t)len;
    for (uint32_t i = 0; i < runs; i++) {
        len = vitals_add(&working, room_of(out + at, ROOM - at));
        CHECK(len > 0);
        at += (size_t)len;
    }
    return at;
}

static void test_there_and_back(void) {
    uint8_t bytes[ROOM];
    struct vitals g;
    struct vitals_run r;
    size_t at, len = write_one(bytes, 2);
    CHECK_EQ(vitals_read(bytes_of(bytes, len), &g, &at), 0);
    CHECK_EQ(g.gauge.load_x100, 312);
    CHECK_EQ(g.gauge.memory_bytes, 256ULL << 30);
    CHECK_EQ(g.gauge.memory_used, 100ULL << 30);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(vitals_next(bytes_of(bytes, len), &at, 7, &r), 1);
        CHECK_EQ(r.run, working.run);
        CHECK_EQ(r.usage.peak_node, 7);
        r.usage.peak_node = 0;
        CHECK(usage_same(&r.usage, &working.usage));
    }
    CHECK_EQ(vitals_next(bytes_of(bytes, len), &at, 7, &r), 0);
}

static void test_small(void) {
    uint8_t bytes[ROOM];
    CHECK(write_one(bytes, 0) <= 9);
    CHECK(write_one(bytes, 1) <= 9 + 24);
}

static void test_owners(void) {
    const uint32_t marks[] = {0, 1, 77, UINT32_MAX};
    for (uint32_t i = 0; i < 8; i++) {
        uint8_t bytes[ROOM];
        struct vitals g, v = {.watch = marks[i / 2], .active = i % 2 == 1};
        size_t at = 0;
        long len = vitals_begin(&v, room_of(bytes, ROOM));
        if (i == 1) { /* nobody is active whom it does not know of */
            CHECK_EQ(len, -ENOBUFS);
            continue;
        }
        CHECK(len > 0 && vitals_read(bytes_of(bytes, (size_t)len), &g, &at) == 0);
        CHECK(at == (size_t)len && g.watch == v.watch && g.active == v.active);
    }
}

static void test_no_room(void) {
    uint8_t bytes[ROOM];
    CHECK_EQ(vitals_begin(&usual, room_of(bytes, 3)), -ENOBUFS);
    CHECK_EQ(vitals_add(&working, room_of(bytes, 10)), -ENOBUFS);
}

/* Whatever it is, reading ends; what is cut off in the midst of a run is no run. */
static void test_nonsense(void) {
    struct random random;
    uint8_t bytes[ROOM];
    struct vitals g;
    struct vitals_run r;
    size_t at, len = write_one(bytes, 1);
    CHECK_EQ(vitals_read(bytes_of(bytes, len - 1), &g, &at), 0);
    CHECK_EQ(vitals_next(bytes_of(bytes, len - 1), &at, 0, &r), -EBADMSG);
    CHECK_EQ(vitals_read(bytes_of(bytes, 0), &g, &at), -EBADMSG);
    memset(bytes, 0xFF, sizeof bytes); /* a number without an end */
    CHECK_EQ(vitals_read(bytes_of(bytes, sizeof bytes), &g, &at), -EBADMSG);
    random_init(&random, 3);
    for (int i = 0; i < 2000; i++) {
        random_bytes(&random, bytes, sizeof bytes);
        if (vitals_read(bytes_of(bytes, sizeof bytes), &g, &at) < 0)
            continue;
        while (vitals_next(bytes_of(bytes, sizeof bytes), &at, 0, &r) == 1)
            continue;
        CHECK(at <= sizeof bytes);
    }
}

int main(void) {
    TEST(test_there_and_back);
    TEST(test_small);
    TEST(test_owners);
    TEST(test_no_room);
    TEST(test_nonsense);
    return tap_finish();
}

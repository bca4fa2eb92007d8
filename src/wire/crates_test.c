/* SPDX-License-Identifier: MIT */
/* Crates survive a round trip; what is cut is refused. */
#include "wire/crates.h"

#include <errno.h>

#include "tap.h"

static size_t sample(uint8_t *out, size_t cap) {
    uint8_t ranges[2 * CRATE_RANGE_BYTES];
    crate_range_store(ranges, (struct rank_range){.first = 0, .count = 1});
    crate_range_store(ranges + CRATE_RANGE_BYTES, (struct rank_range){.first = 7, .count = 2});
    struct crate p = {.ranges = bytes_of(ranges, sizeof ranges), .copy = bytes_from_str("one")};
    long one = crate_store(&p, room_of(out, cap));
    CHECK(one > 0);
    p = (struct crate){.ranges = bytes_of(ranges, CRATE_RANGE_BYTES),
                       .copy = bytes_from_str("the other")};
    long two = crate_store(&p, room_of(out + one, cap - (size_t)one));
    CHECK(two > 0);
    return (size_t)(one + two);
}

static void test_round_trip(void) {
    uint8_t bytes[128];
    struct crate p;
    struct rank_range r;
    struct bytes all = bytes_of(bytes, sample(bytes, sizeof bytes));
    CHECK_EQ(crate_at(all, 0, &p), 1);
    CHECK(bytes_equal(p.copy, bytes_from_str("one")));
    CHECK(crate_range_load(&p, 1, &r));
    CHECK(r.first == 7 && r.count == 2);
    CHECK(!crate_range_load(&p, 2, &r));
    CHECK_EQ(crate_at(all, 1, &p), 1);
    CHECK(bytes_equal(p.copy, bytes_from_str("the other")));
    CHECK(crate_range_load(&p, 0, &r) && r.first == 0 && r.count == 1);
    CHECK_EQ(crate_at(all, 2, &p), 0);
    CHECK_EQ(crate_at((struct bytes){0}, 0, &p), 0);
}

static void test_what_is_cut_is_refused(void) {
    uint8_t bytes[128], small[8];
    struct crate p;
    size_t len = sample(bytes, sizeof bytes), first = 0;
    CHECK_EQ(crate_next(bytes_of(bytes, len), &first, &p), 1);
    for (size_t cut = 1; cut < len; cut++) {
        int r = crate_at(bytes_of(bytes, cut), 1, &p);
        CHECK_EQ(r, cut == first ? 0 : -EBADMSG);
    }
    CHECK_EQ(crate_store(&p, room_of(small, sizeof small)), -ENOBUFS);
    struct crate empty = {.copy = bytes_from_str("for nobody")};
    long n = crate_store(&empty, room_of(bytes, sizeof bytes));
    CHECK_EQ(crate_at(bytes_of(bytes, (size_t)n), 0, &p), -EBADMSG);
}

int main(void) {
    TEST(test_round_trip);
    TEST(test_what_is_cut_is_refused);
    return tap_finish();
}

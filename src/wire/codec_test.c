/* SPDX-License-Identifier: MIT */
/* The codec's promises: little-endian, total, and silent after the first failure. */
#include "wire/codec.h"

#include <string.h>

#include "base/random.h"
#include "tap.h"

static void test_little_endian(void) {
    uint8_t out[16];
    struct codec c = {.encoding = true, .out = out, .len = sizeof out};
    uint16_t a = 0x0102;
    uint32_t b = 0x03040506;
    uint64_t d = 0x0708090a0b0c0d0e;
    codec_u16(&c, &a);
    codec_u32(&c, &b);
    codec_u64(&c, &d);
    static const uint8_t want[] = {2, 1, 6, 5, 4, 3, 14, 13, 12, 11, 10, 9, 8, 7};
    CHECK_EQ(c.at, sizeof want);
    CHECK(memcmp(out, want, sizeof want) == 0);
}

static void test_failure_sticks(void) {
    const uint8_t in[3] = {1, 2, 3};
    struct codec c = {.in = in, .len = sizeof in};
    uint32_t v = 9;
    uint8_t b = 9;
    codec_u32(&c, &v);
    CHECK(c.failed);
    CHECK_EQ(v, 0);
    codec_u8(&c, &b);
    CHECK_EQ(b, 0);
    CHECK_EQ(c.at, 0);
}

/* Sets of every density and universe come back equal, in whichever form is shorter. */
static void test_sets_round_trip(void) {
    static uint64_t store[2][512];
    static uint8_t out[8192];
    struct random r;
    random_init(&r, 3);
    for (int round = 0; round < 2000; round++) {
        uint32_t universe = (uint32_t)random_between(&r, 1, 3000);
        struct nodeset a, b;
        nodeset_init(&a, universe, store[0]);
        nodeset_init(&b, universe, store[1]);
        uint64_t members = random_below(&r, random_chance(&r, 1, 2) ? 8 : universe + 1);
        for (uint64_t i = 0; i < members; i++)
            nodeset_add(&a, (uint32_t)random_below(&r, universe));
        struct codec e = {.encoding = true, .out = out, .len = sizeof out};
        codec_set(&e, &a);
        CHECK(!e.failed);
        CHECK(e.at <= 69 || e.at <= (size_t)universe / 8 + 9);
        struct codec d = {.in = out, .len = e.at};
        codec_set(&d, &b);
        CHECK(!d.failed && d.at == e.at);
        CHECK(nodeset_equal(&a, &b));
    }
}

static void test_bad_sets(void) {
    uint64_t store[8];
    struct nodeset s;
    nodeset_init(&s, 100, store);
    static const uint8_t touching[] = {0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0,
                                       0, 0, 3, 0, 0, 0, 4, 0, 0, 0};
    static const uint8_t backwards[] = {0, 1, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0};
    static const uint8_t huge[] = {0, 255, 255, 255, 255};
    static const uint8_t form[] = {2};
    uint8_t bitmap[17] = {1};
    bitmap[14] = 0x80; /* node 111 of 100 */
    const struct bytes bad[] = {bytes_of(touching, sizeof touching),
                                bytes_of(backwards, sizeof backwards), bytes_of(huge, sizeof huge),
                                bytes_of(form, sizeof form), bytes_of(bitmap, sizeof bitmap)};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct codec c = {.in = bad[i].at, .len = bad[i].len};
        codec_set(&c, &s);
        CHECK(c.failed);
        CHECK(nodeset_empty(&s));
    }
}

int main(void) {
    TEST(test_little_endian);
    TEST(test_failure_sticks);
    TEST(test_sets_round_trip);
    TEST(test_bad_sets);
    return tap_finish();
}

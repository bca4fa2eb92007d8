/* SPDX-License-Identifier: MIT */
/*
 * Random numbers: the published sequence of xoshiro256**, bounds, independence of forks.
 */
#include "base/random.h"

#include "tap.h"

static void test_known_sequence(void) {
    static const uint64_t expected[] = {11520, 0, 1509978240, 1215971899390074240};
    struct random r = {{1, 2, 3, 4}};
    for (int i = 0; i < 4; i++)
        CHECK_EQ(random_u64(&r), expected[i]);
}

static void test_known_seeding(void) {
    struct random r;
    random_init(&r, 1234567);
    CHECK_EQ(r.s[0], 6457827717110365317u);
    CHECK_EQ(r.s[1], 3203168211198807973u);
    CHECK_EQ(r.s[2], 9817491932198370423u);
    CHECK_EQ(r.s[3], 4593380528125082431u);
}

static void test_below_is_even(void) {
    struct random r;
    uint32_t seen[7] = {0};
    random_init(&r, 5);
    for (int i = 0; i < 70000; i++)
        seen[random_below(&r, 7)]++;
    for (int i = 0; i < 7; i++)
        CHECK(seen[i] > 9600 && seen[i] < 10400);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(random_below(&r, 1), 0);
    uint64_t huge = ((uint64_t)1 << 63) + 1; /* nearly half of the draws are rejected */
    for (int i = 0; i < 100; i++)
        CHECK(random_below(&r, huge) < huge);
}

static void test_between(void) {
    struct random r;
    random_init(&r, 6);
    bool low = false, high = false;
    for (int i = 0; i < 1000; i++) {
        uint64_t v = random_between(&r, 10, 13);
        CHECK(v >= 10 && v <= 13);
        low = low || v == 10;
        high = high || v == 13;
    }
    CHECK(low && high);
    CHECK_EQ(random_between(&r, 9, 9), 9);
    uint64_t any = random_between(&r, 0, UINT64_MAX);
    CHECK(any != random_between(&r, 0, UINT64_MAX));
}

static void test_chance(void) {
    struct random r;
    random_init(&r, 8);
    int hits = 0;
    for (int i = 0; i < 10000; i++) {
        hits += random_chance(&r, 1, 4);
        CHECK(!random_chance(&r, 0, 3));
        CHECK(random_chance(&r, 3, 3));
    }
    CHECK(hits > 2300 && hits < 2700);
}

static void test_fork(void) {
    struct random r, same;
    random_init(&r, 9);
    same = r;
    struct random a = random_fork(&r, 1), b = random_fork(&r, 2), c = random_fork(&r, 1);
    CHECK_EQ(random_u64(&r), random_u64(&same)); /* forking moves nothing */
    uint64_t first = random_u64(&a);
    CHECK_EQ(first, random_u64(&c));
    CHECK(first != random_u64(&b));
    struct random later = random_fork(&r, 1);
    CHECK(first != random_u64(&later));
}

static void test_bytes(void) {
    struct random r, same;
    uint8_t a[13], b[16];
    random_init(&r, 10);
    same = r;
    memset(b, 0xEE, sizeof b);
    random_bytes(&r, a, sizeof a);
    random_bytes(&same, b, 13);
    CHECK_EQ(memcmp(a, b, 13), 0);
    CHECK_EQ(b[13], 0xEE);
    random_init(&same, 10);
    uint64_t v = random_u64(&same);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(a[i], (uint8_t)(v >> (8 * i)));
    random_bytes(&r, NULL, 0);
}

int main(void) {
    TEST(test_known_sequence);
    TEST(test_known_seeding);
    TEST(test_below_is_even);
    TEST(test_between);
    TEST(test_chance);
    TEST(test_fork);
    TEST(test_bytes);
    return tap_finish();
}

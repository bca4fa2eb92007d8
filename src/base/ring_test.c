/* SPDX-License-Identifier: MIT */
/*
 * Rings: order, bounds, wrapping around with a capacity that is no power of two.
 */
#include "base/ring.h"

#include <errno.h>

#include "base/random.h"
#include "tap.h"

static void test_bounds(void) {
    uint32_t storage[3], v = 0;
    struct ring r;
    ring_init(&r, storage, sizeof v, 3);
    CHECK(ring_empty(&r) && !ring_full(&r));
    CHECK_EQ(ring_pop(&r, &v), -ENOENT);
    CHECK(!ring_at(&r, 0));
    for (uint32_t i = 1; i <= 3; i++)
        CHECK_EQ(ring_push(&r, &i), 0);
    CHECK(ring_full(&r));
    CHECK_EQ(ring_push(&r, &v), -ENOSPC);
    CHECK_EQ(*(uint32_t *)ring_at(&r, 2), 3);
    CHECK(!ring_at(&r, 3));
    CHECK_EQ(ring_pop(&r, NULL), 0);
    CHECK_EQ(ring_pop(&r, &v), 0);
    CHECK_EQ(v, 2);
    ring_clear(&r);
    CHECK(ring_empty(&r));
}

static void test_random_order(void) {
    uint64_t storage[7];
    struct ring r;
    struct random random;
    ring_init(&r, storage, sizeof storage[0], 7);
    random_init(&random, 1);
    uint64_t pushed = 0, popped = 0;
    for (int i = 0; i < 10000; i++) {
        if (random_chance(&random, 1, 2)) {
            int e = ring_push(&r, &pushed);
            CHECK_EQ(e, pushed - popped == 7 ? -ENOSPC : 0);
            pushed += e == 0;
        } else {
            uint64_t v = 0;
            int e = ring_pop(&r, &v);
            CHECK_EQ(e, pushed == popped ? -ENOENT : 0);
            if (e == 0)
                CHECK_EQ(v, popped++);
        }
        CHECK_EQ(ring_count(&r), pushed - popped);
        for (uint32_t k = 0; k < ring_count(&r); k++)
            CHECK_EQ(*(uint64_t *)ring_at(&r, k), popped + k);
    }
}

static void test_no_room(void) {
    struct ring r;
    int v = 0;
    ring_init(&r, NULL, sizeof v, 0);
    CHECK_EQ(ring_push(&r, &v), -ENOSPC);
    CHECK_EQ(ring_pop(&r, &v), -ENOENT);
    CHECK_EQ(ring_bytes(24, 100), 2400);
}

int main(void) {
    TEST(test_bounds);
    TEST(test_random_order);
    TEST(test_no_room);
    return tap_finish();
}

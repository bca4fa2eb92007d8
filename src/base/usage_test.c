/* SPDX-License-Identifier: MIT */
/* Usages are the same in whichever order they are combined. */
#include "base/usage.h"

#include "base/random.h"
#include "tap.h"

enum { NODES = 40, ROUNDS = 200 };

static struct usage any(struct random *r, uint32_t node) {
    struct usage u = {.user_ns = random_below(r, 1000)};
    u.system_ns = random_below(r, 1000);
    u.read_bytes = random_below(r, 5);
    u.written_bytes = random_below(r, 5);
    u.peak_bytes = random_below(r, 4); /* often the same, often none */
    u.node_bytes = random_below(r, 3);
    usage_place(&u, node);
    return u;
}

/* Joins all by twos, whichever meet, until one is left. */
static struct usage join(struct random *r, const struct usage *all, uint32_t count) {
    struct usage part[NODES];
    for (uint32_t i = 0; i < count; i++)
        part[i] = all[i];
    while (count > 1) {
        uint32_t a = (uint32_t)random_below(r, count);
        uint32_t b = (uint32_t)random_below(r, count - 1);
        b += b >= a;
        usage_add(&part[a], &part[b]);
        part[b] = part[--count];
    }
    return part[0];
}

static void test_any_order(void) {
    struct random r;
    random_init(&r, 8);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct usage all[NODES], one_by_one = {0};
        uint32_t count = (uint32_t)random_between(&r, 1, NODES);
        for (uint32_t i = 0; i < count; i++) {
            all[i] = any(&r, (uint32_t)random_below(&r, NODES));
            usage_add(&one_by_one, &all[i]);
        }
        struct usage joined = join(&r, all, count);
        CHECK(usage_same(&joined, &one_by_one));
    }
}

static void test_sums_and_largest(void) {
    struct usage a = {.user_ns = 1, .system_ns = 2, .peak_bytes = 7},
                 b = {.user_ns = 10, .read_bytes = 3, .written_bytes = 4, .peak_bytes = 9},
                 none = {0};
    usage_place(&a, 5);
    usage_place(&b, 6);
    struct usage before = a;
    usage_add(&a, &none);
    CHECK(usage_same(&a, &before));
    usage_add(&a, &b);
    CHECK_EQ(a.user_ns, 11);
    CHECK_EQ(a.system_ns, 2);
    CHECK_EQ(a.read_bytes, 3);
    CHECK_EQ(a.written_bytes, 4);
    CHECK_EQ(a.peak_bytes, 9);
    CHECK_EQ(a.peak_node, 6);
    CHECK_EQ(a.node_bytes, 0);
    CHECK_EQ(a.node_node, 0);
}

int main(void) {
    TEST(test_any_order);
    TEST(test_sums_and_largest);
    return tap_finish();
}

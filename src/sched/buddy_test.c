/* SPDX-License-Identifier: MIT */
/* The buddy tree against sums over an array, for any number of nodes. */
#include "sched/buddy.h"

#include "base/random.h"
#include "tap.h"

enum { NODES = 100 };

static void test_levels(void) {
    uint64_t words[2 * NODES + 16];
    struct buddy b;
    buddy_init(&b, 6, words);
    CHECK_EQ(buddy_words(6), 6 + 3 + 2 + 1);
    CHECK_EQ(buddy_level(&b, 1), 0);
    CHECK_EQ(buddy_level(&b, 2), 1);
    CHECK_EQ(buddy_level(&b, 3), 2);
    CHECK_EQ(buddy_level(&b, 5), 3);
    CHECK_EQ(buddy_blocks(&b, 2), 2);
    CHECK_EQ(buddy_first(2, 1), 4);
    CHECK_EQ(buddy_last(&b, 2, 1), 5); /* cut off */
    CHECK_EQ(buddy_last(&b, 3, 0), 5);
}

static void check_sums(const struct buddy *b, const uint64_t *sums) {
    for (uint32_t level = 0; level < b->levels; level++)
        for (uint32_t i = 0; i < buddy_blocks(b, level); i++) {
            uint64_t sum = 0;
            for (uint32_t n = buddy_first(level, i); n <= buddy_last(b, level, i); n++)
                sum += sums[n];
            CHECK_EQ(buddy_load(b, level, i), sum);
        }
}

static void check_below(const struct buddy *b, uint64_t load) {
    for (uint32_t level = 0; level < b->levels; level++)
        for (uint32_t i = 0, from = 0; i < buddy_blocks(b, level); i++) {
            if (buddy_load(b, level, i) >= load)
                continue;
            CHECK_EQ(buddy_below(b, level, from, load), i);
            from = i + 1;
        }
    CHECK_EQ(buddy_below(b, 0, buddy_blocks(b, 0), UINT64_MAX), BUDDY_NONE);
}

static void test_loads(void) {
    uint64_t words[2 * NODES + 16], other[2 * NODES + 16], sums[NODES];
    struct random r;
    random_init(&r, 1);
    for (uint32_t nodes = 1; nodes <= NODES; nodes++) {
        struct buddy b, many;
        CHECK(buddy_words(nodes) <= sizeof words / sizeof words[0]);
        buddy_init(&b, nodes, words);
        buddy_init(&many, nodes, other);
        memset(sums, 0, sizeof sums);
        for (int i = 0; i < 10; i++) {
            uint32_t first = (uint32_t)random_below(&r, nodes);
            uint32_t last = (uint32_t)random_between(&r, first, nodes - 1);
            buddy_add(&b, first, last, 3);
            buddy_note(&many, first, last, 3);
            for (uint32_t n = first; n <= last; n++)
                sums[n] += 3;
        }
        buddy_reckon(&many);
        check_sums(&b, sums);
        check_sums(&many, sums);
        for (uint64_t load = 0; load < 40; load += 3)
            check_below(&many, load);
        buddy_remove(&many, 0, nodes - 1, 1);
        for (uint32_t n = 0; n < nodes; n++)
            sums[n]--;
        check_sums(&many, sums);
        CHECK_EQ(buddy_blocks(&b, b.levels - 1), 1);
    }
}

int main(void) {
    TEST(test_levels);
    TEST(test_loads);
    return tap_finish();
}

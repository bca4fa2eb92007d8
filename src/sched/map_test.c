/* SPDX-License-Identifier: MIT */
/* Which rank is on which node: every small map against what a map is. */
#include "sched/map.h"

#include "base/random.h"
#include "tap.h"

/* Ranks of all nodes are all ranks, each once, ascending on each node; and all functions agree. */
static void check(const struct map *m) {
    uint32_t seen = 0;
    CHECK(map_good(m));
    for (uint32_t place = 0; place < m->nodes; place++) {
        uint32_t count = 0, before = 0;
        for (uint32_t r = map_first(m, place); r < m->procs; r = map_next(m, place, r)) {
            CHECK_EQ(map_place(m, r), place);
            CHECK(count == 0 || r > before);
            before = r;
            count++;
        }
        CHECK_EQ(map_count(m, place), count);
        seen += count;
    }
    CHECK_EQ(seen, m->procs);
}

static void test_block_and_cyclic(void) {
    for (uint32_t nodes = 1; nodes <= 9; nodes++)
        for (uint32_t procs = nodes; procs <= 40; procs++) {
            check(&(struct map){.kind = MAP_BLOCK, .nodes = nodes, .procs = procs});
            check(&(struct map){.kind = MAP_CYCLIC, .nodes = nodes, .procs = procs});
        }
    struct map m = {.kind = MAP_CYCLIC, .nodes = 3, .procs = 8};
    CHECK_EQ(map_place(&m, 4), 1);
    CHECK_EQ(map_count(&m, 2), 2);
}

static void test_lists(void) {
    struct random r;
    uint8_t places[40 * MAP_PLACE_BYTES];
    random_init(&r, 1);
    for (int round = 0; round < 200; round++) {
        uint32_t nodes = (uint32_t)random_below(&r, 8) + 1;
        uint32_t procs = nodes + (uint32_t)random_below(&r, 32);
        for (uint32_t i = 0; i < procs; i++)
            store_le32(places + (size_t)i * MAP_PLACE_BYTES, (uint32_t)random_below(&r, nodes));
        check(&(struct map){.kind = MAP_LIST,
                            .nodes = nodes,
                            .procs = procs,
                            .places = bytes_of(places, (size_t)procs * MAP_PLACE_BYTES)});
    }
}

static void test_bad_ones(void) {
    uint8_t places[2 * MAP_PLACE_BYTES] = {0};
    struct map m = {
        .kind = MAP_LIST, .nodes = 2, .procs = 2, .places = bytes_of(places, sizeof places)};
    CHECK(map_good(&m));
    store_le32(places, 2);
    CHECK(!map_good(&m)); /* a node that there is not */
    store_le32(places, 1);
    m.procs = 3;
    CHECK(!map_good(&m)); /* a rank of which nothing is said */
    m = (struct map){.kind = MAP_BLOCK, .nodes = 2, .procs = 1};
    CHECK(!map_good(&m));
    m = (struct map){.kind = MAP_CYCLIC};
    CHECK(!map_good(&m));
    CHECK_STR(map_name(MAP_CYCLIC), "cyclic");
}

int main(void) {
    TEST(test_block_and_cyclic);
    TEST(test_lists);
    TEST(test_bad_ones);
    return tap_finish();
}

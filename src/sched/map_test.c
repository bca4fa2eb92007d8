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

/* Against each rank by itself, on nodes that do not begin with 0 and have gaps. */
static void check_nodes(const struct map *m, uint32_t first, uint32_t count) {
    uint64_t storage[3][8];
    struct nodeset nodes, expected, found;
    nodeset_init(&nodes, 64, storage[0]);
    nodeset_init(&expected, 64, storage[1]);
    nodeset_init(&found, 64, storage[2]);
    for (uint32_t place = 0; place < m->nodes; place++)
        nodeset_add(&nodes, 3 + place * 2 + place / 4);
    for (uint32_t rank = first; rank < m->procs && rank - first < count; rank++)
        nodeset_add(&expected, nodeset_at(&nodes, map_place(m, rank)));
    map_nodes_of(m, first, count, &nodes, &found);
    CHECK(nodeset_equal(&expected, &found));
}

static void test_nodes_of_ranks(void) {
    uint8_t places[12 * MAP_PLACE_BYTES];
    for (uint32_t i = 0; i < 12; i++)
        store_le32(places + (size_t)i * MAP_PLACE_BYTES, i * i % 5);
    for (uint32_t nodes = 1; nodes <= 12; nodes++)
        for (uint32_t first = 0; first <= 13; first++)
            for (uint32_t count = 0; count <= 13; count++) {
                check_nodes(&(struct map){.kind = MAP_BLOCK, .nodes = nodes, .procs = 12}, first,
                            count);
                check_nodes(&(struct map){.kind = MAP_CYCLIC, .nodes = nodes, .procs = 12}, first,
                            count);
                check_nodes(&(struct map){.kind = MAP_LIST,
                                          .nodes = 5,
                                          .procs = 12,
                                          .places = bytes_of(places, sizeof places)},
                            first, count);
            }
    check_nodes(&(struct map){.kind = MAP_BLOCK, .nodes = 3, .procs = 12}, UINT32_MAX, UINT32_MAX);
    check_nodes(&(struct map){.kind = MAP_CYCLIC, .nodes = 3, .procs = 12}, 2, UINT32_MAX);
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

/* Some nodes in sections, in any order of places. */
struct sample {
    uint32_t nodes, procs, count;
    uint32_t section_procs[MAP_SECTIONS_MAX];
    uint16_t section_of[32];
    uint8_t bytes[512];
    size_t len;
};

static void draw(struct random *r, struct sample *s) {
    uint64_t storage[8];
    struct nodeset all;
    *s = (struct sample){.count = 1 + (uint32_t)random_below(r, MAP_SECTIONS_MAX)};
    s->nodes = s->count + (uint32_t)random_below(r, 16);
    uint32_t nodes_in[MAP_SECTIONS_MAX] = {0};
    for (uint32_t n = 0; n < s->nodes; n++) { /* each has one */
        s->section_of[n] = (uint16_t)(n < s->count ? n : random_below(r, s->count));
        nodes_in[s->section_of[n]]++;
    }
    for (uint32_t n = 0; n + 1 < s->nodes; n++) {
        uint32_t other = n + (uint32_t)random_below(r, s->nodes - n);
        uint16_t keep = s->section_of[n];
        s->section_of[n] = s->section_of[other];
        s->section_of[other] = keep;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        s->section_procs[i] = nodes_in[i] + (uint32_t)random_below(r, 10);
        s->procs += s->section_procs[i];
    }
    nodeset_init(&all, 64, storage);
    nodeset_add_range(&all, 0, s->nodes - 1);
    long len = map_sections_store(s->section_procs, s->count, &all, s->section_of,
                                  room_of(s->bytes, sizeof s->bytes));
    CHECK(len > 0);
    s->len = (size_t)len;
}

/* Ranks of the first section come first, and are on its nodes. */
static void check_sections(const struct map *m, const struct sample *s) {
    uint32_t rank = 0;
    for (uint32_t i = 0; i < s->count; i++)
        for (uint32_t k = 0; k < s->section_procs[i]; k++, rank++)
            CHECK_EQ(s->section_of[map_place(m, rank)], i);
    for (uint32_t n = 0; n < s->nodes; n++)
        CHECK_EQ(map_section(m, n), s->section_of[n]);
}

static void test_sections(void) {
    struct random r;
    random_init(&r, 2);
    for (int round = 0; round < 300; round++) {
        struct sample s;
        draw(&r, &s);
        struct map m = {.kind = round % 2 == 0 ? MAP_BLOCK : MAP_CYCLIC,
                        .nodes = s.nodes,
                        .procs = s.procs,
                        .sections = bytes_of(s.bytes, s.len)};
        check(&m);
        check_sections(&m, &s);
        check_nodes(&m, (uint32_t)random_below(&r, s.procs), (uint32_t)random_below(&r, 20));
    }
}

/* Whatever they are: they are refused, or every function gets along with them. */
static void test_bad_sections(void) {
    struct random r;
    random_init(&r, 3);
    for (int round = 0; round < 5000; round++) {
        struct sample s;
        draw(&r, &s);
        s.bytes[random_below(&r, s.len)] = (uint8_t)random_below(&r, 256);
        struct map m = {
            .kind = MAP_BLOCK,
            .nodes = s.nodes,
            .procs = s.procs,
            .sections =
                bytes_of(s.bytes, random_below(&r, 2) == 0 ? s.len : random_below(&r, s.len) + 1)};
        if (map_good(&m))
            check(&m);
    }
    uint8_t none = 0;
    struct map m = {.kind = MAP_BLOCK, .nodes = 1, .procs = 1, .sections = bytes_of(&none, 1)};
    CHECK(!map_good(&m));
}

int main(void) {
    TEST(test_block_and_cyclic);
    TEST(test_lists);
    TEST(test_nodes_of_ranks);
    TEST(test_bad_ones);
    TEST(test_sections);
    TEST(test_bad_sections);
    return tap_finish();
}

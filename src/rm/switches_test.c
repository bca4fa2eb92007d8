/* SPDX-License-Identifier: MIT */
/* Switches travel as runs and come back the same; a plan that knows them crosses as few links as it can. */
#include "rm/switches.h"

#include <string.h>

#include "base/random.h"
#include "tap.h"

enum { NODES = 300 };

static uint32_t of_node[NODES], decoded[NODES], order[NODES], ends[NODES + 1];
static uint64_t storage[(NODES + 63) / 64 + 8];
static uint8_t bytes[NODES * SWITCH_RUN_BYTES];

static struct nodeset everybody(uint32_t count) {
    struct nodeset set;
    nodeset_init(&set, NODES, storage);
    nodeset_add_range(&set, 0, count - 1);
    return set;
}

static void test_runs(void) {
    struct nodeset set = everybody(99);
    for (uint32_t i = 0; i < NODES; i++)
        of_node[i] = 1 + i / 33;
    size_t len = switches_encode(&set, of_node, NODES, room_of(bytes, sizeof bytes));
    CHECK_EQ(len, 3 * SWITCH_RUN_BYTES);
    CHECK(switches_decode(bytes_of(bytes, len), decoded, 99));
    CHECK(memcmp(decoded, of_node, 99 * sizeof *decoded) == 0);
    CHECK(!switches_decode(bytes_of(bytes, len), decoded, 98));
    CHECK(!switches_decode(bytes_of(bytes, len), decoded, 100));
    CHECK(!switches_decode(bytes_of(bytes, len - 1), decoded, 99));
    CHECK(!switches_decode(bytes_of(bytes, len - SWITCH_RUN_BYTES), decoded, 99));
    CHECK_EQ(switches_encode(&set, of_node, NODES, room_of(bytes, len - 1)), 0); /* no room */
    memset(of_node, 0, sizeof of_node);
    CHECK_EQ(switches_encode(&set, of_node, NODES, room_of(bytes, sizeof bytes)), 0);
}

static void test_any(void) {
    struct random r;
    random_init(&r, 1);
    for (int round = 0; round < 300; round++) {
        struct nodeset set;
        uint32_t count = 0, expected[NODES];
        nodeset_init(&set, NODES, storage);
        for (uint32_t i = 0; i < NODES; i++) {
            of_node[i] = (uint32_t)random_below(&r, 4);
            if (!random_chance(&r, 1, 3))
                continue;
            nodeset_add(&set, i);
            expected[count++] = i < 250 ? of_node[i] : 0; /* the table knows of no more */
        }
        size_t len = switches_encode(&set, of_node, 250, room_of(bytes, sizeof bytes));
        CHECK(switches_decode(bytes_of(bytes, len), decoded, count));
        CHECK(memcmp(decoded, expected, count * sizeof *decoded) == 0);
        for (size_t i = 0; i < len; i += 3) { /* whatever comes is decoded or refused */
            bytes[i] = (uint8_t)random_below(&r, 256);
            switches_decode(bytes_of(bytes, len), decoded, count);
        }
    }
}

/* Crossings of a plan for three switches with 33 nodes each, by what it knows of them. */
static uint32_t crossed(struct spread s, uint32_t source, bool knows) {
    s.receivers = 99;
    for (uint32_t i = 0; i < 99; i++)
        of_node[i] = 1 + i % 3;
    uint32_t groups = spread_arrange(&s, of_node, source, order, ends);
    for (uint32_t i = 0; i < 99 && !knows; i++)
        order[i] = i;
    if (knows) {
        s.ends = ends;
        s.groups = groups;
    }
    CHECK(spread_valid(&s));
    return switches_crossed(&s, of_node, source, order);
}

static void test_crossings(void) {
    static const struct spread shapes[] = {
        {.shape = SPREAD_CHAIN}, {.shape = SPREAD_KARY, .arity = 2}, {.shape = SPREAD_BINOMIAL}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        CHECK_EQ(crossed(shapes[i], 1, true), 2);
        CHECK_EQ(crossed(shapes[i], 0, true), 3); /* the source is elsewhere */
        CHECK(crossed(shapes[i], 1, false) > 40);
    }
    CHECK(crossed((struct spread){.shape = SPREAD_PAIR}, 1, true) <= 5); /* in both trees */
    CHECK_EQ(crossed((struct spread){.shape = SPREAD_FLAT}, 1, true), 66);
}

int main(void) {
    TEST(test_runs);
    TEST(test_any);
    TEST(test_crossings);
    return tap_finish();
}

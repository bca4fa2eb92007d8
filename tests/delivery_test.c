/* SPDX-License-Identifier: MIT */
/* How long files take to many nodes, in virtual time: the bounds that are promised, and the formula.
 *
 * STORM_DELIVERY=full: the bounds at the sizes that they are promised for, some minutes; otherwise smaller ones. */
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "sim/analytic.h"
#include "sim/delivery.h"
#include "sim/network.h"
#include "tap.h"

static bool full(void) {
    const char *text = getenv("STORM_DELIVERY");
    return text != NULL && strcmp(text, "full") == 0;
}

static struct delivery_config usual(uint32_t nodes, uint64_t bytes) {
    struct delivery_config c = delivery_usual(&network_find("ten-gigabit")->link);
    c.nodes = nodes;
    c.bytes = bytes;
    return c;
}

static bool run(const struct delivery_config *c, struct delivery *ret) {
    char tree[SPREAD_TEXT_MAX];
    if (!CHECK_EQ(delivery_run(c, ret), 0))
        return false;
    spread_format(&ret->spread, tree, sizeof tree);
    printf("# %u nodes, %llu bytes, %s, %u in pieces of about %u, %u slots: bytes %llu us, known "
           "%llu us, bound %llu us\n",
           (unsigned)c->nodes, (unsigned long long)c->bytes, tree, (unsigned)ret->pieces,
           (unsigned)ret->piece_bytes, (unsigned)ret->slots,
           (unsigned long long)ret->bytes_ns / 1000, (unsigned long long)ret->known_ns / 1000,
           (unsigned long long)ret->bound_ns / 1000);
    return true;
}

/* 12 MB to 16,384 nodes: at most a quarter more than a latency for each doubling of nodes and the size through one
 * link; and it is known soon after. Nothing comes twice, nothing is read again. */
static void test_many_nodes(void) {
    struct delivery_config c = usual(full() ? 16384 : 512, 12 * MIB);
    struct delivery d;
    if (!run(&c, &d))
        return;
    CHECK(d.bytes_ns * 100 <= d.bound_ns * 125);
    CHECK(d.known_ns * 100 <= d.bound_ns * 135);
    CHECK_EQ(d.spread.shape, SPREAD_PAIR);
    CHECK_EQ(d.again, 0);
}

/* 1 GB to 1,024 nodes by the pair of trees: at most 15 % more than through one link. */
static void test_bandwidth(void) {
    struct delivery_config c = usual(full() ? 1024 : 64, full() ? GIB : 192 * MIB);
    struct delivery d;
    c.spread.shape = SPREAD_PAIR;
    if (!run(&c, &d))
        return;
    uint64_t through_ns = c.bytes * NS_PER_S / c.link.bytes_per_s;
    CHECK(d.bytes_ns * 100 <= through_ns * 115);
    CHECK_EQ(d.again, 0);
}

/* The formula of storm model, where it applies: links that take much longer for a chunk than processors for a message, and
 * not many levels. Deep chains and faster links meet what it leaves out: receiving, checking, writing. */
static void test_formula(void) {
    static const char *const names[][2] = {{"1gbe", "gigabit"}, {"10gbe", "ten-gigabit"}};
    static const uint32_t arities[] = {0, 1, 2, 4, 8}; /* 0: a pair */
    for (int k = 0; k < 2; k++)
        for (uint32_t nodes = 16; nodes <= 256; nodes *= 4)
            for (int a = 0; a < 5; a++) {
                struct delivery_config c = usual(nodes, 12 * MIB);
                struct delivery d;
                if (arities[a] == 1 && nodes > 16)
                    continue;
                c.link = network_find(names[k][1])->link;
                c.even = true;
                c.piece_bytes = ANALYTIC_CHUNK_BYTES;
                c.spread = (struct spread){.shape = arities[a] == 0 ? SPREAD_PAIR : SPREAD_KARY,
                                           .arity = arities[a]};
                uint64_t model =
                    analytic_transfer_ns(analytic_find(names[k][0]), nodes, c.bytes, arities[a]);
                if (!run(&c, &d))
                    return;
                CHECK(d.bytes_ns * 100 <= model * 110);
                CHECK(d.bytes_ns * 100 >= model * 90);
            }
}

/* However much room receivers have, a source gives to both trees of a pair in turn. */
static void test_trees_are_served_alike(void) {
    struct delivery_config c = usual(3, 16 * MIB);
    struct delivery d;
    c.spread.shape = SPREAD_PAIR;
    c.piece_bytes = 16 * KIB;
    c.slots = 48;
    if (run(&c, &d))
        CHECK(d.bytes_ns * 100 <= d.bound_ns * 110);
}

static void test_the_same_again(void) {
    struct delivery_config c = usual(40, 3 * MIB);
    struct delivery a, b;
    c.start = true;
    if (!run(&c, &a) || !run(&c, &b))
        return;
    CHECK_EQ(a.events, b.events);
    CHECK_EQ(a.heard_ns, b.heard_ns);
    CHECK_EQ(a.bytes_ns, b.bytes_ns);
    CHECK_EQ(a.ended_ns, b.ended_ns);
    CHECK(0 < a.heard_ns && a.heard_ns < a.bytes_ns && a.bytes_ns < a.known_ns);
    CHECK(a.known_ns + c.exec_ns < a.ended_ns);
}

static void test_every_shape(void) {
    for (uint8_t shape = SPREAD_CHAIN; shape < SPREAD_SHAPES; shape++)
        for (uint32_t nodes = 1; nodes <= 33; nodes += 16) {
            struct delivery_config c = usual(nodes, MIB + 1);
            struct delivery d;
            c.spread = (struct spread){.shape = shape, .arity = 3};
            if (!run(&c, &d))
                return;
            CHECK(d.bytes_ns >= d.bound_ns);
            CHECK_EQ(d.again, 0);
        }
}

static struct delivery_config three_switches(uint8_t shape, enum delivery_order order) {
    struct delivery_config c = usual(99, 2 * MIB);
    c.link = network_find("gigabit")->link;
    c.spread = (struct spread){.shape = shape, .arity = 2};
    c.per_switch = 33;
    c.between_bytes_per_s = c.link.bytes_per_s;
    c.order = order;
    return c;
}

/* Three switches with 33 hosts each, in a row. If neighbours in the plan are so in the room, and still more if the plan
 * knows the switches, the links between them carry little. */
static void test_switches(void) {
    static const uint8_t shapes[] = {SPREAD_CHAIN, SPREAD_KARY, SPREAD_BINOMIAL, SPREAD_PAIR};
    for (int i = 0; i < 4; i++) {
        struct delivery d[DELIVERY_ORDERS];
        uint64_t bytes = 2 * MIB;
        for (int order = 0; order < DELIVERY_ORDERS; order++) {
            struct delivery_config c = three_switches(shapes[i], (enum delivery_order)order);
            if (!run(&c, &d[order]))
                return;
            CHECK_EQ(d[order].again, 0);
        }
        CHECK(d[DELIVERY_ACROSS].crossed_bytes > 20 * bytes);
        CHECK(d[DELIVERY_ALONG].crossed_bytes < d[DELIVERY_ACROSS].crossed_bytes / 2);
        CHECK(d[DELIVERY_AWARE].crossed_bytes >= 2 * bytes &&
              d[DELIVERY_AWARE].crossed_bytes < 4 * bytes);
        CHECK(d[DELIVERY_AWARE].bytes_ns * 2 < d[DELIVERY_ACROSS].bytes_ns);
    }
}

int main(void) {
    TEST(test_the_same_again);
    TEST(test_every_shape);
    TEST(test_switches);
    TEST(test_trees_are_served_alike);
    TEST(test_formula);
    TEST(test_bandwidth);
    TEST(test_many_nodes);
    return tap_finish();
}

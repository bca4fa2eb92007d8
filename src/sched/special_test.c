/* SPDX-License-Identifier: MIT */
/* How special nodes are. */
#include "sched/special.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "tap.h"

enum { NODES = 16 };

static struct traits traits;
static struct nodeset all, some;
static uint64_t scratch[NODES], storage[2][NODESET_UNIVERSE_MAX / 64 / 8];
static uint8_t ranks[NODES];

static void set_up(void) {
    void *memory = calloc(1, traits_bytes(NODES, TRAITS_MAX));
    ASSERT(memory != NULL);
    traits_init(&traits, NODES, TRAITS_MAX, memory);
    nodeset_init(&all, NODES, storage[0]);
    nodeset_init(&some, NODES, storage[1]);
    nodeset_add_range(&all, 0, NODES - 1);
}

static void say(uint32_t first, uint32_t last, uint32_t id, uint64_t value) {
    nodeset_clear(&some);
    nodeset_add_range(&some, first, last);
    traits_say(&traits, &some, id, value);
}

static void test_alike(void) {
    special_reckon(&traits, &all, scratch, ranks);
    for (uint32_t n = 0; n < NODES; n++)
        CHECK_EQ(ranks[n], 0);
}

/* 8 of 16 have at least the second value, 2 the third. */
static void test_ordered(void) {
    int id = traits_define(&traits, "MEM", 1 << TRAITS_IS | 1 << TRAITS_AT_LEAST);
    traits_define_value(&traits, "1GB");
    traits_define_value(&traits, "2GB");
    traits_define_value(&traits, "4GB");
    say(0, NODES - 1, (uint32_t)id, 0);
    say(8, 15, (uint32_t)id, 1);
    say(14, 15, (uint32_t)id, 2);
    special_reckon(&traits, &all, scratch, ranks);
    CHECK_EQ(ranks[0], 0);
    CHECK_EQ(ranks[8], 1);
    CHECK_EQ(ranks[15], 3);
}

/* Of values without an order each is as special as few have it; labels add up. */
static void test_equal(void) {
    traits_clear(&traits);
    int id = traits_define(&traits, "NIC", 1 << TRAITS_IS);
    traits_define_value(&traits, "FAST");
    traits_define_value(&traits, "SLOW");
    say(0, NODES - 1, (uint32_t)id, 0);
    say(0, 11, (uint32_t)id, 1);
    int label = traits_label(&traits, "big");
    say(0, 0, TRAITS_LABELS, (uint64_t)1 << label);
    special_reckon(&traits, &all, scratch, ranks);
    CHECK_EQ(ranks[5], 0);
    CHECK_EQ(ranks[12], 2);
    CHECK_EQ(ranks[0], 4);
    nodeset_clear(&some);
    nodeset_add(&some, 0);
    special_reckon(&traits, &some, scratch, ranks); /* the only one there is */
    CHECK_EQ(ranks[0], 0);
    CHECK_EQ(ranks[12], 2);
}

int main(void) {
    set_up();
    TEST(test_alike);
    TEST(test_ordered);
    TEST(test_equal);
    return tap_finish();
}

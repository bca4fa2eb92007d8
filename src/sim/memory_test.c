/* SPDX-License-Identifier: MIT */
/* Tests of the shared global memory against a plain copy a node. */
#include "sim/memory.h"

#include <stdlib.h>

#include "base/random.h"
#include "tap.h"

enum { NODES = 20, HEAP = 3 * 4096 + 500 };

static const struct limits limits = {
    .nodes = NODES, .roots = 1, .variables = 3, .events = 2, .heap_bytes = HEAP};

static void test_variables(void) {
    struct memory *m = memory_new(&limits);
    if (!CHECK(m != NULL))
        return;
    memory_variables(m, 4)[2] = 7;
    memory_events(m, 4)[1] = 9;
    CHECK_EQ(memory_globals(m, 4).variables[2], 7);
    CHECK_EQ(memory_globals(m, 4).events[1], 9);
    CHECK_EQ(memory_globals(m, 5).variables[2], 0);
    CHECK_EQ(memory_globals(m, 3).events[1], 0);
    memory_clear(m, 4);
    CHECK_EQ(memory_globals(m, 4).variables[2], 0);
    CHECK_EQ(memory_globals(m, 4).events[1], 0);
    memory_free(m);
}

/* The same to all nodes costs as much as to one. */
static void test_sharing(void) {
    static uint8_t data[HEAP];
    uint64_t storage[8];
    struct nodeset set;
    struct memory *m = memory_new(&limits);
    nodeset_init(&set, NODES + 1, storage);
    nodeset_add_range(&set, 0, NODES);
    memset(data, 5, sizeof data);
    memory_write(m, &set, 0, bytes_of(data, sizeof data));
    CHECK_EQ(memory_pages(m), 4);
    nodeset_remove(&set, 3);
    memory_write(m, &set, 100, bytes_of("x", 1)); /* one node is different now, in one page */
    CHECK_EQ(memory_pages(m), 5);
    nodeset_add(&set, 3);
    memory_write(m, &set, 0, bytes_of(data, 4096)); /* and all are alike again */
    CHECK_EQ(memory_pages(m), 4);
    for (uint32_t n = 0; n <= NODES; n++)
        memory_clear(m, n);
    CHECK_EQ(memory_pages(m), 0);
    memory_free(m);
}

/* Random writes to random sets, beside arrays that do the same in the simplest way. */
static void test_against_copies(void) {
    static uint8_t copies[NODES + 1][HEAP];
    static uint8_t data[HEAP], seen[HEAP];
    struct random r;
    uint64_t storage[8];
    struct nodeset set;
    struct memory *m = memory_new(&limits);
    random_init(&r, 1);
    nodeset_init(&set, NODES + 1, storage);
    for (int round = 0; round < 300; round++) {
        nodeset_clear(&set);
        for (uint32_t n = 0; n <= NODES; n++)
            if (random_chance(&r, 2, 3))
                nodeset_add(&set, n);
        uint32_t offset = (uint32_t)random_below(&r, HEAP);
        uint32_t len = (uint32_t)random_below(&r, HEAP - offset + 1);
        random_bytes(&r, data, len);
        memory_write(m, &set, offset, bytes_of(data, len));
        NODESET_EACH (n, &set)
            memcpy(copies[n] + offset, data, len);
        uint32_t victim = (uint32_t)random_below(&r, NODES + 1);
        if (random_chance(&r, 1, 10)) {
            memory_clear(m, victim);
            memset(copies[victim], 0, HEAP);
        }
        memory_read(m, victim, 0, room_of(seen, HEAP));
        if (!CHECK(memcmp(seen, copies[victim], HEAP) == 0))
            break;
    }
    CHECK(memory_pages(m) <= 4 * (NODES + 1));
    memory_free(m);
}

int main(void) {
    TEST(test_variables);
    TEST(test_sharing);
    TEST(test_against_copies);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Bodies of any length come back whole, and their blocks are used again. */
#include "wodi/blocks.h"

#include <stdlib.h>

#include "tap.h"

static void test_bodies(void) {
    enum { CAP = 64 };
    struct blocks p;
    struct arena a;
    static uint8_t bytes[20 * BLOCK_DATA], back[sizeof bytes];
    size_t size = CAP * sizeof(struct block);
    void *mem = malloc(size);
    arena_init(&a, mem, size);
    blocks_init(&p, CAP, &a);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 7);
    for (int round = 0; round < 100; round++)
        for (size_t len = 0; len < sizeof bytes; len += BLOCK_DATA / 2 + 1) {
            struct body one = blocks_keep(&p, bytes_of(bytes, len));
            struct body two = blocks_keep(&p, bytes_of(bytes + 1, len / 2));
            CHECK_EQ(p.used, blocks_for(len) + blocks_for(len / 2));
            CHECK(bytes_equal(blocks_copy(&p, one, back), bytes_of(bytes, len)));
            blocks_drop(&p, &one);
            CHECK(bytes_equal(blocks_copy(&p, two, back), bytes_of(bytes + 1, len / 2)));
            blocks_drop(&p, &two);
        }
    CHECK_EQ(p.used, 0);
    CHECK(p.touched <= 31);
    free(mem);
}

int main(void) {
    TEST(test_bodies);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Tests of what processes of benched gangs wait for. */
#include "cli/gangwork.h"

#include <stdlib.h>

#include "tap.h"

static void test_names(void) {
    enum gangkernel k;
    for (int i = 0; i < KERNELS; i++) {
        CHECK(gangkernel_find(gangkernel_name((enum gangkernel)i), &k));
        CHECK_EQ((int)k, i);
    }
    CHECK(!gangkernel_find("nothing", &k));
}

static void test_pairs(void) {
    uint32_t peers[PEERS];
    gangwork_peers(KERNEL_PAIR, 2, 4, 0, peers);
    CHECK(peers[0] == 3 && peers[1] == NO_PEER);
    gangwork_peers(KERNEL_PAIR, 3, 4, 7, peers);
    CHECK_EQ(peers[0], 2);
    gangwork_peers(KERNEL_PAIR, 2, 3, 0, peers); /* whoever is left over is alone */
    CHECK_EQ(peers[0], NO_PEER);
    gangwork_peers(KERNEL_COMPUTE, 0, 2, 0, peers);
    CHECK_EQ(peers[0], NO_PEER);
}

/* Whoever waits at each moment, somebody can go on: until all have done everything. */
static void sweep(uint32_t size, uint64_t units) {
    uint64_t *done = calloc(size, sizeof *done);
    uint64_t sum = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t rank = 0; rank < size; rank++) {
            uint32_t peers[PEERS];
            bool ready = done[rank] < units;
            gangwork_peers(KERNEL_WAVE, rank, size, done[rank], peers);
            for (int i = 0; i < PEERS && ready; i++) {
                CHECK(peers[i] == NO_PEER || peers[i] < size);
                ready = peers[i] == NO_PEER || done[peers[i]] > done[rank];
            }
            done[rank] += ready;
            sum += ready;
            moved = moved || ready;
        }
    }
    CHECK_EQ(sum, size * units);
    free(done);
}

static void test_waves_come_to_an_end(void) {
    for (uint32_t size = 1; size <= 16; size++)
        sweep(size, 200);
}

/* The first of a sweep waits for nobody, and corners take turns. */
static void test_corners(void) {
    uint32_t peers[PEERS],
        first[4] = {0, 1, 2, 3}; /* of a grid of 2 by 2, and how it is numbered */
    for (uint64_t corner = 0; corner < 4; corner++) {
        gangwork_peers(KERNEL_WAVE, first[corner], 4, corner * 16, peers);
        CHECK(peers[0] == NO_PEER && peers[1] == NO_PEER);
        gangwork_peers(KERNEL_WAVE, 3 - first[corner], 4, corner * 16, peers);
        CHECK(peers[0] != NO_PEER && peers[1] != NO_PEER);
    }
}

int main(void) {
    TEST(test_names);
    TEST(test_pairs);
    TEST(test_waves_come_to_an_end);
    TEST(test_corners);
    return tap_finish();
}

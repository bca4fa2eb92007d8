/* SPDX-License-Identifier: MIT */
/* The same seed gives the same trace hash: twice here, and with every compiler, sanitizer and byte
 * order that this test is built for, since all of them compare with the same numbers.
 *
 * Whoever changes the protocol, the world or the campaign on purpose changes these hashes: run the
 * test and put in what it prints. */
#include <inttypes.h>

#include "sim/trial.h"
#include "tap.h"

static const struct {
    uint64_t seed;
    uint64_t hash;
} golden[] = {
    {3, 0x2bde6f873d235dad},
    {4, 0xf2917ef1397c9e0b},
    {9, 0x63e06e0caa09351a},
};

static void test_same_seed_same_hash(void) {
    static struct trial_result first, second;
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        trial_run(golden[i].seed, &first, NULL);
        trial_run(golden[i].seed, &second, NULL);
        CHECK_EQ(first.hash, second.hash);
        CHECK_EQ(first.verdict.count, 0);
        if (!CHECK_EQ(first.hash, golden[i].hash))
            printf("#     {%" PRIu64 ", 0x%016" PRIx64 "},\n", golden[i].seed, first.hash);
    }
}

static void test_other_seed_other_hash(void) {
    for (size_t i = 1; i < sizeof golden / sizeof *golden; i++)
        CHECK(golden[i].hash != golden[0].hash);
}

int main(void) {
    TEST(test_same_seed_same_hash);
    TEST(test_other_seed_other_hash);
    return tap_finish();
}

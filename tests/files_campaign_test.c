/* SPDX-License-Identifier: MIT */
/* A quick share of the campaign of files, and every seed that ever failed.
 *
 * `make soak` runs the full count. See campaign_test.c. */
#include <inttypes.h>

#include "sim/campaign.h"
#include "sim/files_trial.h"
#include "tap.h"

#ifdef STORM_SLOW
enum { QUICK_SEEDS = 40 };
#else
enum { QUICK_SEEDS = 500 };
#endif

static void test_quick_share_holds_all_promises(void) {
    struct campaign_config c = {.seed_first = 1, .seed_count = QUICK_SEEDS, .kind = CAMPAIGN_FILES};
    CHECK_EQ(campaign_run(&c, stderr), 0);
}

/* With every compiler, sanitizer and byte order: see determinism_test.c. */
static void test_same_seed_same_hash(void) {
    static const struct {
        uint64_t seed;
        uint64_t hash;
    } golden[] = {
        {3, 0xe035567ccc28b875},
        {4, 0xe8211ef2a0e37c11},
        {7, 0xb96893fada3da7b4},
    };
    static struct trial_result one, two;
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        files_trial_run(golden[i].seed, &one, NULL);
        files_trial_run(golden[i].seed, &two, NULL);
        CHECK_EQ(one.hash, two.hash);
        if (!CHECK_EQ(one.hash, golden[i].hash))
            printf("#     {%" PRIu64 ", 0x%016" PRIx64 "},\n", golden[i].seed, one.hash);
    }
}

static void test_seeds_that_once_failed(void) {
    static const uint64_t kept[] = {
        2,     /* pages that were judged out of turn were not told any more */
        86,    /* what was lost on the way to a giver was never missed */
        5765,  /* as 2, for one who had joined late */
        9121,  /* whatever came was spoiled, and it never ended */
        19441, /* there was no place at the source for so long that it was given up */
    };
    struct campaign_config c = {.kind = CAMPAIGN_FILES};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        CHECK_EQ(campaign_seed(&c, kept[i], false, stderr), 0);
}

int main(void) {
    TEST(test_quick_share_holds_all_promises);
    TEST(test_same_seed_same_hash);
    TEST(test_seeds_that_once_failed);
    return tap_finish();
}

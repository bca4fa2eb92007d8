/* SPDX-License-Identifier: MIT */
/* A quick share of the campaign of jobs, and every seed that ever failed.
 *
 * `make soak` runs the full count. See campaign_test.c. */
#include "sim/campaign.h"

#include "sim/jobs_trial.h"
#include "tap.h"

#ifdef STORM_EMULATED
enum { QUICK_SEEDS = 20 };
#else
enum { QUICK_SEEDS = 150 };
#endif

static void test_quick_share_holds_all_promises(void) {
    struct campaign_config c = {.seed_first = 1, .seed_count = QUICK_SEEDS, .kind = CAMPAIGN_JOBS};
    CHECK_EQ(campaign_run(&c, stderr), 0);
}

static void test_the_same_seed_is_the_same_run(void) {
    struct trial_result one, two;
    for (uint64_t seed = 3; seed < 6; seed++) {
        jobs_trial_run(seed, &one, NULL);
        jobs_trial_run(seed, &two, NULL);
        CHECK_EQ(one.hash, two.hash);
        CHECK_EQ(one.steps, two.steps);
    }
}

static void test_seeds_that_once_failed(void) {
    static const uint64_t kept[] = {
        242,   /* the way to the output of a job that was over died with the manager */
        633,   /* a launch that failed was counted twice: nothing started any more */
        694,   /* what the log held of an attempt that came to nothing was in the way of others */
        930,   /* a new node manager denied what its launcher had */
        1138,  /* as 242 */
        1156,  /* a process had died, then its node: the job was done, with 0 */
        2776,  /* what had been killed before the manager died was done, with 0 */
        4051,  /* the lease of a former run ended the next one */
        4827,  /* a launch that was never decided ran for ever */
        5218,  /* ends were not repeated because they were asked for all the time */
        7798,  /* it was never heard that a job goes on */
        44390, /* what a former root had left undecided was started, ended, and then decided */
        48531, 800173, /* what was never decided was begun by a node whose manager had come back */
    };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        CHECK_EQ(campaign_seed(kept[i], CAMPAIGN_JOBS, false, stderr), 0);
}

int main(void) {
    TEST(test_quick_share_holds_all_promises);
    TEST(test_the_same_seed_is_the_same_run);
    TEST(test_seeds_that_once_failed);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* A quick share of the fault campaign, and every seed that ever failed.
 *
 * `make soak` runs the full count. A seed fixes sizes, shape, limits, network and faults; when the
 * campaign itself is changed a seed becomes another run, but a kept one costs next to nothing. */
#include "sim/campaign.h"

#include "sim/trial.h"
#include "tap.h"

#ifdef STORM_SLOW
enum { QUICK_SEEDS = 40, COVER = false };
#else
enum { QUICK_SEEDS = 200, COVER = true };
#endif

static void test_quick_share_holds_all_promises(void) {
    struct campaign_config c = {.seed_first = 1, .seed_count = QUICK_SEEDS, .cover = COVER};
    CHECK_EQ(campaign_run(&c, stderr), 0);
}

static void test_seeds_that_once_failed(void) {
    static const uint64_t kept[] = {
        455,  /* a published transfer was forgotten when its source left */
        1078, /* an operation was done again by the next root */
        1651, /* opening a link took longer than the patience for it */
        1729, /* a new root answered before all survivors had heard */
        1983, /* a node that reported was forgotten when its path changed */
        1989, 2367, 2871,
        2992, 2557, /* a node moved to a parent that could not answer in time, again and again */
        4356,       /* a node that one root had not collected was a survivor for the next */
        9220,       /* an incarnation that was given up was admitted again */
    };
    struct campaign_config c = {.kind = CAMPAIGN_PRIMITIVES};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        CHECK_EQ(campaign_seed(&c, kept[i], false, stderr), 0);
}

int main(void) {
    TEST(test_quick_share_holds_all_promises);
    TEST(test_seeds_that_once_failed);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* The harness tested: with a bug planted in the mover of files (see fm/inside.h and meson.build) the campaign
 * of files must find it within a bounded number of seeds. Where the world cannot go on with it, the process
 * that ran the seed ends early: that counts. */
#include <stdlib.h>

#include "sim/campaign.h"
#include "planted_bug.h"
#include "tap.h"

int planted_bug;

enum { SEEDS_MAX = 120 };

static void test_bug_is_found(void) {
    struct campaign_config c = {
        .seed_first = 1, .seed_count = SEEDS_MAX, .kind = CAMPAIGN_FILES, .processes = 2};
    CHECK(campaign_run(&c, stderr) > 0);
}

int main(int argc, char **argv) {
    planted_bug = argc == 2 ? atoi(argv[1]) : 0;
    TEST(test_bug_is_found);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* The harness tested: with a bug planted in the primitives (see prim/internal.h and meson.build)
 * the ordinary checkers must find it within a bounded number of seeds. */
#include <inttypes.h>
#include <stdlib.h>

#include "sim/trial.h"
#include "planted_bug.h"
#include "tap.h"

int planted_bug;

enum { SEEDS_MAX = 200 };

static void test_bug_is_found(void) {
    static struct trial_result r;
    for (uint64_t seed = 1; seed <= SEEDS_MAX; seed++) {
        trial_run(seed, &r, NULL);
        if (r.verdict.count == 0)
            continue;
        printf("## found with seed %" PRIu64 "\n", seed);
        fflush(stdout);
        verdict_print(&r.verdict, 1, stderr);
        return;
    }
    bool found = false;
    CHECK(found);
}

int main(int argc, char **argv) {
    planted_bug = argc == 2 ? atoi(argv[1]) : 0;
    TEST(test_bug_is_found);
    return tap_finish();
}

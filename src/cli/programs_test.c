/* SPDX-License-Identifier: MIT */
/* Programs of a job: nodes look for those that are seen here, whichever of them that is. */
#include "cli/programs.h"

#include "tap.h"

static void test_any_that_is_seen(void) {
    struct ordered at[2] = {{.path = (char *)"/no/such/program"}, {.path = (char *)"/"}};
    struct programs p = {.count = 2, .at = at};
    CHECK(!programs_seen(&p));
    programs_see(&p);
    CHECK(!at[0].spec.seen && at[1].spec.seen);
    CHECK(programs_seen(&p));
    p.count = 1;
    CHECK(!programs_seen(&p));
}

int main(void) {
    TEST(test_any_that_is_seen);
    return tap_finish();
}

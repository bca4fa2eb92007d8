/* SPDX-License-Identifier: MIT */
/* First come, first served: heads of the queue start while they fit, nothing overtakes. */
#include "sched/policies.h"

static void decide(void *self, struct storm_host *h) {
    (void)self;
    const struct storm_job *j;
    while ((j = storm_queued(h, NULL)) != NULL && storm_fits(h, j, 0))
        if (storm_start(h, j, 0) < 0)
            return;
}

const struct storm_policy policy_fcfs = {
    .version = STORM_POLICY_VERSION,
    .name = "fcfs",
    .words = "first come, first served: nothing overtakes the head of the queue",
    .decide = decide,
};

/* SPDX-License-Identifier: MIT */
/* EASY backfilling: as first come, first served; and when the head does not fit, others may start in the order
 * of the queue if they do not delay it. The head's time follows from the estimates of what runs. */
#include "sched/policies.h"

static void decide(void *self, struct storm_host *h) {
    (void)self;
    const struct storm_job *head;
    while ((head = storm_queued(h, NULL)) != NULL && storm_fits(h, head, 0))
        if (storm_start(h, head, 0) < 0)
            return;
    if (head == NULL)
        return;
    storm_reserve(h, head, 0);
    for (const struct storm_job *j = head; (j = storm_candidate(h, j, 0)) != NULL;)
        if (storm_start(h, j, 0) < 0)
            return;
}

const struct storm_policy policy_easy = {
    .version = STORM_POLICY_VERSION,
    .name = "easy",
    .words = "EASY backfilling: jobs overtake if they do not delay the head of the queue",
    .decide = decide,
};

/* SPDX-License-Identifier: MIT */
/* No coordination: nodes share their processors among the jobs put there as they like. Jobs are seated as under
 * gang scheduling, up to the multiprogramming level; the slot says only how many are on a processor. */
#include "sched/policies.h"
#include "sched/seats.h"

static void decide(void *self, struct storm_host *h) {
    if (!seats_wanted(h))
        return;
    seats_look(self, h);
    seats_fill(self, h);
}

const struct storm_policy policy_local = {
    .version = STORM_POLICY_VERSION,
    .flags = STORM_SLICED | STORM_UNCOORDINATED,
    .name = "local",
    .words = "no coordination: each node shares its processors as it likes",
    .bytes = seats_bytes,
    .init = seats_init,
    .resumed = seats_resumed,
    .ended = seats_ended,
    .decide = decide,
};

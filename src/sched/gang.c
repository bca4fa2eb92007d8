/* SPDX-License-Identifier: MIT */
/* Gang scheduling: jobs share the machine in slices of time, each in a slot with all its processes at once.
 *
 * As many slots as the multiprogramming level allows. Whoever has a seat in one starts, in the order of the
 * queue; nobody waits whom a slot has room for. A large job may have to wait long for that: gang-backfill keeps
 * a time for it. Slots take turns in the host, and idle columns are lent to jobs of other slots. */
#include "sched/policies.h"
#include "sched/seats.h"

static void decide(void *self, struct storm_host *h) {
    struct seats *s = self;
    seats_unify(s, h);
    if (!seats_wanted(h))
        return;
    seats_look(s, h);
    seats_fill(s, h);
}

const struct storm_policy policy_gang = {
    .version = STORM_POLICY_VERSION,
    .flags = STORM_SLICED | STORM_ALTERNATIVE,
    .name = "gang",
    .words = "gang scheduling: jobs share the machine in slices of time",
    .bytes = seats_bytes,
    .init = seats_init,
    .resumed = seats_resumed,
    .ended = seats_ended,
    .decide = decide,
};

/* SPDX-License-Identifier: MIT */
/* Gang scheduling: jobs share the machine in slices of time, each in a slot with all its processes at once.
 *
 * As many slots as the multiprogramming level allows. Whoever has a seat in one starts, in the order of the
 * queue; nobody waits whom a slot has room for. A large job may have to wait long for that: gang-backfill keeps
 * a time for it. Slots take turns in the host, and idle columns are lent to jobs of other slots. */
#include "sched/policies.h"
#include "sched/seats.h"

struct gang {
    bool left; /* somebody has ended: rows may become one */
    struct seats seats;
};

static size_t bytes(const struct storm_limits *l) {
    return offsetof(struct gang, seats) + seats_bytes(l);
}

static void init(void *self, struct storm_host *h) {
    seats_init(&((struct gang *)self)->seats, storm_limits(h));
}

static void ended(void *self, struct storm_host *h, const struct storm_job *j) {
    (void)h;
    (void)j;
    ((struct gang *)self)->left = true;
}

static void decide(void *self, struct storm_host *h) {
    struct gang *g = self;
    if (g->left)
        seats_unify(h);
    g->left = false;
    if (!seats_wanted(h))
        return;
    seats_look(&g->seats, h);
    seats_fill(&g->seats, h);
}

const struct storm_policy policy_gang = {
    .version = STORM_POLICY_VERSION,
    .flags = STORM_SLICED | STORM_ALTERNATIVE,
    .name = "gang",
    .words = "gang scheduling: jobs share the machine in slices of time",
    .bytes = bytes,
    .init = init,
    .ended = ended,
    .decide = decide,
};

/* SPDX-License-Identifier: MIT */
/* Gang scheduling with EASY backfilling: each row of the matrix is a machine that is as many times slower as there
 * are rows. The head of the queue is promised the row that it can have first; others may start in any row if they
 * do not delay it. */
#include "sched/policies.h"
#include "sched/seats.h"

/* The row that it can have first. */
static uint32_t best_row(struct storm_host *h, const struct storm_job *head) {
    uint32_t best = 0;
    uint64_t first = STORM_NEVER;
    for (uint32_t s = 0; s < storm_limits(h)->slots; s++) {
        uint64_t at = storm_earliest(h, head, s);
        if (at < first) {
            first = at;
            best = s;
        }
    }
    return best;
}

static void decide(void *self, struct storm_host *h) {
    struct seats *s = self;
    const struct storm_job *head;
    struct seat seat;
    seats_unify(s, h);
    bool wanted = seats_wanted(h);
    if (wanted)
        seats_look(s, h);
    while ((head = storm_queued(h, NULL)) != NULL && wanted && seats_find(s, h, head, &seat))
        if (!seats_start(s, h, head, &seat))
            return;
    if (head == NULL)
        return;
    storm_reserve(h, head, best_row(h, head));
    if (wanted)
        seats_fill(s, h);
}

const struct storm_policy policy_gang_backfill = {
    .version = STORM_POLICY_VERSION,
    .flags = STORM_SLICED | STORM_ALTERNATIVE,
    .name = "gang-backfill",
    .words = "gang scheduling in rows that are backfilled",
    .bytes = seats_bytes,
    .init = seats_init,
    .resumed = seats_resumed,
    .ended = seats_ended,
    .decide = decide,
};

/* SPDX-License-Identifier: MIT */
/* Gang scheduling with EASY backfilling: each row of the matrix is a machine that is as many times slower as there
 * are rows. The head of the queue is promised the row that it can have first; others may start in any row if they
 * do not delay it. */
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
    struct gang *g = self;
    const struct storm_job *head;
    struct seat seat;
    if (g->left)
        seats_unify(h);
    g->left = false;
    bool wanted = seats_wanted(h);
    if (wanted)
        seats_look(&g->seats, h);
    while ((head = storm_queued(h, NULL)) != NULL && wanted &&
           seats_find(&g->seats, h, head, &seat))
        if (!seats_start(&g->seats, h, head, &seat))
            return;
    if (head == NULL)
        return;
    storm_reserve(h, head, best_row(h, head));
    if (wanted)
        seats_fill(&g->seats, h);
}

const struct storm_policy policy_gang_backfill = {
    .version = STORM_POLICY_VERSION,
    .flags = STORM_SLICED | STORM_ALTERNATIVE,
    .name = "gang-backfill",
    .words = "gang scheduling in rows that are backfilled",
    .bytes = bytes,
    .init = init,
    .ended = ended,
    .decide = decide,
};

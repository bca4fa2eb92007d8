/* SPDX-License-Identifier: MIT */
/* An example of a policy from a shared object: shortest job first, with aging.
 *
 * The next job is the one with the shortest estimate, of which its waiting time is taken off: so every job has its
 * turn some day. While the next one does not fit others may start if they do not delay it, the same way round.
 *
 *     cc -shared -fPIC -I include -o sjf-aging.so examples/sjf_aging.c
 *     storm sim trace.swf.gz --policy easy,./sjf-aging.so
 *
 * docs/policies.md explains it line by line. */
#include <storm/policy.h>

/* What counts: ticks it needs, less those it has waited. Without an estimate it is the longest. */
static int64_t rank_of(const struct storm_host *h, const struct storm_job *j) {
    uint64_t waited = storm_now(h) - j->arrived;
    uint64_t needs = j->estimate < INT64_MAX / 2 ? j->estimate : INT64_MAX / 2;
    return (int64_t)needs - (int64_t)waited;
}

/* The best of those that wait, but for `head`; if a head is given only of those that may start now. */
static const struct storm_job *best(struct storm_host *h, const struct storm_job *head) {
    const struct storm_job *found = NULL;
    for (const struct storm_job *j = NULL; (j = storm_queued(h, j)) != NULL;)
        if (j != head && (found == NULL || rank_of(h, j) < rank_of(h, found)) &&
            (head == NULL || storm_may(h, j, 0)))
            found = j;
    return found;
}

static void decide(void *self, struct storm_host *h) {
    (void)self;
    const struct storm_job *head, *j;
    while ((head = best(h, NULL)) != NULL && storm_fits(h, head, 0))
        storm_start(h, head, 0);
    if (head == NULL)
        return;
    storm_reserve(h, head, 0);
    while ((j = best(h, head)) != NULL)
        storm_start(h, j, 0);
}

const struct storm_policy storm_policy = {
    .version = STORM_POLICY_VERSION,
    .name = "sjf-aging",
    .words = "shortest job first; waiting makes a job shorter",
    .decide = decide,
};

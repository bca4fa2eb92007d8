/* SPDX-License-Identifier: MIT */
/* EASY backfilling with the shortest candidates first (SJBF). Beside the host's queue there is a list of the same
 * jobs by estimate, and as they came if these are equal. */
#include "sched/policies.h"

struct own {
    const struct storm_job *prev, *next;
    bool listed;
};

struct sjbf {
    const struct storm_job *first, *last;
};

static void arrived(void *self, struct storm_host *h, const struct storm_job *j) {
    struct sjbf *s = self;
    struct own *o = storm_own(h, j);
    const struct storm_job *prev = s->last;
    while (prev != NULL && prev->estimate > j->estimate)
        prev = ((struct own *)storm_own(h, prev))->prev;
    const struct storm_job **link = prev ? &((struct own *)storm_own(h, prev))->next : &s->first;
    *o = (struct own){.prev = prev, .next = *link, .listed = true};
    *link = j;
    if (o->next != NULL)
        ((struct own *)storm_own(h, o->next))->prev = j;
    else
        s->last = j;
}

/* Its own links stay: the walk goes on from it. */
static void unlist(struct sjbf *s, struct storm_host *h, const struct storm_job *j) {
    struct own *o = storm_own(h, j);
    if (!o->listed)
        return;
    o->listed = false;
    *(o->prev ? &((struct own *)storm_own(h, o->prev))->next : &s->first) = o->next;
    *(o->next ? &((struct own *)storm_own(h, o->next))->prev : &s->last) = o->prev;
}

static void ended(void *self, struct storm_host *h, const struct storm_job *j) {
    unlist(self, h, j);
}

static bool start(struct sjbf *s, struct storm_host *h, const struct storm_job *j) {
    unlist(s, h, j);
    return storm_start(h, j, 0) == 0;
}

static void decide(void *self, struct storm_host *h) {
    struct sjbf *s = self;
    const struct storm_job *head;
    while ((head = storm_queued(h, NULL)) != NULL && storm_fits(h, head, 0))
        if (!start(s, h, head))
            return;
    if (head == NULL)
        return;
    storm_reserve(h, head, 0);
    for (const struct storm_job *j = s->first; j != NULL && storm_free(h, 0) > 0;
         j = ((struct own *)storm_own(h, j))->next)
        if (j != head && storm_may(h, j, 0) && !start(s, h, j))
            return;
}

static size_t bytes(const struct storm_limits *l) {
    (void)l;
    return sizeof(struct sjbf);
}

const struct storm_policy policy_easy_sjbf = {
    .version = STORM_POLICY_VERSION,
    .name = "easy-sjbf",
    .words = "EASY backfilling, the shortest jobs overtake first",
    .bytes = bytes,
    .own = sizeof(struct own),
    .arrived = arrived,
    .ended = ended,
    .decide = decide,
};

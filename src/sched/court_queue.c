/* SPDX-License-Identifier: MIT */
/* The court's queue: by priority, then as jobs came. */
#include "base/assert.h"
#include "sched/court_inside.h"

static bool before(const struct court_job *a, const struct court_job *b) {
    if (a->pub.priority != b->pub.priority)
        return a->pub.priority > b->pub.priority;
    return a->tie < b->tie;
}

/* Most are the last: the search is short. */
void court_enqueue(struct court *c, struct court_job *j) {
    uint32_t at = (uint32_t)(j - c->jobs), prev = c->queue_last;
    while (prev != COURT_NONE && before(j, &c->jobs[prev]))
        prev = c->jobs[prev].prev;
    uint32_t next = prev == COURT_NONE ? c->queue_first : c->jobs[prev].next;
    j->prev = prev;
    j->next = next;
    *(prev == COURT_NONE ? &c->queue_first : &c->jobs[prev].next) = at;
    *(next == COURT_NONE ? &c->queue_last : &c->jobs[next].prev) = at;
    j->where = WHERE_QUEUE;
    c->queued++;
}

/* Its own links stay: who goes through the queue may start what he stands on. */
void court_dequeue(struct court *c, struct court_job *j) {
    ASSERT(j->where == WHERE_QUEUE);
    *(j->prev == COURT_NONE ? &c->queue_first : &c->jobs[j->prev].next) = j->next;
    *(j->next == COURT_NONE ? &c->queue_last : &c->jobs[j->next].prev) = j->prev;
    j->where = WHERE_NOWHERE;
    c->queued--;
}

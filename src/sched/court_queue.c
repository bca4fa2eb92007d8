/* SPDX-License-Identifier: MIT */
/* The court's queues, one for those that name a window: by priority, then as jobs came. */
#include "base/assert.h"
#include "sched/court_inside.h"

static bool before(const struct court_job *a, const struct court_job *b) {
    if (a->pub.priority != b->pub.priority)
        return a->pub.priority > b->pub.priority;
    return a->tie < b->tie;
}

static struct court_line *line_of(struct court *c, const struct court_job *j) {
    return j->window != 0 ? &c->booked : &c->queue;
}

/* Most are the last: the search is short. */
void court_enqueue(struct court *c, struct court_job *j) {
    struct court_line *line = line_of(c, j);
    uint32_t at = (uint32_t)(j - c->jobs), prev = line->last;
    while (prev != COURT_NONE && before(j, &c->jobs[prev]))
        prev = c->jobs[prev].prev;
    uint32_t next = prev == COURT_NONE ? line->first : c->jobs[prev].next;
    j->prev = prev;
    j->next = next;
    *(prev == COURT_NONE ? &line->first : &c->jobs[prev].next) = at;
    *(next == COURT_NONE ? &line->last : &c->jobs[next].prev) = at;
    j->where = j->window != 0 ? WHERE_BOOKED : WHERE_QUEUE;
    line->count++;
}

/* Its own links stay: who goes through the queue may start what he stands on. */
void court_dequeue(struct court *c, struct court_job *j) {
    struct court_line *line = line_of(c, j);
    ASSERT(j->where == WHERE_QUEUE || j->where == WHERE_BOOKED);
    *(j->prev == COURT_NONE ? &line->first : &c->jobs[j->prev].next) = j->next;
    *(j->next == COURT_NONE ? &line->last : &c->jobs[j->next].prev) = j->prev;
    j->where = WHERE_NOWHERE;
    line->count--;
}

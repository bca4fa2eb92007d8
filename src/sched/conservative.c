/* SPDX-License-Identifier: MIT */
/* Conservative backfilling: every job has a reservation from its arrival on, at the earliest hole that all others
 * leave. Whenever a job ends each waiting job, in the order of the queue, is put at its earliest hole anew while
 * all others keep theirs: so nobody ever starts later than was promised.
 *
 * Reservations are reckoned in PEs. Where nodes have several, or jobs choose, a job may not fit on the nodes at
 * its time although there are PEs enough; it then starts as soon as it does. And when a promise is broken by
 * the world (a job outlasts its estimate, nodes are lost) everything is planned anew. */
#include "base/assert.h"
#include "base/units.h"
#include "sched/plan.h"
#include "sched/policies.h"

struct own {
    uint64_t start, end; /* of its reservation */
    uint64_t pes;        /* that are planned for it */
};

struct conservative {
    struct plan plan;
    bool anew;     /* all is to be planned anew */
    uint64_t next; /* no reservation begins before */
    struct plan_step steps[];
};

static uint32_t steps_cap(const struct storm_limits *l) {
    return (uint32_t)plan_steps(l->jobs + STORM_WINDOWS_MAX);
}

static size_t bytes(const struct storm_limits *l) {
    return sizeof(struct conservative) + sizeof(struct plan_step) * steps_cap(l);
}

/* PEs of windows are missing while these are open; of those that are, they come back. */
static void plan_windows(struct conservative *s, struct storm_host *h) {
    uint64_t now = storm_now(h), pes, from, to;
    for (uint32_t i = 0; (pes = storm_window(h, i, &from, &to)) != STORM_NEVER; i++)
        if (from <= now)
            plan_give(&s->plan, to, STORM_NEVER, pes);
        else
            plan_take(&s->plan, from, to, pes);
}

static void begin(struct conservative *s, struct storm_host *h) {
    plan_begin(&s->plan, s->steps, steps_cap(storm_limits(h)), storm_now(h), (int64_t)storm_pes(h));
    plan_windows(s, h);
    s->next = STORM_NEVER;
}

static void init(void *self, struct storm_host *h) {
    begin(self, h);
}

static void hold(struct conservative *s, struct own *o, const struct storm_job *j, uint64_t start) {
    *o = (struct own){start, units_after(start, j->estimate), j->pes};
    plan_take(&s->plan, o->start, o->end, o->pes);
    if (start < s->next)
        s->next = start;
}

static void place(struct conservative *s, struct storm_host *h, const struct storm_job *j) {
    uint64_t at = plan_earliest(&s->plan, storm_now(h), j->estimate, j->pes);
    struct own *o = storm_own(h, j);
    if (at == STORM_NEVER)
        *o = (struct own){STORM_NEVER, STORM_NEVER, 0}; /* behind something without an estimate */
    else
        hold(s, o, j, at);
    storm_expect(h, j, at);
}

static void take(struct conservative *s, struct storm_host *h, const struct storm_job *j) {
    uint64_t now = storm_now(h);
    struct own *o = storm_own(h, j);
    *o = (struct own){now, j->ends > now ? j->ends : now + 1, storm_held(h, j)};
    plan_take(&s->plan, o->start, o->end, o->pes);
}

/* It may have been planned otherwise: those that take the place of an order may outlast what that was to take. */
static void resumed(void *self, struct storm_host *h, const struct storm_job *j) {
    struct conservative *s = self;
    take(s, h, j);
    s->anew = true;
}

static void arrived(void *self, struct storm_host *h, const struct storm_job *j) {
    struct conservative *s = self;
    plan_pass(&s->plan, storm_now(h));
    place(s, h, j);
}

static void plan_anew(struct conservative *s, struct storm_host *h) {
    begin(s, h);
    for (const struct storm_job *j = NULL; (j = storm_running(h, j)) != NULL;)
        take(s, h, j);
    for (const struct storm_job *j = NULL; (j = storm_queued(h, j)) != NULL;)
        place(s, h, j);
    s->anew = false;
}

/* Each at its earliest hole while all others keep theirs. */
static void improve(struct conservative *s, struct storm_host *h) {
    uint64_t now = storm_now(h);
    s->next = STORM_NEVER;
    for (const struct storm_job *j = NULL; (j = storm_queued(h, j)) != NULL;) {
        const struct own *o = storm_own(h, j);
        uint64_t before = o->start;
        if (before <= now) {
            s->next = now;
            continue;
        }
        if (before != STORM_NEVER)
            plan_give(&s->plan, o->start, o->end, o->pes);
        place(s, h, j);
        ASSERT(o->start <= before);
    }
}

static void ended(void *self, struct storm_host *h, const struct storm_job *j) {
    struct conservative *s = self;
    const struct own *o = storm_own(h, j);
    if (s->anew)
        return; /* what is planned may be more than there is: nobody's place is better or worse before it is planned anew */
    plan_pass(&s->plan, storm_now(h));
    if (o->start != STORM_NEVER)
        plan_give(&s->plan, o->start, o->end, o->pes);
    improve(s, h);
}

static void nodes(void *self, struct storm_host *h) {
    (void)h;
    ((struct conservative *)self)->anew = true;
}

static bool broken(const struct conservative *s, struct storm_host *h) {
    const struct storm_job *j = storm_running(h, NULL);
    return s->anew || (j != NULL && j->ends <= storm_now(h));
}

static void decide(void *self, struct storm_host *h) {
    struct conservative *s = self;
    uint64_t now = storm_now(h), next = STORM_NEVER, wake = STORM_NEVER;
    if (broken(s, h))
        plan_anew(s, h);
    if (s->next > now)
        return;
    for (const struct storm_job *j = NULL; (j = storm_queued(h, j)) != NULL;) {
        const struct own *o = storm_own(h, j);
        if (o->start <= now && storm_fits(h, j, 0)) {
            s->anew = s->anew || o->start < now; /* late: it holds its PEs longer than planned */
            if (storm_start(h, j, 0) < 0)
                return;
        } else {
            next = o->start < next ? o->start : next;
            wake = o->start > now && o->start < wake ? o->start : wake;
        }
    }
    s->next = next;
    if (wake != STORM_NEVER) /* also if one before it does not fit though its time has come */
        storm_wake(h, wake);
}

const struct storm_policy policy_conservative = {
    .version = STORM_POLICY_VERSION,
    .name = "conservative",
    .words = "conservative backfilling: jobs overtake if they delay nobody",
    .bytes = bytes,
    .own = sizeof(struct own),
    .init = init,
    .resumed = resumed,
    .arrived = arrived,
    .ended = ended,
    .nodes = nodes,
    .decide = decide,
};

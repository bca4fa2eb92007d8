/* SPDX-License-Identifier: MIT */
/* What happens because of time: limits, the steps from asking a job to end to ending it, repeats of what may
 * have been lost, leases. Each running job has one place in the heap: the earliest of its times. */
#include "base/units.h"
#include "base/list.h"
#include "mm/inside.h"
#include "rm/say.h"

#define REPEAT_NS (NS_PER_S / 4)
#define CHECK_NS  NS_PER_S
#define HOLD_NS   (2 * NS_PER_S)

/* A limit that is nearly reached in another's turn is looked at so often. */
#define LIMIT_LEAST_NS NS_PER_MS

void due_set(struct mm *m, struct running *r) {
    const uint64_t times[] = {r->limit_at,  r->force_at, r->repeat_at,
                              r->orphan_at, r->lost_at,  r->vacate_at};
    uint64_t at = UINT64_MAX;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] != 0 && times[i] < at)
            at = times[i];
    if (heap_item_queued(&r->due))
        heap_remove(&m->dues, &r->due);
    if (at != UINT64_MAX) {
        r->due = (struct heap_item){.key = at, .tie = ++m->ties};
        heap_push(&m->dues, &r->due);
    }
    const struct heap_item *next = heap_peek(&m->dues);
    effects_timer(m->out, TIMER_DUE, next == NULL ? 0 : next->key);
}

static bool is_due(uint64_t *at, uint64_t now) {
    if (*at == 0 || *at > now)
        return false;
    *at = 0;
    return true;
}

/* Says to those who have not ended what they should do by now. */
static void say_force(struct mm *m, struct job *j, struct running *r) {
    union message c = {.command = {.run = r->run, .verb = r->force, .value = 0}};
    say_down(m->out, &r->waiting, MESSAGE_COMMAND, &c, (struct bytes){0});
    client_news(m, j);
}

static void repeat(struct mm *m, struct job *j, struct running *r) {
    if (r->force != 0 && r->phase == PHASE_GOING) {
        say_force(m, j, r);
        r->repeat_at = m->now + REPEAT_NS;
    } else if (!nodeset_empty(&r->unsure)) {
        union message c = {.command = {.run = r->run, .verb = VERB_CHECK}};
        say_down(m->out, &r->unsure, MESSAGE_COMMAND, &c, (struct bytes){0});
        r->repeat_at = m->now + CHECK_NS;
    } else if (r->held && r->phase == PHASE_GOING) { /* nobody tells whether it was heard */
        enum verb verb = r->suspended ? VERB_SUSPEND : VERB_RESUME;
        union message c = {.command = {.run = r->run, .verb = (uint8_t)verb}};
        say_down(m->out, &r->waiting, MESSAGE_COMMAND, &c, (struct bytes){0});
        r->repeat_at = m->now + HOLD_NS;
    }
}

static void lease_over(struct mm *m, struct running *r) {
    nodeset_subtract(&r->waiting, &r->lost);
    nodeset_clear(&r->lost);
    end_check(m, r);
}

/* It has had its time, or the turns of others were in it. */
static void limit(struct mm *m, struct job *j, struct running *r) {
    uint64_t ran = slices_ran(m, r);
    uint64_t left = ran < j->limit_ns ? j->limit_ns - ran : 0;
    if (left == 0)
        end_job(m, j, REASON_TIME, 0, false);
    else /* not at once again and again while others have their turn */
        r->limit_at = m->now + (left > LIMIT_LEAST_NS ? left : LIMIT_LEAST_NS);
}

/* One running job's times; true if it is over now. */
static bool tick(struct mm *m, struct job *j, struct running *r) {
    if (j->settled) {
        if (is_due(&r->orphan_at, m->now))
            end_release(m, j);
        return r->job != j->id;
    }
    if (is_due(&r->limit_at, m->now))
        limit(m, j, r);
    else if (is_due(&r->orphan_at, m->now))
        end_job(m, j, REASON_ORPHAN, 0, false);
    else if (is_due(&r->vacate_at, m->now))
        end_job(m, j, loans_reason(m, r), 0, false);
    if (r->job == j->id && is_due(&r->force_at, m->now)) {
        r->force = r->force == 0 ? VERB_END : VERB_KILL;
        r->force_at = r->force == VERB_END ? m->now + m->config.grace_ns : 0;
        r->repeat_at = m->now;
        if (j->state != STATE_ENDING)
            j->state = STATE_ENDING;
    }
    if (r->job == j->id && is_due(&r->repeat_at, m->now))
        repeat(m, j, r);
    if (r->job == j->id && is_due(&r->lost_at, m->now))
        lease_over(m, r);
    return r->job != j->id;
}

void due_run(struct mm *m) {
    for (;;) {
        struct heap_item *next = heap_peek(&m->dues);
        if (next == NULL || next->key > m->now)
            break;
        struct running *r = CONTAINER_OF(next, struct running, due);
        struct job *j = job_find(m, r->job);
        if (!tick(m, j, r))
            due_set(m, r);
    }
    const struct heap_item *next = heap_peek(&m->dues);
    effects_timer(m->out, TIMER_DUE, next == NULL ? 0 : next->key);
}

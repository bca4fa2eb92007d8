/* SPDX-License-Identifier: MIT */
/* Who waits, and who starts: between the manager's table of jobs and the court, where a policy decides.
 *
 * The court hears of everything at once and is asked once a step, however much has happened in it. What it gives nodes to
 * starts as soon as the log and the primitives can take it. Steps wait beside it, as they use what their
 * allocation holds already. */
#include <errno.h>

#include "base/assert.h"
#include "base/units.h"
#include "mm/inside.h"

/* ---- lists ---- */

static uint32_t *first_of(struct mm *m, const struct job *j) {
    return j->kind == JOB_STEP ? &m->steps_first : &m->given_first;
}

static uint32_t *last_of(struct mm *m, const struct job *j) {
    return j->kind == JOB_STEP ? &m->steps_last : &m->given_last;
}

static void link_between(struct mm *m, struct job *j, uint32_t prev, uint32_t next) {
    uint32_t place = job_place(m, j);
    j->prev = prev;
    j->next = next;
    *(prev == NO_SLOT ? first_of(m, j) : &m->jobs[prev].next) = place;
    *(next == NO_SLOT ? last_of(m, j) : &m->jobs[next].prev) = place;
}

static void unlink_job(struct mm *m, struct job *j) {
    *(j->prev == NO_SLOT ? first_of(m, j) : &m->jobs[j->prev].next) = j->next;
    *(j->next == NO_SLOT ? last_of(m, j) : &m->jobs[j->next].prev) = j->prev;
    j->prev = j->next = NO_SLOT;
}

/* By priority, then as they came. Most are the last: the search is short. */
static void add_step(struct mm *m, struct job *j) {
    uint32_t before = m->steps_last;
    while (before != NO_SLOT &&
           (m->jobs[before].priority < j->priority ||
            (m->jobs[before].priority == j->priority && m->jobs[before].rank > j->rank)))
        before = m->jobs[before].prev;
    link_between(m, j, before, before == NO_SLOT ? m->steps_first : m->jobs[before].next);
}

/* ---- the court ---- */

/* On nodes that it has or is to have, alone. */
static struct court_order plain_order(struct mm *m, const struct job *j) {
    const struct wish *w = job_wish(m, j);
    const struct need_kept *need = needs_of(m, j);
    const struct sectioned *sections = sections_of(m, j);
    return (struct court_order){.id = j->id,
                                .nodes = j->nodes,
                                .ppn = j->ppn,
                                .memory = job_memory_of(j->memory, j->ppn),
                                .exclusive = (j->flags & JOB_EXCLUSIVE) != 0,
                                .only = w == NULL ? NULL : &w->on,
                                .exclude = w == NULL ? NULL : &w->exclude,
                                .meets = need == NULL ? NULL : &need->set,
                                .avoid = (j->flags & JOB_LENT) != 0 ? &m->unlent : NULL,
                                .sections = sections == NULL ? NULL : sections->court,
                                .section_count = sections == NULL ? 0 : sections->count,
                                .priority = j->priority,
                                .estimate = family_estimate(m, j),
                                .window = j->window,
                                .rank = j->rank};
}

struct court_order queue_order(struct mm *m, const struct job *j) {
    struct court_order o = plain_order(m, j);
    family_order(m, j, &o);
    return o;
}

/* One that not even all nodes are enough for (any more) waits where nobody looks for it. */
static void arrive(struct mm *m, struct job *j) {
    struct court_order o = queue_order(m, j);
    if (m->splitting || family_follows(m, j))
        return;
    if (j->window != 0 && reserve_of(m, j->window) == NULL)
        reserve_strand(m);
    if (court_arrive(m->court, m->now, &o, &j->seat) < 0)
        j->seat = COURT_NONE;
    m->dirty = true;
}

void queue_leave(struct mm *m, struct job *j) {
    if (j->seat != COURT_NONE)
        court_end(m->court, m->now, j->seat);
    j->seat = COURT_NONE;
    m->dirty = true;
}

void queue_enter(struct mm *m, struct job *j) {
    j->state = STATE_QUEUED;
    if (j->rank == 0)
        j->rank = ++m->ranks;
    m->queued++;
    m->dirty = true;
    if (j->kind == JOB_STEP)
        add_step(m, j);
    else if (!m->replaying)
        arrive(m, j);
}

void queue_off(struct mm *m, struct job *j) {
    if (j->kind == JOB_STEP || j->given)
        unlink_job(m, j);
    j->given = false;
    m->queued--;
    m->dirty = true;
}

void queue_remove(struct mm *m, struct job *j) {
    if (j->waits) {
        waits_drop(m, j);
        return;
    }
    queue_off(m, j);
    queue_leave(m, j);
}

void queue_arrive(struct mm *m, struct job *j) {
    if (j->state == STATE_QUEUED && j->seat == COURT_NONE)
        arrive(m, j);
}

bool queue_seat(struct mm *m, struct job *j, const struct nodeset *nodes, uint32_t slot) {
    struct court_order o = plain_order(m, j);
    if (court_resume(m->court, m->now, &o, m->now, nodes, slot, &j->seat) == 0)
        return true;
    j->seat = COURT_NONE;
    return false;
}

static bool is_held_whole(const struct mm *m, uint32_t node) {
    for (const struct running *r = m->runnings; r < m->runnings + m->running_peak; r++) {
        const struct job *j = r->job == 0 || r->unheld ? NULL : job_find(m, r->job);
        if (j != NULL && (j->flags & JOB_EXCLUSIVE) != 0 && r->phase != PHASE_OVER &&
            nodeset_has(&r->set, node))
            return true;
    }
    return false;
}

/* Its nodes may have had more processors when it started than they are to have now. */
static void widen(struct mm *m, const struct job *j, const struct running *r) {
    NODESET_EACH (n, &r->set)
        if (n < m->config.limits.nodes && (j->flags & JOB_EXCLUSIVE) == 0 && !is_held_whole(m, n) &&
            !nodeset_has(&m->members, n))
            node_widen(m, n, court_node_used(m->court, 0, n) + job_each(m, j, n));
}

/* In which slot it was is not in the log: any will do where its processors are free. */
bool queue_hold(struct mm *m, struct job *j, const struct running *r) {
    struct court_order o = plain_order(m, j);
    uint64_t ago = wall(m) > j->started_ns ? wall(m) - j->started_ns : 0;
    uint64_t started = m->now > ago ? m->now - ago : 0;
    const struct nodeset *nodes = sections_sets(m, j, r);
    for (uint32_t slot = 0; slot < STORM_SLOTS_MAX; slot++)
        if (court_resume(m->court, m->now, &o, started, nodes, slot, &j->seat) == 0)
            return true;
    widen(m, j, r);
    if (court_resume(m->court, m->now, &o, started, nodes, 0, &j->seat) == 0)
        return true;
    j->seat = COURT_NONE;
    return false;
}

void queue_resume(struct mm *m) {
    uint32_t given = m->next_id < m->config.jobs_max ? m->next_id : m->config.jobs_max;
    for (uint32_t i = 0; i < given; i++) {
        struct job *j = &m->jobs[i];
        if (j->id != 0 && j->state == STATE_QUEUED && !j->waits && j->kind != JOB_STEP &&
            j->seat == COURT_NONE)
            arrive(m, j);
    }
}

bool queue_could(struct mm *m, const struct message_submit *s) {
    struct court_order o = {.nodes = s->nodes,
                            .ppn = s->ppn,
                            .memory = job_memory_of(job_memory(s), s->ppn),
                            .only = s->on,
                            .exclude = s->exclude,
                            .window = reserve_find(m, s->reservation, wall(m))};
    struct court_section sections[COURT_SECTIONS_MAX];
    o.sections = sections;
    o.section_count = (s->flags & JOB_SECTIONS) != 0  ? sections_order(s, sections)
                      : (s->flags & JOB_CLASSES) != 0 ? family_sections(s, sections)
                                                      : 0;
    if ((s->flags & JOB_CLASSES) != 0 && o.section_count > 1)
        o.only = NULL; /* its hosts are elsewhere */
    if (roster_count(&m->roster) < s->nodes)
        return false;
    if (m->roster.filled) { /* the court counts vacant numbers, too */
        nodeset_copy(&m->work, &m->taken);
        if (o.only != NULL && !nodeset_empty(o.only))
            nodeset_intersect(&m->work, o.only);
        o.only = &m->work;
    }
    return !(m->roster.filled && nodeset_empty(&m->work)) && court_could(m->court, &o);
}

/* ---- steps ---- */

/* Nodes of the allocation that have room for the step; true if there are enough. */
static bool take_inside(struct mm *m, const struct job *j, struct nodeset *ret) {
    const struct job *around = job_find(m, j->inside);
    struct running *r = around == NULL ? NULL : job_running(m, around);
    nodeset_clear(ret);
    if (r == NULL || around->state != STATE_RUNNING)
        return false;
    const struct wish *w = job_wish(m, j);
    const struct need_kept *need = needs_of(m, j);
    NODESET_EACH (n, &r->set) {
        if (nodeset_count(ret) == j->nodes)
            break;
        bool wanted = (w == NULL || ((nodeset_empty(&w->on) || nodeset_has(&w->on, n)) &&
                                     !nodeset_has(&w->exclude, n))) &&
                      (need == NULL || nodeset_has(&need->set, n));
        if (wanted && r->by_node[n] + j->ppn <= job_each(m, around, n) && node_serves(m, n))
            nodeset_add(ret, n);
    }
    if (nodeset_count(ret) < j->nodes)
        return false;
    NODESET_EACH (n, ret)
        r->by_node[n] = (uint16_t)(r->by_node[n] + j->ppn);
    return true;
}

/* A launch is a request to the primitives, and these take only so many at once. */
static uint32_t starting_max(const struct mm *m) {
    uint32_t most = m->config.limits.outstanding;
    return most > 8 ? most - 4 : most;
}

/* So many, of which one is launched. */
static bool may_start(const struct mm *m, uint32_t count) {
    return m->running_free_count >= count && m->starting < starting_max(m) &&
           m->after_count + 2 * count + 2 < m->after_cap;
}

static void run_steps(struct mm *m) {
    uint32_t ended = 0;
    for (uint32_t at = m->steps_first, next; at != NO_SLOT; at = next) {
        struct job *j = &m->jobs[at];
        next = j->next;
        const struct job *around = job_find(m, j->inside);
        if (around == NULL || state_over((enum job_state)around->state)) {
            if (!after_may_end(m, &ended)) {
                effects_timer(m->out, TIMER_QUEUE, m->now);
                return;
            }
            end_job(m, j, REASON_AROUND, 0, true);
            continue;
        }
        if (!may_start(m, 1) || !take_inside(m, j, &m->work))
            continue;
        queue_off(m, j);
        start_job(m, j, &m->work);
    }
}

/* ---- what the court has decided ---- */

static void take(struct mm *m, const struct court_effect *e) {
    struct job *j =
        e->job == COURT_NONE ? NULL : job_find(m, (uint32_t)court_job(m->court, e->job)->id);
    switch (e->kind) {
    case COURT_START:
        j->given = true;
        link_between(m, j, m->given_last, NO_SLOT);
        break;
    case COURT_STOP:
        end_job(m, j, REASON_POLICY, 0, false);
        break;
    case COURT_SLOTS:
        slices_moved(m, j);
        break;
    case COURT_FAULT:
        policy_fault(m, e->words);
        break;
    case COURT_TURN: /* slices_settle() looks for itself */
        break;
    }
}

static void start_with(struct mm *m, struct job *j, const struct nodeset *set, uint32_t size) {
    if (size > 1 || (j->flags & JOB_CLASSES) != 0) {
        family_start(m, j);
        return;
    }
    queue_off(m, j);
    start_job(m, j, set);
    family_started(m, j);
}

/* May it start where it was given nodes a while ago? One may have gone, may be reserved by now, or its owner may have come. */
static bool still_may(const struct mm *m, const struct job *j, const struct nodeset *set) {
    bool wanted = (j->flags & JOB_LENT) != 0 && nodeset_intersects(set, &m->owners.barred);
    return !wanted && node_all_usable(m, set) && !court_window_bars(m->court, j->seat);
}

/* Who may not any more waits for other nodes. True if anybody does. */
static bool start_given(struct mm *m) {
    bool again = false;
    for (uint32_t at = m->given_first, next; at != NO_SLOT && may_start(m, 1); at = next) {
        struct job *j = &m->jobs[at];
        next = j->next;
        const struct nodeset *set = court_nodes(m->court, j->seat);
        uint32_t size = family_size(m, j);
        if (!may_start(m, size))
            continue;
        if (still_may(m, j, set)) {
            start_with(m, j, set, size);
            continue;
        }
        unlink_job(m, j);
        j->given = false;
        queue_leave(m, j);
        arrive(m, j);
        again = true;
    }
    return again;
}

static void decide(struct mm *m, bool may) {
    struct court_effect e;
    do {
        court_ask(m->court, m->now, may);
        while (court_next(m->court, &e))
            take(m, &e);
    } while (may && start_given(m));
}

static void set_timer(struct mm *m) {
    bool by_itself = m->turns.cycle != 0; /* nobody need be woken for a turn */
    uint64_t at = by_itself ? court_due_but_turns(m->court) : court_due(m->court);
    uint64_t gang = slices_due(m), loans = loans_due(m);
    at = gang < at ? gang : at;
    at = loans < at ? loans : at;
    effects_timer(m->out, TIMER_COURT, at == STORM_NEVER ? 0 : at);
}

void queue_tick(struct mm *m) {
    court_tick(m->court, m->now);
    m->ticked = true;
}

void queue_run(struct mm *m) {
    bool may = !m->stopped && !m->stalled;
    if (m->replaying || !(m->dirty || m->ticked))
        return;
    if (m->orphans && !m->stalled)
        family_end_orphans(m);
    if (m->dirty && may) {
        m->dirty = false;
        end_make_room(m);
        if (m->unsettled)
            node_settle(m);
        waits_end_doomed(m);
        reserve_end_stranded(m);
        run_steps(m);
    }
    if (m->turns.cycle != 0)
        court_tick(m->court, m->now); /* turns that nobody was woken for */
    decide(m, may);
    m->dirty = m->dirty && !may;
    m->ticked = false;
    if (loans_settle(m))
        decide(m, may);
    slices_settle(m);
    set_timer(m);
}

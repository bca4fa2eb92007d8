/* SPDX-License-Identifier: MIT */
/* Why a job waits, and when it is expected to start.
 *
 * What a policy has promised is what is told. Else the head of the queue starts when the estimates of what runs leave
 * room for it. Whoever is behind it, under a policy whose order is known, is put into a plan with all who are
 * before him: under fcfs none of these starts later than that; under easy it is what is to be expected. Somebody
 * very far behind is told nothing, as it would take too long to find out what will not be true anyway. */
#include "sched/court_inside.h"
#include "sched/policies.h"

enum { AHEAD_MAX = 256 };

size_t court_outlook_steps(const struct court *c) {
    return c->config.running + plan_steps(AHEAD_MAX + STORM_WINDOWS_MAX);
}

/* ---- those before it ---- */

/* PEs that are free in the first slot, as what runs ends. */
static void plan_machine(struct court *c, struct plan *p) {
    plan_begin(p, c->forecast, (uint32_t)court_outlook_steps(c), c->now,
               (int64_t)c->matrix.rows[0].free);
    for (uint32_t i = 0; i < c->running && c->ends[i].ends != STORM_NEVER; i++) {
        const struct court_job *r = &c->jobs[c->ends[i].job];
        if (r->pub.slot == 0 && !r->inside)
            plan_append(p, court_end_at(c, c->ends[i].ends), r->pub.pes);
    }
    uint64_t pes, from, to;
    for (uint32_t i = 0; (pes = storm_window(&c->host, i, &from, &to)) != STORM_NEVER; i++)
        if (i < c->windows.open)
            plan_give(p, to, STORM_NEVER, pes);
        else
            plan_take(p, from, to, pes);
}

/* Its time in a plan with all who are before it; STORM_NEVER: it cannot be known. */
static uint64_t forecast(struct court *c, const struct court_job *j, struct court_outlook *ret) {
    bool in_order = c->policy == &policy_fcfs;
    uint32_t looked = 0;
    uint64_t at = c->now;
    struct plan p;
    for (uint32_t i = j->prev; i != COURT_NONE; i = c->jobs[i].prev)
        if (++looked > AHEAD_MAX) {
            ret->long_queue = true;
            return STORM_NEVER;
        }
    plan_machine(c, &p);
    for (uint32_t i = c->queue.first;; i = c->jobs[i].next) {
        const struct court_job *k = &c->jobs[i];
        at = plan_earliest(&p, in_order ? at : c->now, k->pub.estimate, k->pub.pes);
        if (k == j || at == STORM_NEVER)
            return at;
        plan_take(&p, at, units_after(at, k->pub.estimate), k->pub.pes);
    }
}

/* ---- alone ---- */

static uint32_t slots_of(const struct court *c) {
    return court_sliced(c) ? c->limits.slots : 1;
}

/* The slot that it can have first, if nobody else wanted it; and when. */
static uint64_t first_slot(struct court *c, const struct court_job *j, uint32_t *ret_slot) {
    uint64_t best = STORM_NEVER, most = 0;
    *ret_slot = 0;
    for (uint32_t s = 0; s < slots_of(c); s++) {
        uint64_t at = court_earliest(c, j, s), left = c->matrix.rows[s].free;
        if (at < best || (at == best && at == STORM_NEVER && left > most))
            *ret_slot = s;
        best = at < best ? at : best;
        most = left > most ? left : most;
    }
    return best;
}

static bool in_the_way(const struct court *c, const struct court_job *j, const struct court_job *r,
                       uint32_t slot) {
    const struct court_window *own = j->window == 0 ? NULL : court_window_find(c, j->window);
    bool shares = r->takes_memory && court_memory_for(c, j) != NULL; /* memory, in all slots */
    return (r->pub.slot == slot || shares) &&
           (j->only == NULL || nodeset_intersects(j->only, &c->sets[r->set])) &&
           (j->meets == NULL || nodeset_intersects(j->meets, &c->sets[r->set])) &&
           (own == NULL ? !r->inside : nodeset_intersects(&own->nodes, &c->sets[r->set]));
}

/* Whose end it is that makes room at `at`, or will never come. */
static void find_culprit(const struct court *c, const struct court_job *j, uint64_t at,
                         struct court_outlook *ret) {
    for (uint32_t i = 0; i < c->running; i++) {
        const struct court_job *r = &c->jobs[c->ends[i].job];
        uint64_t ends = c->ends[i].ends;
        if (!in_the_way(c, j, r, ret->slot))
            continue;
        if (ends == STORM_NEVER && at == STORM_NEVER && ret->endless == 0)
            ret->endless = r->pub.id;
        else if (ends != STORM_NEVER && court_end_at(c, ends) == at && ret->ends == 0)
            ret->ends = r->pub.id;
    }
}

/* Is there room for it on some node of the window? */
static bool has_room(const struct court *c, const struct court_job *j,
                     const struct court_window *w) {
    struct want want = court_want(j);
    NODESET_EACH (n, &w->nodes)
        if (nodeset_has(&c->windows.up, n) && c->room.free[n] >= want.ppn)
            return true;
    return false;
}

/* A window that keeps it out now, though there would be room, one that is to come before others: a shorter limit would
 * help; or one whose end it waits for. */
static uint32_t find_window(struct court *c, const struct court_job *j, uint64_t at,
                            uint32_t slot) {
    const struct court_windows *w = &c->windows;
    uint64_t mask = court_bar_at(c, j, c->now).mask;
    if (mask != 0 && court_room_now(c, j, slot, false, true) >= j->pub.nodes) {
        for (uint32_t i = w->open; i < w->count; i++)
            if ((mask >> i & 1) && has_room(c, j, &w->at[i]))
                return w->at[i].id;
        return w->at[__builtin_ctzll(mask)].id;
    }
    for (uint32_t i = 0; i < w->count; i++)
        if (w->at[i].to == at)
            return w->at[i].id;
    mask &= w->open == STORM_WINDOWS_MAX ? UINT64_MAX : ((uint64_t)1 << w->open) - 1;
    return at == STORM_NEVER && mask != 0 ? w->at[__builtin_ctzll(mask)].id : 0;
}

static void find_lacking(struct court *c, const struct court_job *j, struct court_outlook *ret) {
    uint32_t fit = court_room_now(c, j, ret->slot, true, false);
    uint64_t each = j->pub.exclusive ? c->config.limits.pes_max : j->pub.ppn;
    ret->lacks = fit >= j->pub.nodes ? 0 : (uint64_t)(j->pub.nodes - fit) * each;
    if (court_memory_for(c, j) != NULL)
        ret->lacks_memory = fit - court_room_now(c, j, ret->slot, true, true);
}

void court_outlook(struct court *c, uint32_t job, struct court_outlook *ret) {
    const struct court_job *j = &c->jobs[job];
    *ret = (struct court_outlook){.at = STORM_NEVER};
    if (j->where != WHERE_QUEUE && j->where != WHERE_BOOKED)
        return;
    uint64_t alone = first_slot(c, j, &ret->slot);
    find_lacking(c, j, ret);
    find_culprit(c, j, alone, ret);
    if (c->windows.count > 0 && j->window == 0)
        ret->window = find_window(c, j, alone, ret->slot);
    if (j->pub.reserved != STORM_NEVER)
        ret->at = j->pub.reserved > c->now ? j->pub.reserved : c->now;
    else if (j->where == WHERE_BOOKED || j->prev == COURT_NONE)
        ret->at = alone;
    else if (alone != STORM_NEVER && (c->policy == &policy_fcfs || c->policy == &policy_easy))
        ret->at = forecast(c, j, ret);
    if (ret->at < alone)
        ret->at = alone;
}

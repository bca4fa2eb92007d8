/* SPDX-License-Identifier: MIT */
/* Processors that are lent, and called back when somebody waits for them who is no borrower (decision 50).
 *
 * Borrowers stand behind everybody else in the queue, so if the first who waits is none, others want what is lent. As
 * many loans are called back as the first needs to start, and none if all would not be enough. What is called back is suspended, and
 * ended after a while; if it is not wanted any more by then, it goes on. Meanwhile no other loan comes to the nodes that the first is to have. The same happens where the owner of a machine comes
 * back to it (owners.c). */
#include "mm/inside.h"

/* Who waits first and is no borrower; NULL: nobody. Where time is shared everybody gets a turn: nothing is called back. */
static const struct job *first_waiting(const struct mm *m) {
    uint32_t seat = court_head(m->court);
    const struct job *j =
        seat == COURT_NONE ? NULL : job_find(m, (uint32_t)court_job(m->court, seat)->id);
    if (j == NULL || j->given || (j->flags & JOB_LENT) != 0 || m->turns.sharing)
        return NULL;
    return j;
}

static bool is_lent(const struct mm *m, const struct running *r, const struct job **ret) {
    *ret = r->job == 0 ? NULL : job_find(m, r->job);
    return *ret != NULL && ((*ret)->flags & JOB_LENT) != 0 && r->phase == PHASE_GOING;
}

/* How many processors of each node are lent, of which none is wanted yet; and on which nodes some are on their way back already. */
static void count_lent(struct mm *m) {
    const struct job *j;
    for (uint32_t n = 0; n < m->config.limits.nodes; n++)
        m->lent_by_node[n] = m->missing_by_node[n] = 0;
    nodeset_clear(&m->called);
    for (struct running *r = m->runnings; r < m->runnings + m->running_peak; r++)
        if (is_lent(m, r, &j))
            NODESET_EACH (n, &r->set) {
                m->lent_by_node[n] = (uint16_t)(m->lent_by_node[n] + job_each(m, j, n));
                if (r->called || j->state == STATE_ENDING)
                    nodeset_add(&m->called, n);
            }
}

/* Some nodes that somebody wants. */
struct wanted {
    uint32_t nodes, ppn;
    bool whole;  /* nodes without anybody else */
    bool memory; /* and some of that: nobody looks who has it, so all loans there are wanted */
    const struct nodeset *meets;
    const struct nodeset *barred; /* a reservation would begin before it is over; NULL: none */
    const struct nodeset *only, *exclude; /* NULL or empty: it does not matter; none */
};

static bool suits(const struct mm *m, const struct wanted *w, uint32_t n) {
    return node_usable(m, n) && (w->meets == NULL || nodeset_has(w->meets, n)) &&
           (w->barred == NULL || !nodeset_has(w->barred, n)) &&
           (w->only == NULL || nodeset_empty(w->only) || nodeset_has(w->only, n)) &&
           (w->exclude == NULL || !nodeset_has(w->exclude, n));
}

/* Nodes that have room for it, if what is lent is given back or not, and are not in `taken`: these come there. Those of `only`, if it
 * is not NULL. So many of them at most. What is missing there is noted. */
static uint32_t take_nodes(struct mm *m, const struct wanted *w, bool lent, uint32_t most,
                           const struct nodeset *only, struct nodeset *taken) {
    uint32_t count = 0;
    NODESET_EACH (n, &m->taken) {
        if (count == most)
            break;
        if (nodeset_has(taken, n) || (only != NULL && !nodeset_has(only, n)) || !suits(m, w, n))
            continue;
        uint32_t all = court_node_pes_of(m->court, n), each = w->whole ? all : w->ppn;
        uint32_t free = all - court_node_used(m->court, 0, n);
        if (free + (lent ? m->lent_by_node[n] : 0) < each)
            continue;
        nodeset_add(taken, n);
        if (lent)
            m->missing_by_node[n] = w->memory ? UINT16_MAX : (uint16_t)(each - free);
        count++;
    }
    return count;
}

/* First what is free, then what is on its way back, then the rest. False: that is not enough. */
static bool find_nodes(struct mm *m, const struct wanted *w, struct nodeset *taken) {
    uint32_t found = take_nodes(m, w, false, w->nodes, NULL, taken);
    found += take_nodes(m, w, true, w->nodes - found, &m->called, taken);
    found += take_nodes(m, w, true, w->nodes - found, NULL, taken);
    return found == w->nodes;
}

/* Some are missing where it is to be: no other loan comes there before it, however small. */
static void claim(struct mm *m, const struct nodeset *taken) {
    NODESET_EACH (n, taken)
        if (m->missing_by_node[n] > 0) {
            nodeset_copy(&m->claimed, taken);
            return;
        }
}

/* How many processors are missing where. */
static void choose(struct mm *m, const struct job *first) {
    struct court_order o = queue_order(m, first);
    struct nodeset *taken = &m->scratch[1];
    struct wanted all = {.nodes = o.nodes,
                         .ppn = o.ppn,
                         .whole = o.exclusive,
                         .memory = o.memory > 0,
                         .meets = o.meets,
                         .only = o.only,
                         .exclude = o.exclude};
    bool enough = court_window_leaves(m->court, first->seat, &all.barred);
    nodeset_clear(taken);
    if (enough && o.section_count == 0)
        enough = find_nodes(m, &all, taken);
    for (uint32_t k = 0; enough && k < o.section_count; k++) {
        struct wanted part = all;
        part.nodes = o.sections[k].nodes;
        part.ppn = o.sections[k].ppn;
        part.memory = o.sections[k].memory > 0;
        part.meets = o.sections[k].meets;
        part.only = o.sections[k].only != NULL ? o.sections[k].only : o.only;
        enough = find_nodes(m, &part, taken);
    }
    if (enough)
        claim(m, taken);
    for (uint32_t n = 0; !enough && n < m->config.limits.nodes; n++)
        m->missing_by_node[n] = 0;
}

/* What is on a node that is to be emptied, or that its owner needs, is called back whoever waits. */
static bool must_leave(const struct mm *m, const struct running *r) {
    uint32_t n = nodeset_first(&r->set);
    return nodeset_intersects(&r->set, &m->owners.reclaimed) ||
           (n != NODESET_NONE && m->nodes[n].drained);
}

/* Does it have some of what is missing? That is less then. */
static bool covers(struct mm *m, const struct job *j, const struct running *r) {
    bool some = false;
    NODESET_EACH (n, &r->set) {
        uint32_t each = job_each(m, j, n), missing = m->missing_by_node[n];
        some = some || missing > 0;
        if (missing != UINT16_MAX)
            m->missing_by_node[n] = (uint16_t)(each < missing ? missing - each : 0);
    }
    return some;
}

/* One that nobody else waits for, where it is not known (any more) whether the owner is there, was called back for him. */
enum reason loans_reason(const struct mm *m, const struct running *r) {
    uint32_t n = nodeset_first(&r->set);
    if (nodeset_intersects(&r->set, &m->owners.reclaimed))
        return REASON_OWNER;
    if (n != NODESET_NONE && m->nodes[n].drained)
        return REASON_DRAINED;
    bool maybe = nodeset_intersects(&r->set, &m->owners.barred);
    return maybe && !nodeset_intersects(&r->set, &m->claimed) ? REASON_OWNER : REASON_CLAIMED;
}

static void call_back(struct mm *m, struct job *j, struct running *r) {
    bool kept = r->called; /* by a life before */
    r->rests = kept ? r->rests : r->suspended;
    r->called = true;
    r->vacate_at = m->now + m->config.vacate_ns;
    if (r->rests && !kept)
        after_keep(m, j, record_hold(m, j, r));
    act_hold(m, j, true);
    due_set(m, r);
}

/* What its user had suspended stays so. */
static void let_go_on(struct mm *m, struct job *j, struct running *r) {
    r->called = false;
    r->vacate_at = 0;
    if (r->rests)
        after_keep(m, j, record_hold(m, j, r));
    else
        act_hold(m, j, false);
    r->rests = false;
    due_set(m, r);
}

/* After a restart it takes a while until it is known who is there: until then nobody is let go on who was called back. */
uint64_t loans_due(const struct mm *m) {
    uint64_t at = m->booted - m->wall_ns + m->config.absent_ns;
    return m->lent == 0 || m->now >= at ? STORM_NEVER : at;
}

/* Those that give back anyway come first, then those that know that they have to: the others go on if that is enough. */
enum turn { TURN_LEAVES, TURN_CALLED, TURN_OTHERS, TURNS };

static enum turn turn_of(const struct mm *m, const struct job *j, const struct running *r) {
    if (j->state == STATE_ENDING || must_leave(m, r))
        return TURN_LEAVES;
    return r->called ? TURN_CALLED : TURN_OTHERS;
}

static void settle(struct mm *m, struct job *j, struct running *r, bool knows) {
    bool wanted = covers(m, j, r) || must_leave(m, r);
    if (j->state == STATE_ENDING)
        return;
    if (wanted && r->vacate_at == 0)
        call_back(m, j, r);
    else if (!wanted && r->called && knows && !nodeset_intersects(&r->set, &m->owners.barred))
        let_go_on(m, j, r);
}

bool loans_bar(struct mm *m) {
    nodeset_copy(&m->work, &m->claimed);
    nodeset_unite(&m->work, &m->owners.barred);
    if (nodeset_equal(&m->work, &m->unlent))
        return false;
    nodeset_copy(&m->unlent, &m->work);
    court_met(m->court, m->now);
    return true;
}

bool loans_settle(struct mm *m) {
    const struct job *first = first_waiting(m), *j;
    bool knows = loans_due(m) == STORM_NEVER;
    nodeset_clear(&m->claimed);
    if (m->lent == 0)
        return loans_bar(m);
    count_lent(m);
    if (first != NULL)
        choose(m, first);
    for (enum turn turn = TURN_LEAVES; turn < TURNS; turn++)
        for (struct running *r = m->runnings; r < m->runnings + m->running_peak; r++)
            if (is_lent(m, r, &j) && turn_of(m, j, r) == turn)
                settle(m, job_find(m, r->job), r, knows);
    return loans_bar(m);
}

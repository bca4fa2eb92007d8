/* SPDX-License-Identifier: MIT */
/* What checkers may see of the manager: its jobs, and whether its books agree with each other.
 *
 * Nothing here changes anything. The reckoning is done anew from the tables, not with the functions
 * that keep them. */
#include "mm/inside.h"

bool mm_job(const struct mm *m, uint32_t id, struct mm_job *ret) {
    const struct job *j = job_find(m, id);
    const struct running *r = j == NULL ? NULL : job_running(m, j);
    if (j == NULL)
        return false;
    *ret = (struct mm_job){.state = (enum job_state)j->state,
                           .kind = (enum job_kind)j->kind,
                           .settled = j->settled,
                           .logged = j->logged,
                           .attempt = j->attempt,
                           .status = j->status,
                           .output = j->output,
                           .usage = j->usage,
                           .each = j->flags & JOB_EXCLUSIVE ? m->config.pes : j->ppn,
                           .inside = j->inside,
                           .parent = j->parent,
                           .nodes = r == NULL ? NULL : &r->set,
                           .waiting = r == NULL ? NULL : &r->waiting,
                           .phase = r == NULL ? 0 : r->phase,
                           .reason = j->reason,
                           .row = j->seat == COURT_NONE ? 0 : court_job(m->court, j->seat)->slot,
                           .holds = r != NULL && r->phase != PHASE_OVER,
                           .held = r != NULL && r->phase != PHASE_OVER && !r->unheld,
                           .begun = r != NULL && r->phase != PHASE_LOGGING,
                           .asked = r != NULL && r->phase != PHASE_OVER && j->reason == REASON_USER,
                           .suspended = r != NULL && r->suspended};
    return true;
}

void mm_why(const struct mm *m, uint32_t id, char *out, size_t cap) {
    const struct job *j = job_find(m, id);
    struct text t;
    text_init(&t, out, cap);
    if (j != NULL && j->state == STATE_QUEUED)
        why_waits((struct mm *)m, j, WHY_LONG, &t); /* only its scratch sets change */
}

uint32_t mm_next_job(const struct mm *m) {
    return m->next_id;
}

bool mm_replaying(const struct mm *m) {
    return m->replaying;
}

bool mm_quiet(const struct mm *m) {
    return m->after_count == 0 && m->starting == 0 && m->durable == m->tickets && !m->stalled &&
           !m->replaying;
}

bool mm_launching(const struct mm *m) {
    for (uint32_t i = 0; m->starting > 0 && i < m->running_peak; i++)
        if (m->runnings[i].job != 0 && m->runnings[i].phase == PHASE_LAUNCHING)
            return true;
    return false;
}

bool mm_drained(const struct mm *m, uint32_t node) {
    return m->nodes[node].drained;
}

uint64_t mm_reserved(const struct mm *m, uint32_t node, uint64_t at_ns) {
    uint64_t until = 0;
    for (const struct reservation *r = m->reservations; r < m->reservations + STORM_WINDOWS_MAX;
         r++)
        if (r->id != 0 && r->to_ns > at_ns && r->to_ns > until && nodeset_has(&r->nodes, node))
            until = r->to_ns;
    return until;
}

uint64_t mm_calendar(const struct mm *m) {
    return wall(m);
}

void mm_policy(const struct mm *m, struct mm_policy *ret) {
    const struct storm_limits *l = court_limits(m->court);
    *ret = (struct mm_policy){.policy = court_policy(m->court),
                              .slots = l->slots,
                              .quantum_ns = l->quantum,
                              .rows = court_rows(m->court),
                              .fault = m->fault};
}

/* ---- S9 ---- */

/* What is looked at: places of jobs and of what runs. */
struct look {
    const struct mm *m;
    uint32_t jobs, runnings;
    uint32_t *scratch; /* by node */
    bool all;
};

static const struct job *job_at(const struct look *l, uint32_t place, const struct running **ret) {
    *ret = &l->m->runnings[place];
    return (*ret)->job == 0 ? NULL : job_find(l->m, (*ret)->job);
}

static const char *wrong_place(const struct look *l, uint32_t place) {
    const struct running *r;
    const struct job *j = job_at(l, place, &r);
    if (j == NULL)
        return "something is held for a job that is not there";
    if (j->slot != place)
        return "a job has lost what is held for it";
    if (state_over((enum job_state)j->state) != (r->phase == PHASE_OVER))
        return "a job that is over holds nodes, or one that is not does not";
    if (!nodeset_covers(&r->set, &r->waiting) || !nodeset_covers(&r->waiting, &r->lost))
        return "a job waits for nodes that are not its own";
    return NULL;
}

static const char *wrong_running(const struct look *l) {
    const struct mm *m = l->m;
    uint32_t count = 0, starting = 0, timed = 0;
    for (uint32_t i = 0; i < l->runnings; i++) {
        const struct running *r = &m->runnings[i];
        if (r->job == 0)
            continue;
        const char *why = wrong_place(l, i);
        if (why != NULL)
            return why;
        count++;
        starting += r->phase < PHASE_GOING && job_find(m, r->job)->kind != JOB_ALLOC;
        timed += heap_item_queued(&r->due);
    }
    if (!m->replaying && starting != m->starting)
        return "jobs that are being started are counted wrong";
    if (timed != m->dues.count)
        return "times are kept for nobody";
    if (count + m->running_free_count != m->running_cap)
        return "places for running jobs are lost";
    return count == m->running_count ? NULL : "running jobs are counted wrong";
}

/* While the log is read, the court has heard of nobody. What is too large for it is not there either. */
static bool in_court(const struct mm *m, const struct job *j) {
    return j->state == STATE_QUEUED && !j->waits && j->kind != JOB_STEP &&
           (m->replaying || j->seat == COURT_NONE || court_job(m->court, j->seat)->id == j->id);
}

static const char *wrong_queue(const struct look *l) {
    const struct mm *m = l->m;
    uint32_t queued = 0, listed = 0;
    for (uint32_t i = 0; i < l->jobs; i++) {
        const struct job *j = &m->jobs[i];
        if (j->id == 0)
            continue;
        queued += j->state == STATE_QUEUED;
        listed += j->waits || in_court(m, j);
        if (j->waits && j->state != STATE_QUEUED)
            return "a job that has started waits for its start";
        if (j->state == STATE_QUEUED && j->slot != NO_SLOT)
            return "a queued job holds nodes";
        if (j->slot == NO_SLOT && j->state > STATE_QUEUED && !state_over((enum job_state)j->state))
            return "a job that is not over is neither queued nor has nodes";
    }
    for (uint32_t at = m->steps_first; at != NO_SLOT && listed <= queued; at = m->jobs[at].next)
        listed++;
    return queued == listed && queued == m->queued ? NULL : "queued jobs are counted wrong";
}

/* PEs that jobs hold in a row, steps not: they use what their allocation holds. */
static const char *wrong_row(const struct look *l, uint32_t row) {
    const struct mm *m = l->m;
    const struct running *r;
    for (uint32_t i = 0; i < m->config.limits.nodes; i++)
        l->scratch[i] = 0;
    for (uint32_t i = 0; i < l->runnings; i++) {
        const struct job *j = job_at(l, i, &r);
        if (j == NULL || r->phase == PHASE_OVER || r->unheld || j->kind == JOB_STEP)
            continue;
        if (j->seat == COURT_NONE)
            return "a job that holds nodes is not known in court";
        if (court_job(m->court, j->seat)->slot != row)
            continue;
        NODESET_EACH (n, &r->set)
            l->scratch[n] += job_each(m, j, n);
    }
    for (uint32_t at = m->given_first; at != NO_SLOT; at = m->jobs[at].next) {
        const struct job *j = &m->jobs[at];
        if (court_job(m->court, j->seat)->slot != row)
            continue;
        NODESET_EACH (n, court_nodes(m->court, j->seat))
            l->scratch[n] += job_each(m, j, n);
    }
    for (uint32_t i = 0; i < m->config.limits.nodes; i++) {
        if (l->scratch[i] != court_node_used(m->court, row, i))
            return "processors are held for nobody, or not for somebody";
        if (l->scratch[i] > court_node_pes_of(m->court, i))
            return "more processors are held than there are";
    }
    return NULL;
}

/* Rows that have nobody, but for the first, are looked at now and then. */
static const char *wrong_nodes(const struct look *l) {
    const char *why = NULL;
    for (uint32_t row = 0; row < STORM_SLOTS_MAX && why == NULL; row++)
        if (l->all || row == 0 || court_row_jobs(l->m->court, row) > 0)
            why = wrong_row(l, row);
    return why;
}

/* What an allocation says that its steps use is what they use. */
static const char *wrong_steps(const struct look *l, const struct job *around,
                               const struct running *a) {
    const struct running *r;
    uint32_t steps = 0;
    NODESET_EACH (n, &a->set)
        l->scratch[n] = 0;
    for (uint32_t i = 0; i < l->runnings; i++) {
        const struct job *j = job_at(l, i, &r);
        if (j == NULL || j->kind != JOB_STEP || j->inside != around->id || r->phase == PHASE_OVER)
            continue;
        if (!nodeset_covers(&a->set, &r->set))
            return "a step is outside its allocation";
        steps++;
        NODESET_EACH (n, &r->set)
            l->scratch[n] += j->ppn;
    }
    NODESET_EACH (n, &a->set)
        if (l->scratch[n] != a->by_node[n] || l->scratch[n] > job_each(l->m, around, n))
            return "an allocation has lost count of what its steps use";
    return steps == a->steps ? NULL : "an allocation has lost count of its steps";
}

static const char *wrong_allocations(const struct look *l) {
    const struct running *r;
    const char *why = NULL;
    for (uint32_t i = 0; why == NULL && i < l->runnings; i++) {
        const struct job *j = job_at(l, i, &r);
        if (j != NULL && j->kind == JOB_ALLOC && r->phase != PHASE_OVER)
            why = wrong_steps(l, j, r);
    }
    return why;
}

static uint32_t count_hosts(const struct look *l, const struct job *parent) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->jobs; i++) {
        const struct job *j = &l->m->jobs[i];
        count += j->id != 0 && j->parent == parent->id && !state_over((enum job_state)j->state);
    }
    return count;
}

/* Hosts are counted, and none outlives its job. */
static const char *wrong_families(const struct look *l) {
    const struct mm *m = l->m;
    uint32_t hosts = 0;
    for (uint32_t i = 0; i < l->jobs; i++) {
        const struct job *j = &m->jobs[i];
        if (j->id == 0)
            continue;
        if (j->children > 0 && count_hosts(l, j) != j->children)
            return "a job has lost count of its hosts";
        if (j->parent == 0 || state_over((enum job_state)j->state))
            continue;
        const struct job *parent = job_find(m, j->parent);
        hosts++;
        if (j->logged && (parent == NULL || parent->settled))
            return "a host has outlived its job";
    }
    return hosts == m->hosts ? NULL : "hosts are counted wrong";
}

/* What is reserved is known in court, and nobody was started there who does not belong to it. */
static const char *wrong_reservations(const struct look *l) {
    const struct running *r;
    bool open;
    for (const struct reservation *w = l->m->reservations;
         w < l->m->reservations + STORM_WINDOWS_MAX; w++) {
        if (w->id == 0 || w->to_ns <= wall(l->m))
            continue;
        if (!court_window_known(l->m->court, w->id, &open))
            return "a reservation is not known in court";
        uint64_t from = w->from_ns > w->made_ns ? w->from_ns : w->made_ns;
        for (uint32_t i = 0; i < l->runnings; i++) {
            const struct job *j = job_at(l, i, &r);
            if (j != NULL && j->kind != JOB_STEP && r->phase != PHASE_OVER && j->window != w->id &&
                j->started_ns > from && nodeset_intersects(&r->set, &w->nodes))
                return "a job was started on nodes that are reserved for others";
        }
    }
    return NULL;
}

const char *mm_wrong(const struct mm *m, uint32_t *scratch, bool all) {
    uint32_t given = m->next_id < m->config.jobs_max ? m->next_id : m->config.jobs_max;
    struct look l = {.m = m,
                     .scratch = scratch,
                     .all = all,
                     .jobs = all ? m->config.jobs_max : given,
                     .runnings = all ? m->running_cap : m->running_peak};
    const char *why = wrong_running(&l);
    if (why == NULL)
        why = wrong_queue(&l);
    if (why != NULL || m->replaying)
        return why;
    if (all && !court_conserved(m->court))
        return "the court's books do not add up";
    why = wrong_nodes(&l);
    if (why == NULL)
        why = wrong_reservations(&l);
    if (why == NULL)
        why = wrong_families(&l);
    return why != NULL ? why : wrong_allocations(&l);
}

/* ---- S10 ---- */

const char *mm_over_limit(const struct mm *m) {
    if (m->running_count > m->running_cap || m->running_peak > m->running_cap)
        return "more jobs run than there are places";
    if (m->queued > m->config.jobs_max)
        return "more jobs are queued than there are places";
    if (m->starting > m->config.limits.outstanding)
        return "more jobs are being started than requests can be asked";
    if (m->after_count > m->after_cap || m->after_head >= m->after_cap)
        return "more waits for the log than there is room for";
    if (m->dues.count > m->dues.cap)
        return "more times are kept than there are places";
    if (m->forget_count >= sizeof m->forget / sizeof *m->forget)
        return "more runs are to be forgotten than there is room for";
    return NULL;
}

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
                           .each = j->flags & JOB_EXCLUSIVE ? m->config.pes : j->ppn,
                           .inside = j->inside,
                           .nodes = r == NULL ? NULL : &r->set,
                           .waiting = r == NULL ? NULL : &r->waiting,
                           .phase = r == NULL ? 0 : r->phase,
                           .reason = j->reason,
                           .holds = r != NULL && r->phase != PHASE_OVER};
    return true;
}

uint32_t mm_next_job(const struct mm *m) {
    return m->next_id;
}

bool mm_quiet(const struct mm *m) {
    return m->after_count == 0 && m->starting == 0 && !m->stalled && !m->replaying;
}

/* PEs of a node that jobs hold, steps not: they use what their allocation holds. */
static uint32_t held(const struct mm *m, uint32_t node) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < m->running_cap; i++) {
        const struct running *r = &m->runnings[i];
        const struct job *j = r->job == 0 ? NULL : job_find(m, r->job);
        if (j == NULL || r->phase == PHASE_OVER || r->unheld || j->kind == JOB_STEP ||
            !nodeset_has(&r->set, node))
            continue;
        sum += j->flags & JOB_EXCLUSIVE ? m->config.pes : j->ppn;
    }
    return sum;
}

static const char *wrong_running(const struct mm *m) {
    uint32_t count = 0, starting = 0;
    for (uint32_t i = 0; i < m->running_cap; i++) {
        const struct running *r = &m->runnings[i];
        if (r->job == 0)
            continue;
        const struct job *j = job_find(m, r->job);
        count++;
        starting += r->phase < PHASE_GOING;
        if (j == NULL)
            return "something is held for a job that is not there";
        if (j->slot != i)
            return "a job has lost what is held for it";
        if (state_over((enum job_state)j->state) != (r->phase == PHASE_OVER))
            return "a job that is over holds nodes, or one that is not does not";
        if (!nodeset_covers(&r->set, &r->waiting) || !nodeset_covers(&r->waiting, &r->lost))
            return "a job waits for nodes that are not its own";
    }
    if (!m->replaying && starting != m->starting)
        return "jobs that are being started are counted wrong";
    return count == m->running_count ? NULL : "running jobs are counted wrong";
}

static const char *wrong_queue(const struct mm *m) {
    uint32_t queued = 0, listed = 0;
    for (uint32_t i = 0; i < m->config.jobs_max; i++) {
        const struct job *j = &m->jobs[i];
        queued += j->id != 0 && j->state == STATE_QUEUED;
        if (j->id != 0 && j->state == STATE_QUEUED && j->slot != NO_SLOT)
            return "a queued job holds nodes";
        if (j->id != 0 && j->slot == NO_SLOT && j->state > STATE_QUEUED &&
            !state_over((enum job_state)j->state))
            return "a job that is not over is neither queued nor has nodes";
    }
    for (uint32_t at = m->queue_first; at != NO_SLOT && listed <= queued; at = m->jobs[at].next)
        listed++;
    for (uint32_t at = m->steps_first; at != NO_SLOT && listed <= queued; at = m->jobs[at].next)
        listed++;
    return queued == listed && queued == m->queued ? NULL : "queued jobs are counted wrong";
}

const char *mm_wrong(const struct mm *m) {
    const char *why = wrong_running(m);
    if (why == NULL)
        why = wrong_queue(m);
    if (why != NULL || m->replaying)
        return why;
    if (!places_conserved(&m->places))
        return "the free processors do not add up";
    for (uint32_t i = 0; i < m->config.limits.nodes; i++)
        if (held(m, i) != places_node_used(&m->places, i))
            return "processors are held for nobody, or not for somebody";
    return NULL;
}

/* SPDX-License-Identifier: MIT */
/* What happens when an event is durable: a ring in the order of tickets.
 *
 * Nothing is said before its event is safe. When an event could not be kept (the disk is full) a
 * submission is refused as if it had never been, a start is put off, and an end or a policy is logged again later. */
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "mm/inside.h"

/* Until what could not be kept is tried again. */
#define STALL_NS NS_PER_S

/* Places that are left for what nobody can refuse; jobs that are ended in one step because of others, each of which is
 * written down, and places for one of them. */
enum { SPARE = 64, ENDS_AT_ONCE = 64, END_PLACES = 4 };

bool after_full(const struct mm *m, uint64_t more) {
    return m->after_count + more + SPARE > m->after_cap;
}

bool after_may_end(const struct mm *m, uint32_t *ended) {
    return m->after_count + END_PLACES < m->after_cap && (*ended)++ < ENDS_AT_ONCE;
}

struct after *after_add(struct mm *m, uint64_t ticket, enum after_kind kind) {
    ASSERT(m->after_count < m->after_cap);
    struct after *a = &m->after[(m->after_head + m->after_count++) % m->after_cap];
    *a = (struct after){.ticket = ticket, .kind = (uint8_t)kind};
    return a;
}

void after_keep(struct mm *m, const struct job *j, uint64_t ticket) {
    after_add(m, ticket, AFTER_KEEP)->job = j->id;
}

static void submitted(struct mm *m, const struct after *a) {
    for (uint32_t i = 0; i < a->count; i++) {
        struct job *j = job_find(m, a->job + i);
        if (j != NULL) {
            j->logged = true;
            m->orphans =
                m->orphans || j->parent != 0; /* its job's own submission may not have been kept */
        }
    }
    client_answer(m, a->link, a->request, ANSWER_DONE, a->job, a->count, "");
}

/* One that has come again while the first was being logged. */
static void answer_again(struct mm *m, const struct after *a) {
    const struct job *j = job_of_request(m, a->request);
    if (j != NULL && j->logged)
        client_answer(m, a->link, a->request, ANSWER_DONE, j->id, a->count, "");
    else
        client_answer(m, a->link, a->request, ANSWER_FULL, 0, 0, "try again in a moment");
}

static void reserved(struct mm *m, const struct after *a, bool kept) {
    const struct reservation *r = reserve_kept(m, a->ticket, kept);
    char name[RESERVATION_NAME_MAX + 1] = "";
    if (kept && r != NULL)
        memcpy(name, r->name, r->name_len);
    client_answer(m, a->link, a->request, kept ? ANSWER_DONE : ANSWER_FULL, 0, a->count,
                  kept ? name : "the manager's disk is full");
}

static void durable(struct mm *m, const struct after *a) {
    struct job *j = job_find(m, a->job);
    switch ((enum after_kind)a->kind) {
    case AFTER_ANSWER:
        submitted(m, a);
        break;
    case AFTER_AGAIN:
        answer_again(m, a);
        break;
    case AFTER_START:
        if (j != NULL)
            start_durable(m, j);
        break;
    case AFTER_SETTLE:
        if (j != NULL)
            end_settled(m, j);
        break;
    case AFTER_NODE:
        node_drain_kept(m, a->ticket, true);
        client_answer(m, a->link, a->request, ANSWER_DONE, 0, 0, "");
        break;
    case AFTER_KEEP:
        break;
    case AFTER_ACT:
    case AFTER_POLICY:
        client_answer(m, a->link, a->request, ANSWER_DONE, a->job, a->count, "");
        break;
    case AFTER_RESERVE:
        reserved(m, a, true);
        break;
    }
}

/* Its submission is not in the log: it has never been. Nothing of it is on any node, as its start comes
 * after it in the log. */
static void unmake(struct mm *m, struct job *j) {
    struct running *r = job_running(m, j);
    if (r != NULL) {
        start_leave(m, r);
        end_give_back(m, j, r);
        running_free(m, r);
        j->slot = NO_SLOT;
    } else if (j->state == STATE_QUEUED) {
        queue_remove(m, j);
    }
    if (!state_over((enum job_state)j->state))
        family_left(m, j);
    job_free(m, j);
}

static void stall(struct mm *m) {
    if (!m->stalled)
        effects_timer(m->out, TIMER_STALL, m->now + STALL_NS);
    m->stalled = true;
}

static void keep_again(struct mm *m, const struct job *j, struct running *r) {
    r->unkept = false;
    if (r->held)
        after_keep(m, j, record_hold(m, j, r));
    if (j->reason != REASON_NONE)
        after_keep(m, j, record_ending(m, j, r));
}

/* What is too much now is tried again when that is through. */
void after_stalled(struct mm *m) {
    m->stalled = false;
    m->dirty = true;
    for (uint32_t i = 0; i < m->config.jobs_max && !after_full(m, 1); i++) {
        struct job *j = &m->jobs[i];
        if (j->id == 0 || !j->unlogged)
            continue;
        j->unlogged = false;
        after_add(m, record_end(m, j), AFTER_SETTLE)->job = j->id;
    }
    for (uint32_t i = 0; i < m->running_peak && !after_full(m, 2); i++) {
        struct running *r = &m->runnings[i];
        if (r->job != 0 && r->unkept && r->phase != PHASE_OVER)
            keep_again(m, job_find(m, r->job), r);
    }
    if (m->kept.unkept)
        policy_keep(m);
    if (after_full(m, 2))
        stall(m);
}

static void put_off(struct mm *m, struct job *j) {
    struct running *r = job_running(m, j);
    if (j->reason != REASON_NONE || r == NULL || r->phase != PHASE_LOGGING) {
        start_durable(m, j); /* it is to end anyway */
        return;
    }
    start_leave(m, r);
    end_give_back(m, j, r);
    running_free(m, r);
    j->slot = NO_SLOT;
    j->attempt--;
    family_look(m); /* hosts come again with the next start */
    queue_enter(m, j);
    stall(m);
}

static void refused(struct mm *m, const struct after *a) {
    struct job *j = job_find(m, a->job);
    switch ((enum after_kind)a->kind) {
    case AFTER_ANSWER:
        client_answer(m, a->link, a->request, ANSWER_FULL, 0, 0,
                      "the manager's disk is full; free some space and try again");
        for (uint32_t i = 0; i < a->count; i++) {
            j = job_find(m, a->job + i);
            if (j != NULL)
                unmake(m, j);
        }
        break;
    case AFTER_AGAIN:
        answer_again(m, a);
        break;
    case AFTER_START:
        if (j != NULL)
            put_off(m, j);
        break;
    case AFTER_SETTLE:
        if (j != NULL) {
            j->unlogged = true;
            stall(m);
        }
        break;
    case AFTER_NODE:
        node_drain_kept(m, a->ticket, false);
        client_answer(m, a->link, a->request, ANSWER_FULL, 0, 0, "the manager's disk is full");
        break;
    case AFTER_KEEP:
        if (j != NULL && job_running(m, j) != NULL) {
            job_running(m, j)->unkept = true;
            stall(m);
        }
        break;
    case AFTER_POLICY:
        m->kept.unkept = true;
        stall(m);
        /* fallthrough */
    case AFTER_ACT:
        client_answer(m, a->link, a->request, ANSWER_FULL, a->job, a->count,
                      "it is done, but the manager's disk is full: a new manager would not know");
        break;
    case AFTER_RESERVE:
        reserved(m, a, false);
        break;
    }
}

void after_logged(struct mm *m, const struct input_logged *in) {
    m->dirty = m->dirty || m->queued > 0 || m->orphans;
    m->durable = in->ticket;
    /* What is added meanwhile has higher tickets. */
    while (m->after_count > 0 && m->after[m->after_head].ticket <= in->ticket) {
        struct after a = m->after[m->after_head];
        m->after_head = (m->after_head + 1) % m->after_cap;
        m->after_count--;
        if (in->error == 0 || a.ticket < in->ticket)
            durable(m, &a);
        else
            refused(m, &a);
    }
}

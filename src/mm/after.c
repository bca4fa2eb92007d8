/* SPDX-License-Identifier: MIT */
/* What happens when an event is durable: a ring in the order of tickets.
 *
 * Nothing is said before its event is safe. When an event could not be kept (the disk is full) a
 * submission is refused, a start is undone, and an end is logged again later. */
#include "base/assert.h"
#include "mm/inside.h"

struct after *after_add(struct mm *m, uint64_t ticket, enum after_kind kind) {
    ASSERT(m->after_count < m->after_cap);
    struct after *a = &m->after[(m->after_head + m->after_count++) % m->after_cap];
    *a = (struct after){.ticket = ticket, .kind = (uint8_t)kind};
    return a;
}

static void submitted(struct mm *m, const struct after *a) {
    for (uint32_t i = 0; i < a->count; i++) {
        struct job *j = job_find(m, a->job + i);
        if (j != NULL)
            j->logged = true;
    }
    client_answer(m, a->link, a->request, ANSWER_DONE, a->job, a->count, "");
}

static void durable(struct mm *m, const struct after *a) {
    struct job *j = job_find(m, a->job);
    switch ((enum after_kind)a->kind) {
    case AFTER_ANSWER:
        submitted(m, a);
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
        client_answer(m, a->link, a->request, ANSWER_DONE, 0, 0, "");
        break;
    }
}

static void refused(struct mm *m, const struct after *a) {
    struct job *j = job_find(m, a->job);
    switch ((enum after_kind)a->kind) {
    case AFTER_ANSWER:
        client_answer(m, a->link, a->request, ANSWER_FULL, 0, 0,
                      "the manager's disk is full; free some space and try again");
        for (uint32_t i = 0; i < a->count; i++) {
            j = job_find(m, a->job + i);
            if (j != NULL && j->state == STATE_QUEUED) {
                queue_remove(m, j);
                job_free(m, j);
            } else if (j != NULL) {
                end_job(m, j, REASON_BAD, 0, true);
            }
        }
        break;
    case AFTER_START:
        if (j != NULL)
            end_job(m, j, REASON_BAD, 0, true);
        if (j != NULL)
            start_durable(m, j);
        break;
    case AFTER_SETTLE:
        if (j != NULL)
            after_add(m, record_end(m, j), AFTER_SETTLE)->job = j->id;
        break;
    case AFTER_NODE:
        client_answer(m, a->link, a->request, ANSWER_FULL, 0, 0, "the manager's disk is full");
        break;
    }
}

void after_logged(struct mm *m, const struct input_logged *in) {
    m->dirty = m->dirty || m->queued > 0;
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

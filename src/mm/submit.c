/* SPDX-License-Identifier: MIT */
/* New jobs: judged, written down, queued. The answer leaves when the submission is durable; one that comes
 * again, because its answer was lost, is answered again. */
#include <string.h>

#include "base/assert.h"
#include "mm/inside.h"

enum { WHY_MAX = NEEDS_WHY_MAX };

bool submit_take(struct mm *m, const struct message_submit *s, uint32_t first, uint32_t count,
                 uint64_t at) {
    bool waits = false;
    uint32_t memory = job_memory(s);
    for (uint32_t i = 0; i < count; i++) {
        struct job *j = job_new(m, first + i);
        if (j != NULL) {
            job_fill(j, s, at);
            j->memory = memory;
            if (!needs_take(m, j, s) || !family_take(m, j, s)) {
                job_free(m, j);
                j = NULL;
            }
        }
        if (j == NULL) { /* the table is full: as if nothing had been */
            if (i > 0)
                waits_forget(m, job_find(m, first));
            while (i-- > 0) {
                j = job_find(m, first + i);
                queue_remove(m, j);
                family_left(m, j);
                job_free(m, j);
            }
            return false;
        }
        job_keep_wish(m, j, s);
        if (s->reservation.len > 0) {
            uint32_t window = reserve_find(m, s->reservation, at);
            j->window = window == 0 ? WINDOW_GONE : window;
        }
        j->key = first;
        family_joined(m, j);
        j->logged = m->replaying;
        j->index = count > 1 || s->array_first > 0 ? s->array_first + i : 0;
        if (i == 0) {
            j->left = j->count = count;
            job_keep_request(m, j);
            waits = waits_take(m, j, s);
        } else {
            j->request[0] = j->request[1] = 0;
        }
        if (waits)
            waits_hold(m, j);
        else
            queue_enter(m, j);
    }
    if (first + count > m->next_id)
        m->next_id = first + count;
    return true;
}

/* The next numbers whose places are free. */
static uint32_t choose_first(struct mm *m, uint32_t count) {
    uint32_t cap = m->config.jobs_max;
    uint32_t first = m->next_id;
    for (uint32_t tried = 0, fit = 0; tried < cap; tried++) {
        const struct job *j = &m->jobs[(first + fit) & (cap - 1)];
        if (j->id == 0 || (j->settled && j->left == 0)) {
            if (++fit == count)
                return first;
            continue;
        }
        first += fit + 1;
        fit = 0;
    }
    return 0;
}

static void refuse(struct mm *m, uint32_t link, const struct message_submit *s, enum answer code,
                   const char *why) {
    client_answer(m, link, s->request, code, 0, 0, why);
}

/* Whoever submits hears what becomes of it. A program follows its whole family already: another follower for every host that it asks for
 * would stay as long as it runs. */
static void follow(struct mm *m, uint32_t link, const struct message_submit *s, uint32_t first) {
    bool told = petition_is(link) && (s->flags & JOB_FAMILY) != 0;
    if (s->kind != JOB_BATCH && !told)
        client_follow(m, link, first, true, false);
}

/* Will he be answered anyway, when it is durable? */
static bool is_awaited(const struct mm *m, uint32_t link, uint32_t job) {
    for (uint32_t i = 0; i < m->after_count; i++) {
        const struct after *a = &m->after[(m->after_head + i) % m->after_cap];
        if (a->kind == AFTER_AGAIN && a->link == link && a->job == job)
            return true;
    }
    return false;
}

/* The same again: its answer was lost, or is on its way. */
static bool known(struct mm *m, uint32_t link, const struct message_submit *s) {
    const struct job *j = job_of_request(m, s->request);
    if (j == NULL)
        return false;
    uint32_t count = s->array_last > s->array_first ? s->array_last - s->array_first + 1 : 1;
    follow(m, link, s, j->id);
    if (j->logged || j->settled) {
        client_answer(m, link, s->request, ANSWER_DONE, j->id, count, "");
        client_news(m, j);
        return true;
    }
    if (is_awaited(m, link, j->id))
        return true;
    if (after_full(m, 0)) {
        refuse(m, link, s, ANSWER_FULL, "too many at once; try again in a moment");
        return true;
    }
    struct after *a = after_add(m, m->tickets, AFTER_AGAIN);
    *a = (struct after){.ticket = a->ticket,
                        .kind = AFTER_AGAIN,
                        .link = link,
                        .request = {s->request[0], s->request[1]},
                        .job = j->id,
                        .count = count};
    return true;
}

uint32_t submit_own(struct mm *m, const struct message_submit *s, uint32_t count) {
    union message whole = {.submit = *s};
    uint32_t first = choose_first(m, count);
    if (first == 0 || !submit_take(m, s, first, count, wall(m)))
        return 0;
    long len = message_encode(MESSAGE_SUBMIT, &whole, effects_tail(m->out));
    ASSERT(len > 0);
    struct bytes body = effects_take(m->out, (size_t)len);
    m->submitted += count;
    struct after *a = after_add(m, record_submit(m, job_find(m, first), count, body), AFTER_ANSWER);
    a->job = first;
    a->count = count;
    return first;
}

void submit_heard(struct mm *m, uint32_t link, const struct message_submit *s, struct bytes body) {
    char words[WHY_MAX];
    struct text why;
    text_init(&why, words, sizeof words);
    if (known(m, link, s))
        return;
    uint32_t count = s->array_last > s->array_first ? s->array_last - s->array_first + 1 : 1;
    if (m->stopped) {
        refuse(m, link, s, ANSWER_REFUSED, "the cluster is going down");
        return;
    }
    if (after_full(m, 0) || count > m->config.jobs_max / 2) {
        refuse(m, link, s, ANSWER_FULL, "too many at once; try again in a moment");
        return;
    }
    if (why_not(m, s, &why) < 0) {
        refuse(m, link, s, ANSWER_REFUSED, words);
        return;
    }
    uint32_t first = choose_first(m, count);
    if (first == 0 || !submit_take(m, s, first, count, wall(m))) {
        bool needs = first != 0 && (s->flags & (JOB_NEEDS | JOB_SECTIONS | JOB_CLASSES)) != 0;
        refuse(m, link, s, ANSWER_FULL,
               needs ? "too many different needs are queued; try again later"
                     : "too many jobs are queued; try again later");
        return;
    }
    m->submitted += count;
    follow(m, link, s, first);
    struct after *a = after_add(m, record_submit(m, job_find(m, first), count, body), AFTER_ANSWER);
    a->link = link;
    a->job = first;
    a->count = count;
    a->request[0] = s->request[0];
    a->request[1] = s->request[1];
}

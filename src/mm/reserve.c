/* SPDX-License-Identifier: MIT */
/* Reservations: nodes that are kept for some jobs, from then until then.
 *
 * A reservation has a name, and jobs that name it start in it and nowhere else. What nobody names is for maintenance. The
 * court sees to it that nothing else starts there (sched/court_window.c); here they are told, kept in the log and
 * forgotten when they are over. Whoever waits for one that is over would wait for ever, and is ended. */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "mm/inside.h"

/* ---- the table ---- */

void reserve_init(struct mm *m, uint64_t *storage) {
    uint32_t universe = limits_universe(&m->config.limits);
    for (uint32_t i = 0; i < STORM_WINDOWS_MAX; i++, storage += nodeset_bytes(universe) / 8)
        nodeset_init(&m->reservations[i].nodes, universe, storage);
}

const struct reservation *reserve_of(const struct mm *m, uint32_t id) {
    for (uint32_t i = 0; i < STORM_WINDOWS_MAX; i++)
        if (m->reservations[i].id == id && id != 0)
            return &m->reservations[i];
    return NULL;
}

static bool is_named(const struct reservation *r, struct bytes name) {
    return r->id != 0 && r->name_len == name.len && memcmp(r->name, name.at, name.len) == 0;
}

uint32_t reserve_find(const struct mm *m, struct bytes name, uint64_t at_ns) {
    for (uint32_t i = 0; name.len > 0 && i < STORM_WINDOWS_MAX; i++)
        if (is_named(&m->reservations[i], name) && m->reservations[i].to_ns > at_ns)
            return m->reservations[i].id;
    return 0;
}

/* Of this life. */
static uint64_t tick_of(const struct mm *m, uint64_t calendar_ns) {
    return calendar_ns > m->wall_ns ? calendar_ns - m->wall_ns : 0;
}

static void set_timer(struct mm *m) {
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < STORM_WINDOWS_MAX; i++)
        if (m->reservations[i].id != 0 && m->reservations[i].to_ns < next)
            next = m->reservations[i].to_ns;
    if (!m->replaying)
        effects_timer(m->out, TIMER_RESERVE, next == UINT64_MAX ? 0 : tick_of(m, next));
}

static void drop(struct mm *m, struct reservation *r) {
    if (!m->replaying)
        court_window_remove(m->court, m->now, r->id);
    r->id = 0;
    m->stranded = m->dirty = true;
    m->stranded_at = 0;
}

static void drop_over(struct mm *m, uint64_t at_ns) {
    for (uint32_t i = 0; i < STORM_WINDOWS_MAX; i++)
        if (m->reservations[i].id != 0 && m->reservations[i].to_ns <= at_ns)
            drop(m, &m->reservations[i]);
}

static struct reservation *add(struct mm *m, const struct message_reserve *w, uint64_t at_ns) {
    struct reservation *r = m->reservations;
    while (r < m->reservations + STORM_WINDOWS_MAX && r->id != 0)
        r++;
    if (r == m->reservations + STORM_WINDOWS_MAX)
        return NULL;
    r->id = ++m->reservation_ids;
    r->leaving = false;
    r->ticket = 0;
    r->made_ns = at_ns;
    r->request[0] = w->request[0];
    r->request[1] = w->request[1];
    r->from_ns = w->from_ns;
    r->to_ns = w->to_ns;
    nodeset_copy(&r->nodes, w->nodes);
    r->name_len = (uint32_t)w->name.len;
    memcpy(r->name, w->name.at, w->name.len);
    return r;
}

/* Takes it into court. 0, or -errno: there it is judged. */
static int book(struct mm *m, const struct reservation *r) {
    return court_window_add(m->court, m->now, r->id, tick_of(m, r->from_ns), tick_of(m, r->to_ns),
                            &r->nodes);
}

/* ---- from clients ---- */

static void answer(struct mm *m, uint32_t link, const struct message_reserve *w, enum answer code,
                   const char *text) {
    client_answer(m, link, w->request, code, 0, 0, text);
}

static bool is_good_name(struct bytes name) {
    for (size_t i = 0; i < name.len; i++) {
        char c = (char)name.at[i];
        if (!text_is_digit(c) && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '-' &&
            c != '_' && c != '.')
            return false;
    }
    return true;
}

/* "r7", with the next number whose name is not taken. */
static struct bytes find_name(const struct mm *m, char out[RESERVATION_NAME_MAX]) {
    struct text t;
    uint32_t number = m->reservation_ids;
    do {
        text_init(&t, out, RESERVATION_NAME_MAX);
        text_char(&t, 'r');
        text_u64(&t, ++number);
    } while (reserve_find(m, bytes_of(out, t.len), wall(m)) != 0);
    return bytes_of(out, t.len);
}

/* Jobs that run on its nodes now and may not be over when it begins. */
static uint32_t count_in_the_way(const struct mm *m, const struct reservation *r) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->running_peak; i++) {
        const struct running *a = &m->runnings[i];
        const struct job *j = a->job == 0 || a->phase == PHASE_OVER ? NULL : job_find(m, a->job);
        if (j == NULL || j->kind == JOB_STEP || !nodeset_intersects(&a->set, &r->nodes))
            continue;
        count += j->limit_ns == 0 || j->started_ns + j->limit_ns > r->from_ns;
    }
    return count;
}

static void wait_for_log(struct mm *m, uint32_t link, const struct message_reserve *w,
                         struct reservation *r, uint32_t count) {
    struct after *a = after_add(m, record_reserve(m, w), AFTER_RESERVE);
    r->ticket = a->ticket;
    a->link = link;
    a->count = count;
    a->request[0] = w->request[0];
    a->request[1] = w->request[1];
}

/* The same again: its answer was lost, with a manager that has died since. */
static bool known(struct mm *m, uint32_t link, const struct message_reserve *w) {
    for (const struct reservation *r = m->reservations; r < m->reservations + STORM_WINDOWS_MAX;
         r++) {
        if (r->id == 0 || r->request[0] != w->request[0] || r->request[1] != w->request[1])
            continue;
        char name[RESERVATION_NAME_MAX + 1] = "";
        memcpy(name, r->name, r->name_len);
        if (r->ticket == 0) /* else it is answered when it is durable */
            answer(m, link, w, ANSWER_DONE, name);
        return true;
    }
    return false;
}

static void make(struct mm *m, uint32_t link, struct message_reserve w) {
    char name[RESERVATION_NAME_MAX];
    if (w.name.len == 0)
        w.name = find_name(m, name);
    if (!is_good_name(w.name)) {
        answer(m, link, &w, ANSWER_REFUSED, "a name has letters, digits, dots and dashes only");
        return;
    }
    if (reserve_find(m, w.name, wall(m)) != 0) {
        answer(m, link, &w, ANSWER_REFUSED, "there is one of that name; see: storm reserve");
        return;
    }
    struct reservation *r = add(m, &w, wall(m));
    if (r == NULL) {
        answer(m, link, &w, ANSWER_FULL,
               "there are 64 already; cancel one: storm reserve --cancel");
        return;
    }
    int error = book(m, r);
    if (error < 0) {
        r->id = 0;
        answer(m, link, &w, ANSWER_REFUSED,
               error == -EEXIST
                   ? "some of these nodes are reserved at that time; see: storm reserve"
                   : "that time is over already, or there are no nodes in it");
        return;
    }
    wait_for_log(m, link, &w, r, count_in_the_way(m, r));
    set_timer(m);
    m->dirty = true;
}

static void cancel(struct mm *m, uint32_t link, const struct message_reserve *w) {
    struct reservation *r = (struct reservation *)reserve_of(m, reserve_find(m, w->name, wall(m)));
    if (r == NULL) {
        answer(m, link, w, ANSWER_UNKNOWN, "there is no such reservation; see: storm reserve");
        return;
    }
    if (r->ticket != 0) {
        answer(m, link, w, ANSWER_FULL, "it is being made or taken back; try again in a moment");
        return;
    }
    r->leaving = true;
    struct message_reserve kept = *w;
    kept.nodes = &m->empty;
    wait_for_log(m, link, &kept, r, 0);
}

void reserve_heard(struct mm *m, uint32_t link, const struct message_reserve *w) {
    if (after_full(m, 0))
        answer(m, link, w, ANSWER_FULL, "try again in a moment");
    else if (w->cancel)
        cancel(m, link, w);
    else if (!known(m, link, w))
        make(m, link, *w);
}

/* ---- the log ---- */

const struct reservation *reserve_kept(struct mm *m, uint64_t ticket, bool kept) {
    for (uint32_t i = 0; i < STORM_WINDOWS_MAX; i++) {
        struct reservation *r = &m->reservations[i];
        if (r->id == 0 || r->ticket != ticket)
            continue;
        r->ticket = 0;
        if (r->leaving == kept) /* taken back for good, or never made */
            drop(m, r);
        r->leaving = false;
        set_timer(m);
        return r;
    }
    return NULL;
}

void reserve_replay(struct mm *m, const struct message_reserve *w, uint64_t at_ns) {
    drop_over(m, at_ns);
    struct reservation *r = (struct reservation *)reserve_of(m, reserve_find(m, w->name, at_ns));
    if (r != NULL)
        drop(m, r);
    if (!w->cancel && !nodeset_empty(w->nodes) && w->from_ns < w->to_ns)
        add(m, w, at_ns);
}

void reserve_begin(struct mm *m) {
    drop_over(m, wall(m));
    for (uint32_t i = 0; i < STORM_WINDOWS_MAX; i++)
        if (m->reservations[i].id != 0 && book(m, &m->reservations[i]) < 0)
            drop(m, &m->reservations[i]); /* of a cluster that had other nodes */
    set_timer(m);
}

/* ---- time ---- */

void reserve_tick(struct mm *m) {
    drop_over(m, wall(m));
    set_timer(m);
    m->dirty = m->dirty || m->stranded;
}

void reserve_strand(struct mm *m) {
    m->stranded = true;
    m->stranded_at = 0;
    effects_timer(m->out, TIMER_RESERVE, m->now);
}

void reserve_end_stranded(struct mm *m) {
    uint32_t given = m->next_id < m->config.jobs_max ? m->next_id : m->config.jobs_max, ended = 0;
    for (; m->stranded && m->stranded_at < given; m->stranded_at++) {
        struct job *j = &m->jobs[m->stranded_at];
        if (j->id == 0 || j->state != STATE_QUEUED || j->window == 0 || j->given ||
            reserve_of(m, j->window) != NULL)
            continue;
        if (!after_may_end(m, &ended)) {
            effects_timer(m->out, TIMER_RESERVE, m->now);
            m->dirty = true;
            return;
        }
        end_job(m, j, REASON_WINDOW, 0, true);
    }
    m->stranded = false;
    m->stranded_at = 0;
}

/* ---- for who asks ---- */

void reserve_count(const struct mm *m, uint32_t id, struct reservation_row *ret) {
    uint32_t given = m->next_id < m->config.jobs_max ? m->next_id : m->config.jobs_max;
    for (uint32_t i = 0; i < given; i++) {
        const struct job *j = &m->jobs[i];
        if (j->id == 0 || j->window != id)
            continue;
        ret->waiting += j->state == STATE_QUEUED;
        ret->running += j->state > STATE_QUEUED && !state_over((enum job_state)j->state);
    }
}

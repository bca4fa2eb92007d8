/* SPDX-License-Identifier: MIT */
/* Workers: what each was told, what it executes, and what becomes of that when it is lost. */
#include <errno.h>

#include "wodi/desk_inside.h"

/* Digits; anything else is no host. */
static uint64_t host_named(struct bytes name) {
    uint64_t host = 0;
    for (size_t i = 0; i < name.len; i++) {
        if (name.at[i] < '0' || name.at[i] > '9' || host > UINT64_MAX / 10 - 1)
            return 0;
        host = 10 * host + (uint64_t)(name.at[i] - '0');
    }
    return host;
}

void desk_worker_hello(struct desk *d, uint32_t link, const struct word *w, uint64_t now,
                       struct deeds *out) {
    uint32_t i = 0;
    while (i < d->limits.workers && d->workers[i].used)
        i++;
    if (i == d->limits.workers) {
        desk_refuse(d, link, ENOSPC, out);
        return;
    }
    struct worker *k = &d->workers[i];
    struct told *told = k->told;
    struct errand_at *steps = k->steps;
    *k = (struct worker){.used = true,
                         .link = link,
                         .class = w->id < PROFILE_CLASSES_MAX ? w->id : 0,
                         .speed = w->ns ? w->ns : SPEED_ONE,
                         .host = host_named(w->name),
                         .heard = now,
                         .told = told,
                         .steps = steps};
    for (uint32_t slot = 0; slot < d->limits.masters; slot++)
        told[slot] = (struct told){0};
    d->links[link].peer = PEER_WORKER;
    d->links[link].index = i;
    d->worker_count++;
    if (i >= d->workers_end)
        d->workers_end = i + 1;
}

uint64_t desk_worker_speed(const struct desk *d, const struct session *s, const struct worker *k) {
    uint64_t speed = k->speed;
    if (s->speed_source == SPEED_BY_CLASS)
        speed = k->class < s->classes ? s->speeds[k->class] : 0;
    else if (s->speed_source == SPEED_BY_BENCHMARK)
        speed = k->told[desk_slot_of(d, s)].speed;
    return speed ? speed : SPEED_ONE;
}

bool desk_worker_told(const struct desk *d, const struct worker *k, const struct session *s) {
    const struct told *t = &k->told[desk_slot_of(d, s)];
    return t->number == s->number && (s->cycle == 0 || t->started == s->cycle) &&
           k->unsent <= d->limits.worker_unsent;
}

/* ---- what it executes ---- */

uint64_t desk_worker_expect(const struct desk *d, const struct worker *k, const struct step *t) {
    const struct session *s = &d->sessions[t->slot];
    uint64_t normal = history_expect(&s->history, t->number, NULL);
    return speed_scale(normal, SPEED_ONE, desk_worker_speed(d, s, k));
}

struct errand_at *desk_worker_errand(const struct desk *d, const struct worker *k, uint32_t n) {
    return &k->steps[(k->head + n) % d->limits.steps_ahead];
}

static void push(struct desk *d, struct worker *k, struct errand_at e, uint64_t now) {
    ASSERT(k->count < d->limits.steps_ahead);
    if (k->count == 0)
        k->since = now;
    *desk_worker_errand(d, k, k->count++) = e;
    k->load_ns += e.expected_ns;
}

static void say(struct worker *k, const struct word *w, struct deeds *out) {
    deeds_send(out, k->link, w);
    k->unsent += w->body.len + WORD_PREFIX;
}

void desk_worker_give(struct desk *d, struct worker *k, struct step *t, uint64_t now,
                      struct deeds *out) {
    struct session *s = &d->sessions[t->slot];
    struct errand_at e = {.id = t->id,
                          .slot = t->slot,
                          .arrival = t->arrival,
                          .expected_ns = desk_worker_expect(d, k, t)};
    struct word w = {.kind = (uint8_t)WORD_STEP,
                     .session = s->number,
                     .id = t->id,
                     .cycle = s->cycle,
                     .step = t->number,
                     .body = blocks_copy(&d->pool, t->work, d->scratch)};
    say(k, &w, out);
    push(d, k, e, now);
    if (t->state == STEP_WAITING) {
        heap_remove(&s->waiting, &t->wait);
        d->waiting--;
        t->state = STEP_RUNNING;
        s->running++;
        d->running++;
    }
    t->copies++;
}

/* One of the workers that had it has it no more. */
static void give_back(struct desk *d, struct step *t) {
    t->copies--;
    if (t->state != STEP_RUNNING || t->copies > 0)
        return;
    d->sessions[t->slot].running--;
    d->running--;
    desk_step_wait(d, t);
}

static void measured(struct desk *d, struct worker *k, const struct errand_at *e, uint64_t ns) {
    struct session *s = &d->sessions[e->slot];
    if (!s->used || s->number != e->arrival)
        return;
    ns = ns ? ns : 1;
    if (s->bench_ns == 0)
        s->bench_ns = ns;
    uint64_t speed = speed_scale(SPEED_ONE, s->bench_ns, ns);
    k->told[e->slot].speed = speed ? speed : 1;
}

static void learn(struct desk *d, struct worker *k, const struct step *t, uint64_t ns) {
    struct session *s = &d->sessions[t->slot];
    uint64_t normal = speed_scale(ns, desk_worker_speed(d, s, k), SPEED_ONE);
    uint64_t expected = history_expect(&s->history, t->number, NULL);
    if (expected)
        straggle_add(&s->spread[k->class], normal, expected);
    history_add(&s->history, t->number, normal);
}

static void on_result(struct desk *d, struct worker *k, const struct word *w, uint64_t now,
                      struct deeds *out) {
    struct errand_at e = *desk_worker_errand(d, k, 0);
    k->head = (k->head + 1) % d->limits.steps_ahead;
    k->count--;
    k->load_ns -= e.expected_ns;
    k->since = now;
    d->results[k->class]++;
    struct step *t = desk_step_of(d, &e);
    if (e.id == 0)
        measured(d, k, &e, w->ns);
    if (!t)
        return;
    if (t->state == STEP_DONE) {
        t->copies--;
        return;
    }
    learn(d, k, t, w->ns);
    struct session *s = &d->sessions[t->slot];
    if (s->result_blocks + blocks_for(w->body.len) > d->quota) {
        /* No room before the master takes others: it will be executed again. The next is expected to be as large. */
        if (blocks_for(w->body.len) > s->result_most)
            s->result_most = blocks_for(w->body.len);
        give_back(d, t);
        return;
    }
    t->copies--;
    struct word log = {.kind = (uint8_t)WORD_LOG_RESULT,
                       .session = s->number,
                       .step = t->number,
                       .status = w->status,
                       .ns = w->ns,
                       .body = w->body};
    desk_log(d, &log, out);
    desk_step_finish(d, t, w->status, w->ns, w->body);
}

void desk_worker_heard(struct desk *d, uint32_t link, const struct word *w, uint64_t now,
                       struct deeds *out) {
    struct worker *k = &d->workers[d->links[link].index];
    k->heard = now;
    k->pinged = false;
    if (w->kind == WORD_PONG)
        return;
    if (w->kind == WORD_RESULT && k->count > 0 && desk_worker_errand(d, k, 0)->id == w->id)
        on_result(d, k, w, now, out);
    else
        desk_refuse(d, link, EPROTO, out);
}

void desk_worker_gone(struct desk *d, struct worker *k) {
    for (uint32_t n = 0; n < k->count; n++) {
        struct step *t = desk_step_of(d, desk_worker_errand(d, k, n));
        if (t)
            give_back(d, t);
    }
    k->used = false;
    d->worker_count--;
    while (d->workers_end > 0 && !d->workers[d->workers_end - 1].used)
        d->workers_end--;
}

/* ---- what it is told ---- */

/* The next thing about the master in this slot that it does not know; false: it knows all. */
static bool tell_next(struct desk *d, struct worker *k, uint32_t slot, uint64_t now,
                      struct deeds *out) {
    const struct session *s = &d->sessions[slot];
    struct told *t = &k->told[slot];
    struct word w = {.session = t->number};
    uint8_t *body = d->scratch;
    if (t->number && (!s->used || s->number != t->number)) {
        w.kind = (uint8_t)WORD_OVER;
        *t = (struct told){0};
    } else if (s->used && !t->number) {
        w.kind = (uint8_t)WORD_INIT;
        w.session = t->number = s->number;
        w.name = bytes_of(s->name, s->name_len);
        w.body = blocks_copy(&d->pool, s->init, body);
    } else if (s->used && s->speed_source == SPEED_BY_BENCHMARK && s->bench.len && !t->speed &&
               k->count < d->limits.steps_ahead) {
        w.kind = (uint8_t)WORD_STEP;
        w.flag = STEP_BENCH;
        w.body = blocks_copy(&d->pool, s->bench, body);
        t->speed = SPEED_ONE; /* until it is measured */
        push(d, k, (struct errand_at){.slot = slot, .arrival = s->number}, now);
    } else if (s->used && t->started > t->finished && t->started == s->ended) {
        w.kind = (uint8_t)WORD_FINISH;
        w.cycle = t->finished = s->ended;
        w.body = blocks_copy(&d->pool, s->finish, body);
    } else if (s->used && s->open && t->started < s->cycle) {
        w.kind = (uint8_t)WORD_START;
        w.cycle = t->started = s->cycle;
        w.body = blocks_copy(&d->pool, s->start, body);
    } else {
        return false;
    }
    say(k, &w, out);
    return true;
}

bool desk_worker_catch_up(struct desk *d, struct worker *k, uint64_t now, struct deeds *out) {
    if (!k->used || k->version == d->version || k->unsent > d->limits.worker_unsent)
        return false;
    for (uint32_t slot = 0; slot < d->limits.masters; slot++)
        do {
            if (!room_for_one(out))
                return true;
            if (k->unsent > d->limits.worker_unsent)
                return false; /* what is missing is told when it has taken this */
        } while (tell_next(d, k, slot, now, out));
    k->version = d->version;
    return false;
}

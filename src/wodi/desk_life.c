/* SPDX-License-Identifier: MIT */
/* From one life of the server to the next: records that are told again, and those that say how things stand.
 *
 * Replaying uses what the inputs use. A snapshot is a journal that leads to the same state: for each master who it is, its
 * cycle, the steps that are done with, those that are not, and results in the order of their numbers. */
#include <string.h>

#include "wodi/desk_inside.h"

/* ---- replay ---- */

static struct session *session_numbered(struct desk *d, uint32_t number) {
    for (uint32_t i = 0; i < d->limits.masters; i++)
        if (d->sessions[i].used && d->sessions[i].number == number)
            return &d->sessions[i];
    return NULL;
}

static bool replay_master(struct desk *d, const struct word *w) {
    struct session *known = session_numbered(d, w->session);
    if (known && bytes_equal(bytes_of(known->name, known->name_len), w->name)) {
        desk_session_changes(d, known, w);
        return true;
    }
    if (known)
        return false;
    struct session *s = desk_session_new(d, w, w->session);
    if (s)
        s->seq = s->acked = w->seq;
    return s != NULL;
}

static bool replay_work(struct desk *d, struct session *s, const struct word *w) {
    uint32_t slot = desk_slot_of(d, s);
    if (s->steps >= d->limits.steps || desk_step_find(d, slot, w->step) || !s->open ||
        s->done.count + s->steps + 1 >= s->done.cap ||
        s->work_blocks + blocks_for(w->body.len) > d->quota)
        return false;
    desk_step_new(d, slot, w->step, w->body);
    return true;
}

static bool replay_result(struct desk *d, struct session *s, const struct word *w) {
    struct step *t = desk_step_find(d, desk_slot_of(d, s), w->step);
    if (!t || t->state == STEP_DONE || s->result_blocks + blocks_for(w->body.len) > d->quota)
        return false;
    history_add(&s->history, w->step, w->ns);
    desk_step_finish(d, t, w->status, w->ns, w->body);
    return true;
}

static bool replay_range(struct session *s, const struct word *w) {
    uint64_t end = w->step + w->count;
    if (w->count == 0 || end < w->step || s->done.count + 1 >= s->done.cap ||
        (s->done.count > 0 && s->done.at[s->done.count - 1].end >= w->step))
        return false;
    ranges_add(&s->done, w->step, end);
    return true;
}

static bool replay_end(struct desk *d, struct session *s, const struct word *w) {
    if (s->steps > 0 || w->cycle <= s->ended)
        return false;
    desk_session_end(d, s, w->cycle, w->body);
    return true;
}

static bool replay_session(struct desk *d, struct session *s, const struct word *w) {
    switch ((enum word_kind)w->kind) {
    case WORD_LOG_BEGIN:
        if (s->steps > 0 || w->cycle <= s->ended)
            return false;
        desk_session_begin(d, s, w);
        return true;
    case WORD_LOG_WORK:
        return replay_work(d, s, w);
    case WORD_LOG_RESULT:
        return replay_result(d, s, w);
    case WORD_LOG_RANGE:
        return replay_range(s, w);
    case WORD_LOG_ACK:
        desk_session_ack(d, s, w->seq);
        return s->acked == w->seq;
    case WORD_LOG_END:
        return replay_end(d, s, w);
    case WORD_LOG_COMPLETE:
        desk_session_free(d, s);
        return true;
    default:
        return false;
    }
}

bool desk_replay(struct desk *d, const struct word *w) {
    d->replaying = true;
    struct session *s = session_numbered(d, w->session);
    bool good = w->kind == WORD_LOG_MASTER ? replay_master(d, w) : s && replay_session(d, s, w);
    d->replaying = false;
    return good;
}

/* ---- snapshot ---- */

enum phase {
    PHASE_MASTER,
    PHASE_ENDED,
    PHASE_CYCLE,
    PHASE_RANGES,
    PHASE_STEPS,
    PHASE_RESULTS,
    PHASE_NEXT
};

static size_t record_master(const struct desk *d, const struct session *s, struct room out) {
    struct profile p = {.classes = s->classes, .fewest = s->fewest};
    uint8_t *half =
        out.at + out.len / 2; /* the profile is made here, then copied into the record */
    memcpy(p.needs, s->needs, sizeof p.needs);
    memcpy(p.speeds, s->speeds, sizeof p.speeds);
    uint8_t *bodies = d->scratch;
    p.bench = blocks_copy(&d->pool, s->bench, bodies);
    p.init = blocks_copy(&d->pool, s->init, bodies + s->bench.len);
    size_t len = profile_write(&p, room_of(half, out.len / 2));
    ASSERT(len > 0);
    struct word w = {.kind = (uint8_t)WORD_LOG_MASTER,
                     .session = s->number,
                     .flag = s->speed_source,
                     .count = s->cookie,
                     .seq = s->acked,
                     .name = bytes_of(s->name, s->name_len),
                     .body = bytes_of(half, len)};
    return record_frame(&w, room_of(out.at, out.len / 2));
}

static size_t record_of(const struct desk *d, struct word *w, const struct body *body,
                        struct room out) {
    if (body)
        w->body = blocks_copy(&d->pool, *body, d->scratch);
    size_t len = record_frame(w, out);
    ASSERT(len > 0);
    return len;
}

/* The next step of this master from c->index on. */
static size_t snapshot_step(const struct desk *d, const struct session *s, struct desk_cursor *c,
                            struct room out) {
    while ((c->index = idtable_next(&d->ids, c->index)) != IDTABLE_NONE) {
        const struct step *t = &d->steps[c->index++];
        if (t->slot != desk_slot_of(d, s))
            continue;
        struct word w = {.kind = (uint8_t)WORD_LOG_WORK, .session = s->number, .step = t->number};
        return record_of(d, &w, &t->work, out);
    }
    return 0;
}

static size_t snapshot_result(const struct desk *d, const struct session *s, struct desk_cursor *c,
                              struct room out) {
    const struct list *l = c->at ? ((const struct step *)c->at)->result_at.next : s->results.next;
    if (l == &s->results)
        return 0;
    const struct step *t = CONTAINER_OF(l, const struct step, result_at);
    c->at = t;
    struct word w = {.kind = (uint8_t)WORD_LOG_RESULT,
                     .session = s->number,
                     .step = t->number,
                     .status = t->status,
                     .ns = t->ns};
    return record_of(d, &w, &t->result, out);
}

/* One record of this phase, 0: it has no more. */
static size_t snapshot_phase(const struct desk *d, const struct session *s, struct desk_cursor *c,
                             struct room out) {
    struct word w = {.session = s->number};
    switch ((enum phase)c->phase) {
    case PHASE_MASTER:
        return c->index++ ? 0 : record_master(d, s, out);
    case PHASE_ENDED:
        w.kind = (uint8_t)WORD_LOG_END;
        w.cycle = s->ended;
        w.seq = s->acked;
        return c->index++ || !s->ended ? 0 : record_of(d, &w, &s->finish, out);
    case PHASE_CYCLE:
        w.kind = (uint8_t)WORD_LOG_BEGIN;
        w.cycle = s->cycle;
        w.count = s->cycle_steps;
        return c->index++ || !s->open || !s->cycle ? 0 : record_of(d, &w, &s->start, out);
    case PHASE_RANGES:
        if (c->index == s->done.count)
            return 0;
        w.kind = (uint8_t)WORD_LOG_RANGE;
        w.step = s->done.at[c->index].first;
        w.count = s->done.at[c->index++].end - w.step;
        return record_of(d, &w, NULL, out);
    case PHASE_STEPS:
        return snapshot_step(d, s, c, out);
    case PHASE_RESULTS:
        return snapshot_result(d, s, c, out);
    case PHASE_NEXT:
        break;
    }
    return 0;
}

size_t desk_snapshot(const struct desk *d, struct desk_cursor *c, struct room out) {
    ASSERT(out.len >= 2 * (size_t)(RECORD_PREFIX + WORD_BYTES_MAX));
    for (; c->slot < d->limits.masters; c->slot++) {
        const struct session *s = &d->sessions[c->slot];
        while (s->used && c->phase < PHASE_NEXT) {
            size_t len = snapshot_phase(d, s, c, out);
            if (len)
                return len;
            c->phase++;
            c->index = 0;
            c->at = NULL;
        }
        c->phase = 0;
    }
    return 0;
}

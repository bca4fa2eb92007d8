/* SPDX-License-Identifier: MIT */
/* Events of the log: what must not be forgotten, and how it is taken up again.
 *
 * A submission holds the client's message as it came, so what is to be run can be fetched by the job's
 * key. An array is one key: its submission, and the starts and ends of all its jobs. */
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "mm/inside.h"

void record_walk_head(struct codec *c, struct record_head *h) {
    codec_enum(c, &h->event, EVENTS);
    codec_u32(c, &h->job);
    codec_u32(c, &h->count);
    codec_u64(c, &h->at);
}

static struct codec begin(struct mm *m, struct record_head h) {
    struct room room = effects_tail(m->out);
    struct codec c = {.encoding = true, .out = room.at, .len = room.len};
    record_walk_head(&c, &h);
    return c;
}

static uint64_t finish(struct mm *m, struct codec *c, uint64_t key, bool opens, bool closes) {
    ASSERT(!c->failed);
    struct effect *e = effects_add(m->out, EFFECT_LOG);
    e->log = (struct effect_log){.ticket = ++m->tickets,
                                 .key = key,
                                 .opens = opens,
                                 .closes = closes,
                                 .body = effects_take(m->out, c->at)};
    return e->log.ticket;
}

uint64_t record_submit(struct mm *m, const struct job *first, uint32_t count, struct bytes body) {
    struct codec c = begin(
        m, (struct record_head){
               .event = EVENT_SUBMIT, .job = first->id, .count = count, .at = first->submitted_ns});
    codec_rest(&c, &body);
    return finish(m, &c, first->key, true, false);
}

uint64_t record_start(struct mm *m, const struct job *j, const struct running *r) {
    struct bytes sections = sections_map(m, j, r); /* first: both are written where effects end */
    struct codec c =
        begin(m, (struct record_head){
                     .event = EVENT_START, .job = j->id, .count = j->attempt, .at = j->started_ns});
    codec_set(&c, (struct nodeset *)&r->set);
    if (sections.len > 0)
        codec_bytes(&c, &sections, 1);
    return finish(m, &c, j->key, false, false);
}

uint64_t record_hold(struct mm *m, const struct job *j, const struct running *r) {
    enum held held = !r->suspended ? HELD_NOT
                     : !r->called  ? HELD_BY_USER
                     : r->rests    ? HELD_BY_BOTH
                                   : HELD_CALLED;
    struct codec c = begin(
        m, (struct record_head){.event = EVENT_HOLD, .job = j->id, .count = held, .at = wall(m)});
    return finish(m, &c, j->key, false, false);
}

uint64_t record_again(struct mm *m, const struct job *j) {
    struct codec c =
        begin(m, (struct record_head){
                     .event = EVENT_AGAIN, .job = j->id, .count = j->attempt, .at = wall(m)});
    return finish(m, &c, j->key, false, false);
}

static void walk_ending(struct codec *c, uint8_t *reason, uint8_t *force, uint32_t *signal) {
    codec_enum(c, reason, REASONS);
    codec_enum(c, force, VERBS);
    codec_u32(c, signal);
}

uint64_t record_ending(struct mm *m, const struct job *j, const struct running *r) {
    struct codec c =
        begin(m, (struct record_head){
                     .event = EVENT_ENDING, .job = j->id, .count = j->attempt, .at = wall(m)});
    uint8_t reason = j->reason, force = r->force;
    uint32_t signal = r->signal;
    walk_ending(&c, &reason, &force, &signal);
    return finish(m, &c, j->key, false, false);
}

void record_walk_end(struct codec *c, struct job *j) {
    uint8_t worst[ENDING_FIXED_BYTES];
    struct bytes view = bytes_of(worst, sizeof worst);
    if (c->encoding)
        ending_fixed_store(worst, &j->worst);
    codec_enum(c, &j->state, STATES);
    codec_enum(c, &j->reason, REASONS);
    codec_u32(c, &j->status);
    codec_u32(c, &j->bad);
    codec_u64(c, &j->output);
    codec_bytes(c, &view, ENDING_FIXED_BYTES);
    if (!c->encoding && !c->failed && !ending_fixed_load(&j->worst, view))
        c->failed = true;
    if (!c->encoding) /* versions before this wrote none */
        j->measured = c->at < c->len;
    if (j->measured)
        codec_usage(c, &j->usage);
}

uint64_t record_end(struct mm *m, const struct job *j) {
    const struct job *first = job_find(m, (uint32_t)j->key);
    struct job copy = *j;
    struct codec c =
        begin(m, (struct record_head){
                     .event = EVENT_END, .job = j->id, .count = j->attempt, .at = j->ended_ns});
    record_walk_end(&c, &copy);
    return finish(m, &c, j->key, false, first == NULL || first->left <= 1);
}

uint64_t record_await(struct mm *m, const struct job *first, uint32_t on, bool good) {
    struct codec c = begin(
        m,
        (struct record_head){.event = EVENT_AWAIT, .job = first->id, .count = on, .at = wall(m)});
    uint8_t verdict = good;
    codec_enum(&c, &verdict, 2);
    return finish(m, &c, first->key, false, false);
}

uint64_t record_drain(struct mm *m, const struct nodeset *set, bool drained, struct bytes reason) {
    struct codec c =
        begin(m, (struct record_head){.event = EVENT_DRAIN, .count = drained, .at = wall(m)});
    codec_set(&c, (struct nodeset *)set);
    codec_bytes(&c, &reason, 1);
    return finish(m, &c, NODES_KEY, true, false);
}

static void walk_policy(struct codec *c, struct bytes *name, uint64_t *quantum_ns) {
    codec_bytes(c, name, 1);
    codec_u64(c, quantum_ns);
}

uint64_t record_policy(struct mm *m, const char *name, uint32_t slots, uint64_t quantum_ns) {
    struct codec c =
        begin(m, (struct record_head){.event = EVENT_POLICY, .count = slots, .at = wall(m)});
    struct bytes view = bytes_from_str(name);
    walk_policy(&c, &view, &quantum_ns);
    return finish(m, &c, POLICY_KEY, true, false);
}

static void walk_reserve(struct codec *c, struct message_reserve *w) {
    codec_u64(c, &w->request[0]);
    codec_u64(c, &w->request[1]);
    codec_bool(c, &w->cancel);
    codec_u64(c, &w->from_ns);
    codec_u64(c, &w->to_ns);
    codec_set(c, w->nodes);
    codec_bytes(c, &w->name, 1);
}

uint64_t record_reserve(struct mm *m, const struct message_reserve *w) {
    struct codec c = begin(m, (struct record_head){.event = EVENT_RESERVE, .at = wall(m)});
    struct message_reserve copy = *w;
    walk_reserve(&c, &copy);
    return finish(m, &c, RESERVE_KEY, true, false);
}

static void walk_class(struct codec *c, struct class_change *w) {
    codec_u64(c, &w->request[0]);
    codec_u64(c, &w->request[1]);
    codec_u32(c, &w->what.ppn);
    codec_bytes(c, &w->what.name, 1);
    codec_bytes(c, &w->what.need, 1);
}

uint64_t record_class(struct mm *m, const struct job *head, const struct class_change *w) {
    struct codec c =
        begin(m, (struct record_head){
                     .event = EVENT_CLASS, .job = head->id, .count = w->removed, .at = wall(m)});
    struct class_change copy = *w;
    walk_class(&c, &copy);
    return finish(m, &c, head->key, false, false);
}

/* ---- taking up again ---- */

/* Numbers that were given out once are not given out again. */
static void keep_number(struct mm *m, const struct record_head *h) {
    if (h->job + h->count > m->next_id)
        m->next_id = h->job + h->count;
}

static void note_unread(struct mm *m, uint32_t job) {
    struct text t;
    struct room room = effects_tail(m->out);
    text_init(&t, (char *)room.at, room.len);
    text_str(&t, "job ");
    text_u64(&t, job);
    text_str(&t, " is left out: what was written of it is not understood");
    effects_add(m->out, EFFECT_NOTE)->note = effects_take(m->out, t.len);
}

static void replay_submit(struct mm *m, const struct record_head *h, struct bytes body) {
    union message s;
    if (message_decode(MESSAGE_SUBMIT, body, m->scratch, &s) == 0 &&
        submit_take(m, &s.submit, h->job, h->count, h->at))
        return;
    keep_number(m, h);
    note_unread(m, h->job);
}

static void replay_start(struct mm *m, const struct record_head *h, struct codec *c) {
    struct job *j = job_find(m, h->job);
    struct bytes sections = {0};
    codec_set(c, &m->scratch[0]);
    if (c->at < c->len)
        codec_bytes(c, &sections, 1);
    if (j == NULL || c->failed || j->state != STATE_QUEUED)
        return;
    if (j->slot == NO_SLOT)
        queue_remove(m, j);
    j->attempt = (uint16_t)h->count;
    j->started_ns = h->at;
    j->state = STATE_STARTING;
    struct running *r = running_new(m, j, &m->scratch[0]);
    r->unheld = j->kind != JOB_STEP; /* until all is read: nodes change hands */
    if (!sections_load(m, j, r,
                       sections)) /* somebody else has written it: it is looked for on its nodes */
        NODESET_EACH (n, &r->set)
            r->by_node[n] = 0;
    struct job *around = job_find(m, j->inside);
    struct running *a = around == NULL ? NULL : job_running(m, around);
    if (j->kind != JOB_STEP || a == NULL)
        return;
    a->steps++;
    NODESET_EACH (n, &r->set)
        a->by_node[n] = (uint16_t)(a->by_node[n] + j->ppn);
}

/* An attempt that came to nothing. */
static void replay_undo(struct mm *m, struct job *j) {
    struct running *r = job_running(m, j);
    if (r == NULL)
        return;
    end_give_back(m, j, r);
    running_free(m, r);
    j->slot = NO_SLOT;
    j->reason = REASON_NONE;
    queue_enter(m, j);
}

static void replay_end(struct mm *m, const struct record_head *h, struct codec *c) {
    struct job *j = job_find(m, h->job);
    struct job *first = j == NULL ? NULL : job_find(m, (uint32_t)j->key);
    if (j == NULL || state_over((enum job_state)j->state))
        return;
    struct running *r = job_running(m, j);
    if (r == NULL)
        queue_remove(m, j);
    else
        end_give_back(m, j, r);
    record_walk_end(c, j);
    bool wanted = j->output > 0 || (j->flags & JOB_FETCH) != 0;
    if (r != NULL && wanted && m->running_free_count > RUNNINGS_LOW) {
        r->phase = PHASE_OVER; /* the way to its output and files is still wanted */
    } else if (r != NULL) {
        running_free(m, r);
        j->slot = NO_SLOT;
    }
    j->ended_ns = h->at;
    j->settled = true;
    family_left(m, j);
    if (first != NULL)
        first->spoilt = first->spoilt || j->state != STATE_DONE;
    if (first != NULL && first->left > 0)
        first->left--;
}

static void replay_ending(struct mm *m, const struct record_head *h, struct codec *c) {
    struct job *j = job_find(m, h->job);
    struct running *r = j == NULL ? NULL : job_running(m, j);
    uint8_t reason = 0, force = 0;
    uint32_t signal = 0;
    walk_ending(c, &reason, &force, &signal);
    if (r == NULL || r->phase == PHASE_OVER || c->failed || j->attempt != h->count)
        return;
    j->reason = reason;
    r->force = force;
    r->signal = signal;
}

static void replay_drain(struct mm *m, const struct record_head *h, struct codec *c) {
    struct bytes reason = {0};
    codec_set(c, &m->scratch[0]);
    codec_bytes(c, &reason, 1);
    if (!c->failed)
        node_drain(m, &m->scratch[0], h->count != 0, reason, h->at);
}

static void replay_await(struct mm *m, const struct record_head *h, struct codec *c) {
    uint8_t verdict = 0;
    codec_enum(c, &verdict, 2);
    if (!c->failed)
        waits_replay(m, h->job, h->count, verdict != 0);
}

static void replay_policy(struct mm *m, const struct record_head *h, struct codec *c) {
    struct bytes name = {0};
    uint64_t quantum_ns = 0;
    walk_policy(c, &name, &quantum_ns);
    if (!c->failed)
        policy_replay(m, name, h->count, quantum_ns);
}

static void replay_reserve(struct mm *m, const struct record_head *h, struct codec *c) {
    struct message_reserve w = {.nodes = &m->scratch[0]};
    walk_reserve(c, &w);
    if (!c->failed && w.name.len <= RESERVATION_NAME_MAX)
        reserve_replay(m, &w, h->at);
}

static void replay_class(struct mm *m, const struct record_head *h, struct codec *c) {
    struct class_change w = {.removed = h->count != 0};
    walk_class(c, &w);
    if (!c->failed && w.what.name.len <= CLASS_NAME_MAX && w.what.need.len <= NEED_TEXT_MAX)
        classes_replay(m, h->job, &w);
}

void record_replay(struct mm *m, const struct input_replay *in) {
    struct record_head h = {0};
    struct codec c = {.in = in->body.at, .len = in->body.len};
    record_walk_head(&c, &h);
    if (c.failed)
        return;
    if (in->over) { /* only its numbers are of interest: they are not given out again */
        if (h.event == EVENT_SUBMIT)
            keep_number(m, &h);
        return;
    }
    waits_replay_at(m, h.at);
    struct job *j = job_find(m, h.job);
    switch ((enum event)h.event) {
    case EVENT_SUBMIT:
        replay_submit(m, &h, bytes_of(in->body.at + c.at, in->body.len - c.at));
        break;
    case EVENT_START:
        classes_drop(m, h.job);
        if (j != NULL)
            replay_undo(m, j);
        replay_start(m, &h, &c);
        break;
    case EVENT_END:
        replay_end(m, &h, &c);
        break;
    case EVENT_DRAIN:
        replay_drain(m, &h, &c);
        break;
    case EVENT_AGAIN:
        if (j != NULL)
            replay_undo(m, j);
        break;
    case EVENT_ENDING:
        replay_ending(m, &h, &c);
        break;
    case EVENT_AWAIT:
        replay_await(m, &h, &c);
        break;
    case EVENT_POLICY:
        replay_policy(m, &h, &c);
        break;
    case EVENT_RESERVE:
        replay_reserve(m, &h, &c);
        break;
    case EVENT_CLASS:
        if (j != NULL)
            replay_class(m, &h, &c);
        break;
    case EVENT_HOLD:
        if (j != NULL && job_running(m, j) != NULL) {
            job_running(m, j)->suspended = h.count != HELD_NOT;
            job_running(m, j)->called = h.count == HELD_CALLED || h.count == HELD_BY_BOTH;
            job_running(m, j)->rests = h.count == HELD_BY_BOTH;
            job_running(m, j)->held = true;
        }
        break;
    case EVENTS:
        break;
    }
}

int record_spec(struct mm *m, struct bytes event, struct message_submit *ret) {
    struct record_head h = {0};
    union message s;
    struct codec c = {.in = event.at, .len = event.len};
    record_walk_head(&c, &h);
    if (c.failed || h.event != EVENT_SUBMIT)
        return -EBADMSG;
    struct bytes body = bytes_of(event.at + c.at, event.len - c.at);
    int r = message_decode(MESSAGE_SUBMIT, body, m->scratch, &s);
    *ret = s.submit;
    return r;
}

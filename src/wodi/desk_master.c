/* SPDX-License-Identifier: MIT */
/* Masters: their sessions, which outlive their connections and the server's lives, and what they say. */
#include <errno.h>
#include <string.h>

#include "wodi/desk_inside.h"

enum { HOLD_SHARE = 20, HOLD_MAX_NS = 100000000 };

/* ---- what changes a session, now or when it is told again from the journal ---- */

static struct session *session_named(struct desk *d, struct bytes name) {
    for (uint32_t i = 0; i < d->limits.masters; i++) {
        struct session *s = &d->sessions[i];
        if (s->used && bytes_equal(bytes_of(s->name, s->name_len), name))
            return s;
    }
    return NULL;
}

static void take_profile(struct desk *d, struct session *s, const struct profile *p) {
    s->classes = p->classes;
    s->fewest = p->fewest;
    memcpy(s->needs, p->needs, sizeof s->needs);
    memcpy(s->speeds, p->speeds, sizeof s->speeds);
    blocks_drop(&d->pool, &s->bench);
    blocks_drop(&d->pool, &s->init);
    s->bench = blocks_keep(&d->pool, p->bench);
    s->init = blocks_keep(&d->pool, p->init);
}

/* Memory that belongs to the slot, whoever is in it. */
static void session_clear(struct session *s) {
    struct range *ranges = s->done.at;
    struct heap_item **items = s->waiting.at;
    uint64_t *ns = s->history.ns;
    uint32_t ranges_cap = s->done.cap, items_cap = s->waiting.cap, ns_cap = s->history.cap;
    *s = (struct session){0};
    s->done = (struct ranges){.at = ranges, .cap = ranges_cap};
    s->history = (struct history){.ns = ns, .cap = ns_cap};
    heap_init(&s->waiting, items, items_cap);
    list_init(&s->results);
}

struct session *desk_session_new(struct desk *d, const struct word *hello, uint32_t number) {
    struct profile p;
    struct session *s = NULL;
    for (uint32_t i = 0; i < d->limits.masters && !s; i++)
        if (!d->sessions[i].used)
            s = &d->sessions[i];
    if (!s || hello->flag >= SPEED_SOURCES || !profile_read(&p, hello->body) ||
        hello->name.len > UINT8_MAX)
        return NULL;
    session_clear(s);
    s->used = true;
    s->open = true;
    s->number = number;
    s->speed_source = hello->flag;
    s->cookie = hello->count;
    s->name_len = (uint8_t)hello->name.len;
    memcpy(s->name, hello->name.at, hello->name.len);
    take_profile(d, s, &p);
    if (number > d->numbers)
        d->numbers = number;
    d->version++;
    d->changes++;
    return s;
}

static bool is_body(const struct desk *d, struct body kept, struct bytes said) {
    return kept.len == said.len && bytes_equal(blocks_copy(&d->pool, kept, d->scratch), said);
}

static bool is_profile(const struct desk *d, const struct session *s, const struct profile *p) {
    return s->classes == p->classes && s->fewest == p->fewest &&
           memcmp(s->needs, p->needs, sizeof s->needs) == 0 &&
           memcmp(s->speeds, p->speeds, sizeof s->speeds) == 0 && is_body(d, s->bench, p->bench) &&
           is_body(d, s->init, p->init);
}

bool desk_session_changes(struct desk *d, struct session *s, const struct word *hello) {
    struct profile p;
    if (hello->flag >= SPEED_SOURCES || !profile_read(&p, hello->body) ||
        (hello->flag == s->speed_source && is_profile(d, s, &p)))
        return false;
    s->speed_source = hello->flag;
    take_profile(d, s, &p);
    d->version++;
    d->changes++;
    return true;
}

void desk_session_free(struct desk *d, struct session *s) {
    uint32_t slot = desk_slot_of(d, s);
    for (struct heap_item *i; (i = heap_peek(&s->waiting));)
        desk_step_free(d, CONTAINER_OF(i, struct step, wait));
    for (struct list *l; (l = list_first(&s->results));)
        desk_step_free(d, CONTAINER_OF(l, struct step, result_at));
    for (uint32_t i = 0; i < d->workers_end && s->steps > 0; i++) {
        struct worker *k = &d->workers[i];
        for (uint32_t n = 0; k->used && n < k->count; n++) {
            struct step *t = desk_step_of(d, &k->steps[(k->head + n) % d->limits.steps_ahead]);
            if (t && t->slot == slot)
                desk_step_free(d, t);
        }
    }
    ASSERT(s->steps == 0);
    blocks_drop(&d->pool, &s->init);
    blocks_drop(&d->pool, &s->bench);
    blocks_drop(&d->pool, &s->start);
    blocks_drop(&d->pool, &s->finish);
    /* The next master in this slot forgets them; until then the world may want to keep how long its steps took. */
    struct history history = s->history;
    uint8_t name_len = s->name_len, name[WORD_NAME_MAX];
    memcpy(name, s->name, sizeof name);
    session_clear(s);
    s->history = history;
    s->name_len = name_len;
    memcpy(s->name, name, sizeof name);
    d->version++;
    d->changes++;
}

void desk_session_ack(struct desk *d, struct session *s, uint64_t seq) {
    for (struct list *l; (l = list_first(&s->results));) {
        struct step *t = CONTAINER_OF(l, struct step, result_at);
        if (t->seq > seq)
            break;
        if (s->unsent != t && s->flight > 0) {
            s->flight--;
            s->flight_blocks -= blocks_for(t->result.len);
        }
        ranges_add(&s->done, t->number, t->number + 1);
        s->acked = t->seq;
        desk_step_free(d, t);
    }
}

void desk_session_begin(struct desk *d, struct session *s, const struct word *w) {
    s->cycle = w->cycle;
    s->cycle_steps = w->count;
    s->open = true;
    s->arrived = s->hold_until = 0;
    s->done.count = 0;
    blocks_drop(&d->pool, &s->start);
    s->start = blocks_keep(&d->pool, w->body);
    d->version++;
}

void desk_session_end(struct desk *d, struct session *s, uint64_t cycle, struct bytes body) {
    s->cycle = s->ended = cycle;
    s->open = false;
    s->done.count = 0;
    blocks_drop(&d->pool, &s->finish);
    s->finish = blocks_keep(&d->pool, body);
    d->version++;
    d->changes++;
}

/* Where lengths are known the longest goes first, so it must be here: steps that were announced are waited for, though not
 * for longer than a twentieth of what the longest takes. */
void desk_session_hold(struct desk *d, struct session *s, uint64_t now) {
    uint64_t longest = 0;
    for (uint32_t i = 0; i < s->history.end; i++)
        longest = s->history.ns[i] > longest ? s->history.ns[i] : longest;
    uint64_t hold = longest / HOLD_SHARE < HOLD_MAX_NS ? longest / HOLD_SHARE : HOLD_MAX_NS;
    if (!d->limits.in_order && hold > 0 && s->cycle_steps <= d->limits.steps)
        s->hold_until = now + hold;
}

/* Results that nobody fetches must not fill the memory: what could run over waits. */
bool desk_session_may_run(const struct desk *d, const struct session *s, uint64_t now) {
    if (now < s->hold_until && s->arrived < s->cycle_steps)
        return false;
    uint64_t coming = (uint64_t)s->result_blocks + (uint64_t)(s->running + 1) * s->result_most;
    return s->waiting.count > 0 &&
           (coming <= d->quota || (s->result_blocks == 0 && s->running == 0));
}

/* ---- what a master says ---- */

static void mark_set(struct mark *m, uint64_t value, uint64_t ticket) {
    m->latest = value;
    if (m->waits)
        return;
    m->waits = true;
    m->value = value;
    m->ticket = ticket;
}

static void answer(struct desk *d, uint32_t link, uint32_t status) {
    d->links[link].answering = true;
    d->links[link].answer = status;
    d->links[link].answer_ticket = d->records;
}

static void welcome(struct desk *d, struct session *s, uint32_t link, struct deeds *out) {
    struct word w = {.kind = (uint8_t)WORD_WELCOME,
                     .flag = s->open,
                     .session = s->number,
                     .cycle = s->cycle,
                     .step = s->ended,
                     .seq = s->acked,
                     .count = d->limits.steps,
                     .bytes = d->quota,
                     .ns = s->steps,
                     .token = {s->cookie, 0},
                     .name = d->links[link].local ? d->limits.folder : (struct bytes){0}};
    deeds_send(out, link, &w);
}

void desk_master_hello(struct desk *d, uint32_t link, const struct word *w, struct deeds *out) {
    struct session *s = session_named(d, w->name);
    if (s && s->link) {
        /* Its former connection may not know yet that it is dead. */
        d->links[s->link - 1].peer = PEER_NONE;
        deeds_close(out, s->link - 1);
        desk_master_gone(d, s);
    }
    bool changes = s && desk_session_changes(d, s, w);
    if (!s) {
        s = desk_session_new(d, w, d->numbers + 1);
        if (!s) {
            desk_refuse(d, link, ENOSPC, out);
            return;
        }
        changes = true;
    }
    if (changes) {
        struct word log = {.kind = (uint8_t)WORD_LOG_MASTER,
                           .session = s->number,
                           .flag = w->flag,
                           .count = s->cookie,
                           .name = w->name,
                           .body = w->body};
        desk_log(d, &log, out);
    }
    s->link = link + 1;
    d->links[link].peer = PEER_MASTER;
    d->links[link].index = desk_slot_of(d, s);
    welcome(d, s, link, out);
}

void desk_master_gone(struct desk *d, struct session *s) {
    (void)d;
    struct list *first = list_first(&s->results);
    s->unsent = first ? CONTAINER_OF(first, struct step, result_at) : NULL;
    s->flight = s->flight_blocks = 0;
    s->link = 0;
    s->works_heard = 0;
    s->kept = s->confirm = (struct mark){0};
}

static void on_work(struct desk *d, struct session *s, uint32_t link, const struct word *w,
                    struct deeds *out) {
    uint32_t slot = desk_slot_of(d, s);
    s->works_heard++;
    bool known = ranges_have(&s->done, w->step) || desk_step_find(d, slot, w->step);
    if (!s->open || w->cycle != s->cycle || w->step == UINT64_MAX) {
        desk_refuse(d, link, EINVAL, out);
        return;
    }
    if (known) {
        struct word told = {.kind = (uint8_t)WORD_KNOWN, .step = w->step};
        deeds_send(out, link, &told);
    } else if (s->steps >= d->limits.steps || s->done.count + s->steps + 1 >= s->done.cap ||
               s->work_blocks + blocks_for(w->body.len) > d->quota) {
        desk_refuse(d, link, ENOBUFS, out); /* it knows its window */
        return;
    } else {
        struct word log = {
            .kind = (uint8_t)WORD_LOG_WORK, .session = s->number, .step = w->step, .body = w->body};
        desk_step_new(d, slot, w->step, w->body);
        desk_log(d, &log, out);
    }
    mark_set(&s->kept, s->works_heard, d->records);
}

static void on_ack(struct desk *d, struct session *s, uint64_t seq, struct deeds *out) {
    if (seq > s->seq)
        seq = s->seq;
    if (seq > s->acked) {
        desk_session_ack(d, s, seq);
        struct word log = {.kind = (uint8_t)WORD_LOG_ACK, .session = s->number, .seq = seq};
        desk_log(d, &log, out);
    }
    mark_set(&s->confirm, s->acked, d->records);
}

static uint32_t on_begin(struct desk *d, struct session *s, const struct word *w, uint64_t now,
                         struct deeds *out) {
    if (w->cycle <= s->ended)
        return w->cycle ? 1 : EINVAL;
    if (s->open && w->cycle == s->cycle)
        return 0; /* it begins again where it was */
    if (s->open && (s->cycle > 0 || s->steps > 0))
        return EBUSY;
    desk_session_begin(d, s, w);
    desk_session_hold(d, s, now);
    struct word log = {.kind = (uint8_t)WORD_LOG_BEGIN,
                       .session = s->number,
                       .cycle = w->cycle,
                       .count = w->count,
                       .body = w->body};
    desk_log(d, &log, out);
    return 0;
}

static uint32_t on_end(struct desk *d, struct session *s, const struct word *w, struct deeds *out) {
    on_ack(d, s, w->seq, out);
    if (w->cycle <= s->ended)
        return w->cycle ? 1 : EINVAL;
    if (!s->open || w->cycle != s->cycle)
        return EINVAL;
    if (s->steps > 0)
        return EBUSY;
    desk_session_end(d, s, w->cycle, w->body);
    struct word log = {.kind = (uint8_t)WORD_LOG_END,
                       .session = s->number,
                       .cycle = w->cycle,
                       .seq = s->acked,
                       .body = w->body};
    desk_log(d, &log, out);
    return 0;
}

static void on_complete(struct desk *d, struct session *s, uint32_t link, struct deeds *out) {
    struct word log = {.kind = (uint8_t)WORD_LOG_COMPLETE, .session = s->number};
    desk_log(d, &log, out);
    d->links[link].peer = PEER_STRANGER;
    desk_session_free(d, s);
    answer(d, link, 0);
}

void desk_master_heard(struct desk *d, uint32_t link, const struct word *w, uint64_t now,
                       struct deeds *out) {
    struct session *s = &d->sessions[d->links[link].index];
    switch ((enum word_kind)w->kind) {
    case WORD_WORK:
        on_work(d, s, link, w, out);
        break;
    case WORD_ACK:
        on_ack(d, s, w->seq, out);
        break;
    case WORD_BEGIN:
        answer(d, link, on_begin(d, s, w, now, out));
        d->links[link].answer_ticket = d->records;
        break;
    case WORD_END:
        answer(d, link, on_end(d, s, w, out));
        d->links[link].answer_ticket = d->records;
        break;
    case WORD_COMPLETE:
        on_complete(d, s, link, out);
        break;
    default:
        desk_refuse(d, link, EPROTO, out);
    }
}

/* ---- what it is told ---- */

static void pump_mark(struct desk *d, struct mark *m, uint32_t link, struct word w,
                      struct deeds *out) {
    if (!m->waits || m->ticket > d->durable)
        return;
    w.count = w.seq = m->value;
    deeds_send(out, link, &w);
    m->waits = m->latest > m->value;
    m->value = m->latest;
    m->ticket = d->records;
}

static bool may_deliver(const struct desk *d, const struct session *s) {
    const struct step *t = s->unsent;
    return t && t->ticket <= d->durable && s->flight < d->limits.results_ahead &&
           (s->flight == 0 || s->flight_blocks + blocks_for(t->result.len) <= d->quota / 4);
}

static void deliver(struct desk *d, struct session *s, struct deeds *out) {
    struct step *t = s->unsent;
    struct word w = {.kind = (uint8_t)WORD_DELIVER,
                     .seq = t->seq,
                     .status = t->status,
                     .cycle = s->cycle,
                     .step = t->number,
                     .ns = t->ns,
                     .bytes = s->work_blocks,
                     .body = blocks_copy(&d->pool, t->result, d->scratch)};
    deeds_send(out, s->link - 1, &w);
    s->flight++;
    s->flight_blocks += blocks_for(t->result.len);
    struct list *next = t->result_at.next;
    s->unsent = next == &s->results ? NULL : CONTAINER_OF(next, struct step, result_at);
}

bool desk_master_pump(struct desk *d, struct session *s, struct deeds *out) {
    if (!s->used || !s->link)
        return false;
    if (!room_for_one(out))
        return true;
    pump_mark(d, &s->kept, s->link - 1,
              (struct word){.kind = (uint8_t)WORD_KEPT, .bytes = s->work_blocks}, out);
    pump_mark(d, &s->confirm, s->link - 1, (struct word){.kind = (uint8_t)WORD_CONFIRM}, out);
    while (may_deliver(d, s)) {
        if (!room_for_one(out))
            return true;
        deliver(d, s, out);
    }
    return false;
}

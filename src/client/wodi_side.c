/* SPDX-License-Identifier: MIT */
/* A master's conversation with the server, over any number of connections. */
#include "client/wodi_side.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wodi/blocks.h"

/* ---- bytes ---- */

uint8_t *wodi_bytes_room(struct wodi_bytes *b, size_t len) {
    if (b->from > 0 && (b->from == b->len || b->cap - b->len < len)) {
        memmove(b->at, b->at + b->from, b->len - b->from);
        b->len -= b->from;
        b->from = 0;
    }
    if (b->cap - b->len < len) {
        size_t cap = b->cap ? b->cap : 4096;
        while (cap - b->len < len)
            cap *= 2;
        uint8_t *at = realloc(b->at, cap);
        if (!at)
            return NULL;
        b->at = at;
        b->cap = cap;
    }
    return b->at + b->len;
}

bool wodi_bytes_add(struct wodi_bytes *b, struct bytes more) {
    if (more.len == 0)
        return true;
    uint8_t *to = wodi_bytes_room(b, more.len);
    if (!to)
        return false;
    memcpy(to, more.at, more.len);
    b->len += more.len;
    return true;
}

bool wodi_bytes_say(struct wodi_bytes *b, const struct word *w) {
    size_t most = WORD_PREFIX + WORD_HEAD_MAX + w->name.len + w->body.len;
    uint8_t *to = wodi_bytes_room(b, most);
    if (!to)
        return false;
    b->len += word_frame(w, room_of(to, most));
    return true;
}

void wodi_bytes_took(struct wodi_bytes *b, size_t len) {
    b->from += len;
    if (b->from == b->len)
        b->from = b->len = 0;
}

/* ---- life ---- */

void side_init(struct side *s) {
    *s = (struct side){0};
    list_init(&s->unkept);
    list_init(&s->inbox);
}

static void drop_unkept(struct side *s) {
    for (struct list *l; (l = list_pop_front(&s->unkept));)
        free(CONTAINER_OF(l, struct side_work, at));
    s->blocks_unkept = 0;
}

void side_fini(struct side *s) {
    drop_unkept(s);
    for (struct list *l; (l = list_pop_front(&s->inbox));)
        free(CONTAINER_OF(l, struct side_result, at));
    free(s->out.at);
    free(s->profile.at);
    free(s->ask_body.at);
}

static void say(struct side *s, const struct word *w) {
    if (!wodi_bytes_say(&s->out, w))
        s->failed = true;
}

void side_connect(struct side *s) {
    s->out.from = s->out.len = 0;
    s->welcomed = false;
    s->said = 0;
    s->ack_said = 0;
    s->asked_again = s->asking;
    struct word w = {.kind = (uint8_t)WORD_MASTER,
                     .flag = s->speed_source,
                     .token = {s->token[0], s->token[1]},
                     .count = s->cookie,
                     .name = bytes_from_str(s->name),
                     .body = wodi_bytes_left(&s->profile)};
    say(s, &w);
}

/* ---- what is heard ---- */

static void say_work(struct side *s, struct side_work *k) {
    k->said = ++s->said;
    struct word w = {.kind = (uint8_t)WORD_WORK,
                     .cycle = k->cycle,
                     .step = k->step,
                     .body = bytes_of(k->body, k->len)};
    say(s, &w);
}

static void say_ask(struct side *s) {
    s->ask.body = wodi_bytes_left(&s->ask_body);
    s->ask.seq = s->acked;
    say(s, &s->ask);
}

/* Steps of a cycle that is over have all had their results, though we may not have heard that the steps were kept. */
static void drop_unkept_outside(struct side *s, uint64_t cycle, bool open) {
    LIST_EACH_SAFE (l, &s->unkept) {
        struct side_work *k = CONTAINER_OF(l, struct side_work, at);
        if (open && k->cycle == cycle)
            continue;
        list_remove(l);
        s->blocks_unkept -= blocks_for(k->len);
        free(k);
    }
}

/* How many of these are not among those; never below zero, whatever a peer says. */
static uint64_t less(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

/* The server tells what it keeps. Of that we have some results already, and some of it is acknowledged, though it may not
 * have heard so. Whatever is said again and known there will be answered by KNOWN. */
static void reckon(struct side *s, const struct word *w) {
    s->outstanding = less(w->ns, less(s->received, w->seq));
    s->unacked = less(w->ns, less(s->acked, w->seq));
    s->blocks_told = 0;
    LIST_EACH (l, &s->unkept) {
        s->outstanding++;
        s->unacked++;
    }
}

static bool on_welcome(struct side *s, const struct word *w) {
    bool completing = s->asking && s->ask.kind == WORD_COMPLETE;
    if (s->ever && w->seq < s->confirmed && !completing) {
        s->refused = ESTALE; /* it has forgotten what it had confirmed */
        return false;
    }
    if (!s->ever) {
        s->cycle = w->cycle;
        s->ended = w->step;
        s->open = w->flag;
        s->received = s->taken = s->acked = w->seq;
    }
    drop_unkept_outside(s, w->cycle, w->flag);
    reckon(s, w);
    s->ever = s->welcomed = true;
    s->steps_max = w->count;
    s->blocks_max = w->bytes;
    s->cookie_told = w->token[0];
    memcpy(s->folder, w->name.at, w->name.len);
    s->folder[w->name.len] = 0;
    side_say_ack(
        s); /* what the server has heard may not be durable: only its confirmation says so */
    LIST_EACH (l, &s->unkept)
        say_work(s, CONTAINER_OF(l, struct side_work, at));
    if (s->asking)
        say_ask(s);
    return true;
}

void side_found(struct side *s, uint64_t acked) {
    if (acked <= s->acked)
        return;
    uint64_t more = acked - s->acked;
    s->acked = acked;
    s->unacked = less(s->unacked, more);
    if (s->taken < acked)
        s->taken = acked;
    if (s->received < acked) {
        s->outstanding = less(s->outstanding, acked - s->received);
        s->received = acked;
    }
    side_say_ack(s);
}

static void on_kept(struct side *s, const struct word *w) {
    for (struct list *l; (l = list_first(&s->unkept));) {
        struct side_work *k = CONTAINER_OF(l, struct side_work, at);
        if (k->said > w->count)
            break;
        list_remove(l);
        s->blocks_unkept -= blocks_for(k->len);
        free(k);
    }
    s->blocks_told = w->bytes;
}

static void on_deliver(struct side *s, const struct word *w) {
    s->blocks_told = w->bytes;
    if (w->seq <= s->received)
        return; /* it came before, on another connection */
    struct side_result *r = malloc(sizeof *r + w->body.len);
    if (!r) {
        s->failed = true;
        return;
    }
    *r = (struct side_result){.seq = w->seq,
                              .cycle = w->cycle,
                              .step = w->step,
                              .ns = w->ns,
                              .status = w->status,
                              .len = (uint32_t)w->body.len};
    memcpy(r->body, w->body.at, w->body.len);
    list_push_back(&s->inbox, &r->at);
    s->inbox_count++;
    s->received = w->seq;
    if (s->outstanding > 0)
        s->outstanding--;
}

static void on_answer(struct side *s, const struct word *w) {
    if (!s->asking)
        return;
    s->asking = false;
    s->answered = true;
    /* A cycle that was ended before may be one that we have just asked to end: the first answer was lost. */
    bool ours = s->asked_again && s->ask.kind == WORD_END;
    s->answer = w->status == 1 && ours ? 0 : w->status;
    if (s->answer > 1)
        return;
    if (s->ask.kind == WORD_BEGIN && s->answer == 0) {
        s->cycle = s->ask.cycle;
        s->open = true;
        drop_unkept_outside(s, s->cycle, true);
    } else if (s->ask.kind == WORD_END) {
        s->ended = s->ask.cycle;
        s->open = s->open && s->cycle > s->ended;
        drop_unkept_outside(s, s->cycle, s->open);
    }
}

bool side_hear(struct side *s, const struct word *w) {
    if (!s->welcomed && w->kind != WORD_WELCOME && w->kind != WORD_REFUSED)
        return false;
    switch ((enum word_kind)w->kind) {
    case WORD_WELCOME:
        return on_welcome(s, w);
    case WORD_KEPT:
        on_kept(s, w);
        return true;
    case WORD_CONFIRM:
        s->confirmed = w->seq;
        return true;
    case WORD_KNOWN:
        if (s->outstanding > 0)
            s->outstanding--;
        if (s->unacked > 0)
            s->unacked--;
        return true;
    case WORD_DELIVER:
        on_deliver(s, w);
        return true;
    case WORD_ANSWER:
        on_answer(s, w);
        return true;
    case WORD_REFUSED:
        s->refused = w->status ? w->status : EPROTO;
        return false;
    default:
        return false;
    }
}

/* ---- what is said ---- */

int side_work(struct side *s, uint64_t step, struct bytes body) {
    uint32_t blocks = blocks_for(body.len);
    if (!s->open)
        return -EINVAL;
    if (s->unacked >= s->steps_max || s->blocks_told + s->blocks_unkept + blocks > s->blocks_max)
        return -EAGAIN;
    struct side_work *k = malloc(sizeof *k + body.len);
    if (!k)
        return -ENOMEM;
    *k = (struct side_work){.cycle = s->cycle, .step = step, .len = (uint32_t)body.len};
    if (body.len)
        memcpy(k->body, body.at, body.len);
    list_push_back(&s->unkept, &k->at);
    s->blocks_unkept += blocks;
    s->outstanding++;
    s->unacked++;
    if (s->welcomed)
        say_work(s, k);
    return 0;
}

void side_ask(struct side *s, enum word_kind kind, uint64_t cycle, uint64_t steps,
              struct bytes body) {
    s->ask = (struct word){.kind = (uint8_t)kind, .cycle = cycle, .count = steps};
    s->ask_body.from = s->ask_body.len = 0;
    if (!wodi_bytes_add(&s->ask_body, body))
        s->failed = true;
    s->asking = true;
    s->asked_again = s->answered = false;
    if (kind == WORD_COMPLETE)
        drop_unkept(s);
    if (s->welcomed) {
        s->ack_said = s->acked;
        say_ask(s);
    }
}

void side_ack(struct side *s) {
    if (s->taken > s->acked && s->unacked >= s->taken - s->acked)
        s->unacked -= s->taken - s->acked;
    s->acked = s->taken;
}

void side_say_ack(struct side *s) {
    if (!s->welcomed || s->acked <= s->ack_said)
        return;
    struct word w = {.kind = (uint8_t)WORD_ACK, .seq = s->acked};
    say(s, &w);
    s->ack_said = s->acked;
}

struct side_result *side_take(struct side *s) {
    struct list *l = list_pop_front(&s->inbox);
    if (!l)
        return NULL;
    struct side_result *r = CONTAINER_OF(l, struct side_result, at);
    s->inbox_count--;
    s->taken = r->seq;
    return r;
}

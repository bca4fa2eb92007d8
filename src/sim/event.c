/* SPDX-License-Identifier: MIT */
/* The way of an event: clock, then perhaps the inbox of its node, then the node's machines. */
#include "sim/event.h"

#include <errno.h>
#include <string.h>

#include "base/units.h"
#include "sim/carry.h"
#include "sim/inside.h"

struct notice *notice_new(struct world *w, enum event_kind kind, uint32_t node, uint32_t life) {
    struct notice *n = pool_take(&w->pool, sizeof *n);
    memset(n, 0, sizeof *n);
    list_init(&n->event.place);
    n->event.kind = (uint8_t)kind;
    n->event.node = node;
    n->event.life = life;
    return n;
}

void notice_free(struct world *w, struct notice *n) {
    if (n->link != NULL)
        link_unref(w, n->link);
    body_free(w, n->body);
    pool_give(&w->pool, n, sizeof *n);
}

static struct notice *notice_of(struct event *e) {
    return CONTAINER_OF(e, struct notice, event);
}

static struct frame *frame_of(struct event *e) {
    return CONTAINER_OF(e, struct frame, event);
}

static void feed_timer(struct world *w, struct node *n, const struct timer *t) {
    struct input in = {.kind = INPUT_TIMER, .now = w->now};
    in.timer.id = t->id;
    carry_input(w, n, (enum layer)t->layer, &in, 0);
}

static void feed_durable(struct world *w, struct node *n, struct notice *notice) {
    struct input in = {.kind = INPUT_DURABLE, .now = w->now};
    in.durable.ticket = notice->cookie;
    enum layer layer = (enum layer)notice->layer;
    notice_free(w, notice);
    carry_input(w, n, layer, &in, 0);
}

static void feed_logged(struct world *w, struct node *n, struct notice *notice) {
    struct input in = {.kind = INPUT_LOGGED, .now = w->now};
    in.logged = (struct input_logged){.ticket = notice->cookie, .error = notice->error};
    notice_free(w, notice);
    carry_input(w, n, LAYER_DAEMON, &in, 0);
}

static void feed_fetched(struct world *w, struct node *n, struct notice *notice) {
    struct input in = {.kind = INPUT_FETCHED, .now = w->now};
    in.fetched = (struct input_fetched){.ticket = notice->cookie,
                                        .body = journal_first(&n->journal, notice->value)};
    notice_free(w, notice);
    carry_input(w, n, LAYER_DAEMON, &in, 0);
}

static void feed_looked(struct world *w, struct node *n, struct notice *notice) {
    struct input in = {.kind = INPUT_LOOKED, .now = w->now};
    in.looked = (struct input_looked){
        .ticket = notice->cookie, .error = notice->error, .step = SPAWN_IMAGE};
    notice_free(w, notice);
    carry_input(w, n, LAYER_DAEMON, &in, 0);
}

/* Owners come for a while, each at times of his own: some stay, others leave before what is lent has to. */
static bool is_at_desk(uint64_t now, uint32_t node) {
    uint64_t step = now / (3 * NS_PER_S) + (uint64_t)node * 3;
    return step % 8 < 2 + step / 8 % 3;
}

/* Not all are alike. */
static void feed_gauged(struct world *w, struct node *n, struct notice *notice) {
    struct input in = {.kind = INPUT_GAUGED, .now = w->now};
    in.gauged = (struct input_gauged){.load_x100 = 25 * (n->number % 9),
                                      .memory_bytes = 64 * GIB,
                                      .memory_used = (1 + n->number % 32) * GIB,
                                      .owner = notice->value > 0 && is_at_desk(w->now, n->number)};
    notice_free(w, notice);
    carry_input(w, n, LAYER_DAEMON, &in, 0);
}

static void feed_news(struct world *w, struct node *n, struct notice *notice) {
    struct input in;
    notice_free(w, notice);
    if (!w->config.news(w->config.context, n->number, &in))
        return;
    in.now = w->now;
    carry_input(w, n, LAYER_DAEMON, &in, 0);
}

void event_process(struct world *w, struct event *e) {
    struct node *n = &w->nodes[e->node];
    switch ((enum event_kind)e->kind) {
    case EVENT_TIMER:
        feed_timer(w, n, CONTAINER_OF(e, struct timer, event));
        break;
    case EVENT_FRAME:
        link_frame(w, frame_of(e));
        break;
    case EVENT_CONNECT:
        link_connect(w, notice_of(e));
        break;
    case EVENT_REFUSED:
        link_refused(w, notice_of(e));
        break;
    case EVENT_UP:
        link_up(w, notice_of(e));
        break;
    case EVENT_DOWN:
        link_down(w, notice_of(e));
        break;
    case EVENT_DURABLE:
        feed_durable(w, n, notice_of(e));
        break;
    case EVENT_LOGGED:
        feed_logged(w, n, notice_of(e));
        break;
    case EVENT_FETCHED:
        feed_fetched(w, n, notice_of(e));
        break;
    case EVENT_LOOKED:
        feed_looked(w, n, notice_of(e));
        break;
    case EVENT_GAUGED:
        feed_gauged(w, n, notice_of(e));
        break;
    case EVENT_NEWS:
        feed_news(w, n, notice_of(e));
        break;
    case EVENT_SENT:
        sent_feed(w, notice_of(e));
        break;
    case EVENT_WAKE:
    case EVENT_WIRE:
    case EVENT_ENDING:
        assert_failed("an event for a machine", __FILE__, __LINE__);
    }
}

static bool alive(const struct world *w, const struct event *e) {
    const struct node *n = &w->nodes[e->node];
    return n->up && (e->life == ANY_LIFE || e->life == n->boots);
}

void event_arrive(struct world *w, struct event *e) {
    if (!alive(w, e)) {
        event_drop(w, e);
        return;
    }
    struct node *n = &w->nodes[e->node];
    if (w->config.link.cores == 0 && node_idle(w, n)) {
        event_process(w, e);
    } else {
        list_push_back(&n->inbox, &e->place);
        node_rouse(w, n);
    }
}

static void wake(struct world *w, struct node *n) {
    if (w->config.link.cores > 0) {
        cores_wake(w, n);
        return;
    }
    if (n->busy_until <= w->now && n->paused_until <= w->now) {
        struct list *place = list_pop_front(&n->inbox);
        if (place != NULL)
            event_process(w, CONTAINER_OF(place, struct event, place));
    }
    node_rouse(w, n);
}

static void reach_disk(struct world *w, const struct notice *notice) {
    struct node *n = &w->nodes[notice->event.node];
    if (alive(w, &notice->event) && n->persisted < notice->value)
        n->persisted = notice->value;
}

static void reach_journal(struct world *w, struct notice *notice) {
    struct node *n = &w->nodes[notice->event.node];
    if (!alive(w, &notice->event))
        return;
    if (n->full_until > w->now) {
        notice->error = -ENOSPC;
        return;
    }
    journal_append(&n->journal, notice->value, notice->closes,
                   bytes_of(notice->body->bytes, notice->body->len));
}

void event_happen(struct world *w, struct event *e) {
    switch ((enum event_kind)e->kind) {
    case EVENT_WAKE:
        wake(w, &w->nodes[e->node]);
        return;
    case EVENT_WIRE:
        link_frame_off_wire(w, frame_of(e));
        return;
    case EVENT_ENDING:
        link_end_off_wire(w, notice_of(e));
        return;
    case EVENT_FRAME:
        if (frame_of(e)->lost) {
            frame_free(w, frame_of(e));
            return;
        }
        list_remove(&frame_of(e)->flight);
        break;
    case EVENT_CONNECT:
        if (!alive(w, e)) {
            link_refuse(w, notice_of(e), w->now);
            return;
        }
        break;
    case EVENT_DURABLE:
        reach_disk(w, notice_of(e));
        break;
    case EVENT_LOGGED:
        reach_journal(w, notice_of(e));
        break;
    case EVENT_TIMER:
    case EVENT_REFUSED:
    case EVENT_UP:
    case EVENT_DOWN:
    case EVENT_FETCHED:
    case EVENT_LOOKED:
    case EVENT_GAUGED:
    case EVENT_NEWS:
        break;
    case EVENT_SENT:
        if (sent_hold(w, notice_of(e)))
            return;
        break;
    }
    event_arrive(w, e);
}

void event_drop(struct world *w, struct event *e) {
    switch ((enum event_kind)e->kind) {
    case EVENT_WAKE:
    case EVENT_TIMER:
        break; /* belong to their node */
    case EVENT_WIRE:
    case EVENT_FRAME:
        frame_free(w, frame_of(e));
        break;
    case EVENT_CONNECT: {
        struct notice *n = notice_of(e);
        link_refuse(w, n, w->now + link_latency(w, n->opener, n->target));
        break;
    }
    case EVENT_REFUSED:
    case EVENT_UP:
    case EVENT_ENDING:
    case EVENT_DOWN:
    case EVENT_DURABLE:
    case EVENT_LOGGED:
    case EVENT_FETCHED:
    case EVENT_LOOKED:
    case EVENT_GAUGED:
    case EVENT_NEWS:
    case EVENT_SENT:
        notice_free(w, notice_of(e));
        break;
    }
}

/* SPDX-License-Identifier: MIT */
/* Notices that bytes have left: see sent.h. */
#include "sim/sent.h"

#include "sim/carry.h"
#include "sim/inside.h"

struct notice *sent_new(struct world *w, struct node *n, const struct effect_put *p) {
    struct notice *s = notice_new(w, EVENT_SENT, n->number, n->boots);
    s->number = p->link;
    s->buffer = p->buffer;
    s->value = p->offset;
    s->cookie = p->note;
    return s;
}

void sent_tell(struct world *w, struct notice *n, uint64_t at) {
    clock_push(&w->clock, &n->event, at);
}

static bool fits(const struct world *w, const struct end *to, const struct notice *n) {
    uint64_t window = w->config.link.window_bytes;
    return window == 0 || to->number == 0 || to->broken || n->mark <= to->done_bytes + window;
}

bool sent_hold(struct world *w, struct notice *n) {
    struct end *to = n->link != NULL ? &n->link->ends[n->side] : NULL;
    if (to == NULL || end_peer(to)->number == 0 || fits(w, to, n))
        return false;
    list_push_back(&to->held, &n->event.place);
    return true;
}

static struct notice *first_held(struct end *to) {
    struct list *l = list_first(&to->held);
    return l == NULL ? NULL
                     : CONTAINER_OF(CONTAINER_OF(l, struct event, place), struct notice, event);
}

static void let_go(struct world *w, struct notice *n) {
    list_remove(&n->event.place);
    sent_tell(w, n, w->now);
}

void sent_look(struct world *w, struct end *to) {
    for (struct notice *n = first_held(to); n != NULL && fits(w, to, n); n = first_held(to))
        let_go(w, n);
}

void sent_release(struct world *w, struct end *to) {
    for (struct notice *n = first_held(to); n != NULL; n = first_held(to))
        let_go(w, n);
}

void sent_feed(struct world *w, struct notice *n) {
    struct node *node = &w->nodes[n->event.node];
    struct input in = {.kind = INPUT_SENT, .now = w->now};
    in.sent = (struct input_sent){
        .link = n->number, .buffer = n->buffer, .offset = n->value, .note = n->cookie};
    notice_free(w, n);
    stamp_left(node, in.sent.buffer, in.sent.offset);
    carry_input(w, node, LAYER_DAEMON, &in, 0);
}

/* SPDX-License-Identifier: MIT */
/* Frames and their shared bodies: see frame.h. Counting is here, so a frame cannot forget its link,
 * its body or its place in the receiver's queue. */
#include "sim/frame.h"

#include <string.h>

#include "sim/inside.h"

struct body *body_new(struct world *w, size_t len) {
    ASSERT(len <= UINT32_MAX - sizeof(struct body));
    struct body *b = pool_take(&w->pool, sizeof *b + len);
    b->refs = 1;
    b->len = (uint32_t)len;
    return b;
}

void body_free(struct world *w, struct body *b) {
    if (b != NULL && --b->refs == 0)
        pool_give(&w->pool, b, sizeof *b + b->len);
}

struct frame *frame_new(struct world *w, struct end *to, struct body *body) {
    struct frame *f = pool_take(&w->pool, sizeof *f);
    memset(f, 0, sizeof *f);
    list_init(&f->event.place);
    list_init(&f->flight);
    f->event.node = to->node;
    f->event.life = to->life;
    f->header_len = HEADER_BYTES;
    f->to = to;
    f->body = body;
    if (body != NULL)
        body->refs++;
    if (++to->queued > w->counts.queue_max)
        w->counts.queue_max = to->queued;
    return f;
}

void frame_free(struct world *w, struct frame *f) {
    list_remove(&f->flight);
    if (f->sent != NULL)
        sent_tell(w, f->sent, w->now);
    link_unqueue(w, f->to, f->counted ? frame_bytes(f) : 0);
    body_free(w, f->body);
    pool_give(&w->pool, f, sizeof *f);
}

struct frame *frame_copy(struct world *w, const struct frame *f) {
    struct frame *copy = frame_new(w, f->to, f->body);
    memcpy(copy->header, f->header, sizeof copy->header);
    copy->sent_at = f->sent_at;
    copy->extra = f->extra;
    copy->lane = f->lane;
    return copy;
}

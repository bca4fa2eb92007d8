/* SPDX-License-Identifier: MIT */
/* Carries out effects: see carry.h.
 *
 * What a machine could have checked and did not (bounds, numbers of buffers, types) is a bug and
 * asserted; what may cross with something under way (links that are gone) is passed over. */
#include "sim/carry.h"

#include <errno.h>
#include <string.h>

#include "machine/record.h"
#include "sim/inside.h"
#include "sim/trace.h"
#include "wire/message.h"

/* Fields of a put before its bytes. */
enum { PUT_HEAD = 20 };

struct carrier {
    struct world *w;
    struct node *n;
    uint64_t when; /* the processor has got so far */
};

static void send_to(struct carrier *c, struct end *to, uint16_t type, uint32_t epoch,
                    struct body *body) {
    if (c->w->config.link.cores == 0) /* otherwise sending waits for the end of the turn */
        c->when += c->w->config.link.cpu_send_ns * node_slowness(c->w, c->n);
    link_send(c->w, to, type, epoch, body, c->when);
}

static void carry_send(struct carrier *c, const struct effect_send *s) {
    struct body *body = NULL;
    for (uint32_t i = 0; i < s->link_count; i++) {
        struct end *e = node_end(c->n, s->links[i]);
        if (e == NULL)
            continue;
        if (body == NULL) {
            body = body_new(c->w, s->head.len + s->tail.len);
            if (s->head.len > 0)
                memcpy(body->bytes, s->head.at, s->head.len);
            if (s->tail.len > 0)
                memcpy(body->bytes + s->head.len, s->tail.at, s->tail.len);
        }
        send_to(c, e, s->type, s->epoch, body);
    }
    body_free(c->w, body);
}

/* Of a body: a stamp in place of the bytes, and it hears when they have left. */
static void carry_stamp(struct carrier *c, struct end *e, const struct effect_put *p) {
    struct notice *sent = sent_new(c->w, c->n, p);
    if (e == NULL) {
        sent_tell(c->w, sent, c->when);
        return;
    }
    uint8_t stamp[STAMP_BYTES];
    stamp_read(c->n, p, stamp);
    union message m = {.put = {.buffer = p->peer_buffer,
                               .offset = p->peer_offset,
                               .note = p->note,
                               .body = bytes_of(stamp, sizeof stamp)}};
    struct body *body = body_new(c->w, PUT_HEAD + sizeof stamp);
    long len = message_encode(MESSAGE_PUT, &m, room_of(body->bytes, body->len));
    ASSERT(len == (long)body->len);
    sent->link = end_link(e);
    sent->link->refs++;
    sent->side = end_peer(e)->side;
    if (c->w->config.link.cores == 0)
        c->when += c->w->config.link.cpu_send_ns * node_slowness(c->w, c->n);
    link_put(c->w, e, body, p->len > STAMP_BYTES ? p->len - STAMP_BYTES : 0, sent, c->when);
    body_free(c->w, body);
}

static void carry_put(struct carrier *c, const struct effect_put *p) {
    const struct buffer *b = node_buffer(c->n, p->buffer);
    ASSERT(b != NULL);
    ASSERT(p->offset <= b->bytes && p->len <= b->bytes - p->offset);
    struct end *e = node_end(c->n, p->link);
    if (c->n->number >= c->w->universe) {
        carry_stamp(c, e, p);
        return;
    }
    if (e == NULL)
        return;
    union message m = {.put = {.buffer = p->peer_buffer,
                               .offset = p->peer_offset,
                               .note = p->note,
                               .body = bytes_of(b->at + p->offset, p->len)}};
    struct body *body = body_new(c->w, PUT_HEAD + (size_t)p->len);
    long len = message_encode(MESSAGE_PUT, &m, room_of(body->bytes, body->len));
    ASSERT(len == (long)body->len);
    send_to(c, e, MESSAGE_PUT, 0, body);
    body_free(c->w, body);
}

static void carry_close(struct carrier *c, uint32_t link, uint8_t refusal) {
    ASSERT(refusal < REFUSALS);
    if (refusal != REFUSAL_NONE)
        c->w->counts.refused[refusal]++;
    struct end *e = node_end(c->n, link);
    if (e == NULL)
        return;
    c->when = link_flush(c->w, e, c->when);
    link_close(c->w, e, c->when);
}

static void carry_persist(struct carrier *c, const struct effect *e) {
    struct notice *n = notice_new(c->w, EVENT_DURABLE, c->n->number, c->n->boots);
    n->layer = e->layer;
    n->cookie = e->persist.ticket;
    n->value = e->persist.value;
    clock_push(&c->w->clock, &n->event, c->when + c->w->config.link.durable_ns);
}

static void carry_log(struct carrier *c, const struct effect_log *e) {
    ASSERT(e->body.len > 0);
    struct notice *n = notice_new(c->w, EVENT_LOGGED, c->n->number, c->n->boots);
    n->cookie = e->ticket;
    n->value = e->key;
    n->closes = e->closes;
    n->body = body_new(c->w, e->body.len);
    memcpy(n->body->bytes, e->body.at, e->body.len);
    clock_push(&c->w->clock, &n->event, c->when + c->w->config.link.durable_ns);
}

/* On its first try something that a run needs may be gone from a node: a quarter of them lack it on one in four. */
static bool lacks(uint64_t run, uint32_t node) {
    return (run & UINT16_MAX) == 1 && run_job(run) % 4 == 1 && (run_job(run) / 4 + node) % 4 == 1;
}

static void carry_look(struct carrier *c, const struct effect *e) {
    struct notice *n = notice_new(c->w, EVENT_LOOKED, c->n->number, c->n->boots);
    n->cookie = e->look.ticket;
    n->error = lacks(e->look.run, c->n->number) ? -ENOENT : 0;
    clock_push(&c->w->clock, &n->event, c->when);
}

static void carry_gauge(struct carrier *c, struct bytes watch) {
    struct notice *n = notice_new(c->w, EVENT_GAUGED, c->n->number, c->n->boots);
    n->value = watch.len;
    clock_push(&c->w->clock, &n->event, c->when);
}

static void carry_fetch(struct carrier *c, const struct effect *e) {
    struct notice *n = notice_new(c->w, EVENT_FETCHED, c->n->number, c->n->boots);
    n->cookie = e->fetch.ticket;
    n->value = e->fetch.key;
    clock_push(&c->w->clock, &n->event, c->when + c->w->config.link.durable_ns / 4);
}

static void write_heap(struct carrier *c, uint32_t offset, const uint8_t *from, uint64_t len) {
    uint64_t heap_bytes = c->w->config.prim.limits.heap_bytes;
    ASSERT(offset <= heap_bytes && len <= heap_bytes - offset);
    if (len == 0)
        return;
    memcpy(c->n->heap + offset, from, len);
    if (c->n->heap_touched < offset + len)
        c->n->heap_touched = offset + len;
}

static void carry_publish(struct carrier *c, const struct effect_heap *h) {
    const struct buffer *b = node_buffer(c->n, h->buffer);
    ASSERT(b != NULL && h->len <= b->bytes);
    write_heap(c, h->offset, b->at, h->len);
}

static void carry_out(struct carrier *c, const struct effect *e) {
    switch (e->kind) {
    case EFFECT_SEND:
        carry_send(c, &e->send);
        break;
    case EFFECT_OPEN:
        link_open(c->w, c->n->number, &e->open, c->when);
        break;
    case EFFECT_CLOSE:
        carry_close(c, e->close.link, e->close.refusal);
        break;
    case EFFECT_TIMER:
        timers_set(c->w, c->n->number, e->layer, e->timer.id, e->timer.at);
        break;
    case EFFECT_PERSIST:
        carry_persist(c, e);
        break;
    case EFFECT_LOOK:
        carry_look(c, e);
        break;
    case EFFECT_GAUGE:
        carry_gauge(c, e->gauge);
        break;
    case EFFECT_PROMPT: /* everybody is served at once here */
        break;
    case EFFECT_CAST:
        if (c->w->config.cast != NULL)
            c->w->config.cast(c->w->config.context, &e->cast);
        break;
    case EFFECT_STOW:
        node_stow(c->n, e->stow);
        break;
    case EFFECT_HEAP_WRITE:
        write_heap(c, e->heap.offset, e->heap.bytes.at, e->heap.bytes.len);
        break;
    case EFFECT_HEAP_PUBLISH:
        carry_publish(c, &e->heap);
        break;
    case EFFECT_HEAP_CLEAR:
        if (c->n->heap_touched > 0)
            memset(c->n->heap, 0, c->n->heap_touched);
        c->n->heap_touched = 0;
        break;
    case EFFECT_BUFFER_OPEN:
        node_buffer_open(c->n, e->buffer.buffer, e->buffer.bytes, c->n->number >= c->w->universe);
        break;
    case EFFECT_BUFFER_GRANT:
        node_buffer(c->n, e->buffer.buffer)->link = e->buffer.link;
        break;
    case EFFECT_BUFFER_CLOSE:
        node_buffer_close(c->n, e->buffer.buffer);
        break;
    case EFFECT_PUT:
        carry_put(c, &e->put);
        break;
    case EFFECT_LOG:
        carry_log(c, &e->log);
        break;
    case EFFECT_FETCH:
        carry_fetch(c, e);
        break;
    case EFFECT_NONE:
    case EFFECT_NOTE:
        break;
    default:
        ASSERT(e->kind >= EFFECT_GROUP_OPEN && e->kind < EFFECT_KINDS);
        ASSERT(c->w->config.process != NULL);
        c->w->config.process(c->w->config.context, c->n->number, e);
    }
}

static void keep_record(struct world *w, const struct node *n, enum layer layer,
                        const struct input *in) {
    struct room room = room_of(w->record.at, w->record.stride);
    long len = record_encode(room, layer, in);
    ASSERT(len > 0);
    n->sink(n->sink_context, bytes_of(room.at, (size_t)len));
}

static void count_step(struct world *w) {
    struct world_counts *counts = &w->counts;
    counts->steps++;
    if (counts->effects_max < w->effects.count)
        counts->effects_max = w->effects.count;
    if (counts->effect_bytes_max < w->effects.bytes_used)
        counts->effect_bytes_max = w->effects.bytes_used;
}

void carry_input(struct world *w, struct node *n, enum layer layer, const struct input *in,
                 uint64_t cpu_ns) {
    effects_clear(&w->effects);
    if (n->sink != NULL)
        keep_record(w, n, layer, in);
    if (w->config.hash)
        trace_input(&w->hash, n->number, layer, in);
    if (in->kind == INPUT_BOOT)
        stack_boot(&n->stack, in, &w->effects);
    else
        stack_step(&n->stack, layer, in, &w->effects);
    count_step(w);
    if (w->config.hash)
        trace_effects(&w->hash, &w->effects);
    struct carrier c = {.w = w, .n = n, .when = w->now};
    if (w->config.link.cores > 0) {
        c.when = n->busy_until;
        cpu_ns += w->config.link.cpu_step_ns;
    }
    c.when += cpu_ns * node_slowness(w, n);
    for (uint32_t i = 0; i < w->effects.count; i++)
        carry_out(&c, &w->effects.list[i]);
    n->busy_until = c.when;
    if (w->config.observe != NULL)
        w->config.observe(w->config.context, w, n->number);
}

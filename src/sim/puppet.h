/* SPDX-License-Identifier: MIT */
/* A machine for tests of the world: it does what a script says and keeps what it hears.
 *
 * A script is a list of acts, each at a time and on a node; the puppet of that node sets a timer
 * for each of its acts when it boots. What all puppets hear is logged in one list, in order. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/units.h"
#include "sim/world.h"
#include "wire/message.h"

enum { PUPPETS = 8, HEARD_MAX = 4096, TEXT_MAX = 32, ALARM = 1000 };

enum act_kind {
    ACT_OPEN,    /* a link to peer, for purpose `number`; the cookie is 100 + peer */
    ACT_SEND,    /* text to peer, padded with zeros to `number` bytes */
    ACT_SPREAD,  /* text to all peers with a link, in the order of their numbers */
    ACT_CLOSE,   /* the link to peer, with refusal `number` */
    ACT_ALARM,   /* timer ALARM + peer at time `number` */
    ACT_PERSIST, /* value `number`, with a ticket ten times that */
    ACT_BUFFER,  /* buffer `peer` of `number` bytes */
    ACT_RELEASE, /* buffer `peer` */
    ACT_PUT,     /* `number` bytes of buffer 7 into the peer's buffer 9, at offset 3, note 42 */
    ACT_WRITE,   /* text into the heap at `number` */
    ACT_PUBLISH, /* `number` bytes of buffer 7 into the heap at `peer` */
    ACT_CLEAR    /* the heap */
};

struct act {
    uint64_t at;
    uint32_t node;
    enum act_kind kind;
    uint32_t peer;
    uint16_t type;
    uint64_t number;
    const char *text;
};

struct heard {
    uint32_t node;
    struct input in; /* pointers are not to be followed */
    char text[TEXT_MAX];
};

struct stage {
    struct world *w;
    const struct act *acts;
    uint32_t act_count;
    uint32_t link[PUPPETS][PUPPETS]; /* by node and peer; 0: none */
    struct heard heard[HEARD_MAX];
    uint32_t heard_count;
};

struct puppet {
    struct stage *stage;
    uint32_t node;
    uint32_t buffer; /* open for puts, 0 if none */
};

static inline struct effect *puppet_send(struct effects *out, const struct act *a, uint32_t link) {
    size_t len = strlen(a->text);
    uint8_t *tail = effects_room(out, a->number > len ? a->number - len : 0);
    if (a->number > len)
        memset(tail, 0, a->number - len);
    effects_send(out, link, 5, a->type, effects_copy(out, bytes_from_str(a->text)),
                 bytes_of(tail, a->number > len ? a->number - len : 0));
    return &out->list[out->count - 1];
}

static inline void puppet_spread(struct puppet *p, const struct act *a, struct effects *out) {
    uint32_t *links = (uint32_t *)(void *)effects_room(out, PUPPETS * sizeof(uint32_t));
    uint32_t count = 0;
    for (uint32_t i = 0; i < PUPPETS; i++)
        if (p->stage->link[p->node][i])
            links[count++] = p->stage->link[p->node][i];
    struct effect *e = puppet_send(out, a, 0);
    e->send.links = links;
    e->send.link_count = count;
}

static inline void puppet_heap(const struct act *a, struct effects *out) {
    if (a->kind == ACT_WRITE) {
        struct bytes bytes = effects_copy(out, bytes_from_str(a->text));
        struct effect *e = effects_add(out, EFFECT_HEAP_WRITE);
        e->heap = (struct effect_heap){.offset = (uint32_t)a->number, .bytes = bytes};
    } else if (a->kind == ACT_PUBLISH) {
        struct effect *e = effects_add(out, EFFECT_HEAP_PUBLISH);
        e->heap = (struct effect_heap){.offset = a->peer, .buffer = 7, .len = a->number};
    } else {
        effects_add(out, EFFECT_HEAP_CLEAR);
    }
}

/* The last buffer is for the last link, or for whoever comes first. */
static inline void puppet_grant(const struct puppet *p, uint32_t link, struct effects *out) {
    if (p->buffer == 0 || link == 0)
        return;
    struct effect *e = effects_add(out, EFFECT_BUFFER_GRANT);
    e->buffer = (struct effect_buffer){.buffer = p->buffer, .link = link};
}

static inline void puppet_act(struct puppet *p, const struct act *a, struct effects *out) {
    uint32_t link = a->peer < PUPPETS ? p->stage->link[p->node][a->peer] : 0;
    struct effect *e;
    switch (a->kind) {
    case ACT_OPEN:
        e = effects_add(out, EFFECT_OPEN);
        e->open = (struct effect_open){
            .node = a->peer, .purpose = (enum purpose)a->number, .cookie = 100 + a->peer};
        break;
    case ACT_SEND:
        puppet_send(out, a, link);
        break;
    case ACT_SPREAD:
        puppet_spread(p, a, out);
        break;
    case ACT_CLOSE:
        e = effects_add(out, EFFECT_CLOSE);
        e->close.link = link;
        e->close.refusal = (uint8_t)a->number;
        break;
    case ACT_ALARM:
        effects_timer(out, ALARM + a->peer, a->number);
        break;
    case ACT_PERSIST:
        e = effects_add(out, EFFECT_PERSIST);
        e->persist.value = a->number;
        e->persist.ticket = a->number * 10;
        break;
    case ACT_BUFFER:
    case ACT_RELEASE:
        e = effects_add(out, a->kind == ACT_BUFFER ? EFFECT_BUFFER_OPEN : EFFECT_BUFFER_CLOSE);
        e->buffer = (struct effect_buffer){.buffer = a->peer, .bytes = a->number};
        p->buffer = a->kind == ACT_BUFFER ? a->peer : 0;
        puppet_grant(p, p->stage->link[p->node][1], out);
        break;
    case ACT_PUT:
        e = effects_add(out, EFFECT_PUT);
        e->put = (struct effect_put){link, 7, 0, (uint32_t)a->number, 9, 3, 42};
        break;
    case ACT_WRITE:
    case ACT_PUBLISH:
    case ACT_CLEAR:
        puppet_heap(a, out);
        break;
    }
}

static inline void puppet_listen(struct puppet *p, const struct input *in) {
    struct stage *s = p->stage;
    if (s->heard_count == HEARD_MAX)
        abort();
    struct heard *h = &s->heard[s->heard_count++];
    *h = (struct heard){.node = p->node, .in = *in};
    if (in->kind == INPUT_MESSAGE && in->message.body.len > 0) {
        size_t len = in->message.body.len;
        memcpy(h->text, in->message.body.at, len < TEXT_MAX ? len : TEXT_MAX - 1);
    }
    if (in->kind == INPUT_LINK_UP)
        s->link[p->node][in->link.peer] = in->link.link;
    if (in->kind == INPUT_LINK_DOWN && s->link[p->node][in->link.peer] == in->link.link)
        s->link[p->node][in->link.peer] = 0;
}

static inline void puppet_step(void *self, const struct input *in, struct effects *out) {
    struct puppet *p = self;
    const struct stage *s = p->stage;
    if (in->kind == INPUT_TIMER && in->timer.id < ALARM) {
        puppet_act(p, &s->acts[in->timer.id], out);
        return;
    }
    puppet_listen(p, in);
    if (in->kind == INPUT_LINK_UP)
        puppet_grant(p, in->link.link, out);
    for (uint32_t i = 0; in->kind == INPUT_BOOT && i < s->act_count; i++)
        if (s->acts[i].node == p->node && s->acts[i].at >= in->now)
            effects_timer(out, i, s->acts[i].at ? s->acts[i].at : 1);
}

static inline struct machine puppet_new(void *context, uint32_t node, struct arena *a) {
    struct puppet *p = ARENA_TAKE(a, struct puppet, 1);
    *p = (struct puppet){.stage = context, .node = node};
    memset(p->stage->link[node], 0, sizeof p->stage->link[node]);
    return (struct machine){.self = p, .step = puppet_step};
}

/* Four compute nodes and a seat, all up, and a script for them. */
static inline struct stage *stage_new(struct link_model link, const struct act *acts,
                                      uint32_t act_count) {
    struct stage *s = calloc(1, sizeof *s);
    if (s == NULL)
        abort();
    s->acts = acts;
    s->act_count = act_count;
    struct world_config c = {.link = link,
                             .seed = 1,
                             .hash = true,
                             .context = s,
                             .lower = puppet_new,
                             .lower_bytes = sizeof(struct puppet)};
    c.prim.limits.nodes = 4;
    c.prim.limits.roots = 1;
    c.prim.limits.heap_bytes = 4096;
    s->w = world_new(&c);
    for (uint32_t i = 0; i < 5; i++)
        world_boot(s->w, i, i == 4);
    return s;
}

static inline void stage_free(struct stage *s) {
    world_free(s->w);
    free(s);
}

/* The nth input (from 0) of a kind that a node heard; one of no kind if there is none. */
static inline const struct heard *stage_heard(const struct stage *s, uint32_t node,
                                              enum input_kind kind, uint32_t nth) {
    static const struct heard none = {.in = {.kind = INPUT_KINDS}};
    for (uint32_t i = 0; i < s->heard_count; i++)
        if (s->heard[i].node == node && s->heard[i].in.kind == kind && nth-- == 0)
            return &s->heard[i];
    return &none;
}

static inline uint32_t stage_count(const struct stage *s, uint32_t node, enum input_kind kind) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->heard_count; i++)
        count += s->heard[i].node == node && s->heard[i].in.kind == kind;
    return count;
}

#define STAGE(link, acts) stage_new(link, acts, sizeof(acts) / sizeof((acts)[0]))

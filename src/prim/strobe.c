/* SPDX-License-Identifier: MIT */
/* Strobes: the newest of a channel wins, none is ever answered or kept for long.
 *
 * They go down the tree, at the root's word. Where the world has a shorter way to the nodes (it casts: one datagram, no
 * order, no promise) they go that way at once, and by the tree only now and then: often enough that a node which has missed
 * the last one is not behind for long. What is on its way by the tree when a newer one has come is passed over. */
#include <string.h>

#include "base/units.h"
#include "prim/internal.h"

/* Between copies by the tree. */
#define COPY_NS (50 * NS_PER_MS)

static void send_copy(struct prim *p, const struct nodeset *set, struct bytes body) {
    struct strobes *s = &p->order->strobes;
    route_cast(p, MESSAGE_STROBE, set, body);
    s->copied_at = p->now;
    s->kept_len = 0;
}

static void cast(struct prim *p, const struct message_strobe *m) {
    struct effect *e = effects_add(p->out, EFFECT_CAST);
    e->cast.set = effects_copy_set(p->out, m->set);
    e->cast.channel = m->channel;
    e->cast.number = m->number;
    e->cast.body = effects_copy(p->out, m->body);
}

/* The copy can wait; true if it was kept for that. Copies of another channel are not waited for. */
static bool keep(struct prim *p, uint32_t channel, struct bytes body) {
    struct strobes *s = &p->order->strobes;
    bool soon = s->copied_at != 0 && p->now - s->copied_at < COPY_NS;
    if (!soon || body.len > sizeof s->kept || (s->kept_len > 0 && s->channel != channel))
        return false;
    if (s->kept_len == 0)
        effects_timer(p->out, TIMER_STROBE, s->copied_at + COPY_NS);
    memcpy(s->kept, body.at, body.len);
    s->kept_len = (uint32_t)body.len;
    s->channel = channel;
    return true;
}

void strobe_make(struct prim *p, const struct message_request *m) {
    nodeset_copy(&p->part2, m->set);
    union message s = {
        .strobe = {.channel = m->operation.event,
                   .number = ((uint64_t)p->epoch << STROBE_EPOCH_SHIFT) + ++p->order->strobes.count,
                   .set = &p->part2,
                   .body = m->operation.body}};
    if (p->config.casts)
        cast(p, &s.strobe);
    struct bytes body = prim_encode(p, MESSAGE_STROBE, &s);
    if (!p->config.casts || !keep(p, s.strobe.channel, body))
        send_copy(p, &p->part2, body);
    if (nodeset_has(&p->part2, p->self))
        member_strobe(p, &s.strobe);
}

void strobe_timer(struct prim *p) {
    struct strobes *s = &p->order->strobes;
    union message m;
    if (s->kept_len == 0 ||
        message_decode(MESSAGE_STROBE, bytes_of(s->kept, s->kept_len), p->in, &m) < 0)
        return;
    send_copy(p, m.strobe.set, effects_copy(p->out, bytes_of(s->kept, s->kept_len)));
}

/* SPDX-License-Identifier: MIT */
/* Opening, closing and breaking of links, and the way of a frame: see link.h.
 *
 * A frame waits for the sender's network interface, travels, waits for the receiver's, and is
 * judged at the gate when the receiving node looks at it. The receiver's interface takes bytes in
 * while they come, so a lone frame is delayed by its length once, and two senders share the
 * receiver's rate. */
#include "sim/link.h"

#include <string.h>

#include "base/units.h"
#include "sim/carry.h"
#include "sim/inside.h"
#include "wire/message.h"

/* No frame is larger, whatever the message table says. */
#define FRAME_BYTES_MAX (8 * MIB)

static uint64_t later(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static uint64_t draw_jitter(struct world *w) {
    uint64_t jitter = w->config.link.jitter_ns;
    return jitter ? random_between(&w->jitter, 0, jitter) : 0;
}

static uint64_t slowness(const struct world *w, uint32_t a, uint32_t b) {
    return later(node_slowness(w, &w->nodes[a]), node_slowness(w, &w->nodes[b]));
}

uint64_t link_latency(const struct world *w, uint32_t a, uint32_t b) {
    return w->config.link.latency_ns * slowness(w, a, b);
}

/* How long a network interface takes for a frame, rounded up. */
static uint64_t interface_ns(const struct world *w, const struct frame *f) {
    uint64_t rate = w->config.link.bytes_per_s;
    return rate ? (frame_bytes(f) * NS_PER_S + rate - 1) / rate : 0;
}

static uint64_t copy_ns(const struct world *w, uint64_t bytes) {
    return bytes * w->config.link.cpu_kib_ns / KIB;
}

static void free_if_unused(struct world *w, struct link *l) {
    if (l->refs == 0 && l->ends[0].queued == 0 && l->ends[1].queued == 0)
        pool_give(&w->pool, l, sizeof *l);
}

void link_unref(struct world *w, struct link *l) {
    ASSERT(l->refs > 0);
    l->refs--;
    free_if_unused(w, l);
}

void link_unqueue(struct world *w, struct end *to, uint64_t bytes) {
    ASSERT(to->queued > 0);
    to->queued--;
    to->done_bytes += bytes;
    sent_look(w, to);
    if (to->queued == 0 && to->number == 0)
        free_if_unused(w, end_link(to));
}

static void tell(struct world *w, struct end *e, enum event_kind kind, uint64_t at) {
    struct notice *n = notice_new(w, kind, e->node, e->life);
    n->link = end_link(e);
    n->side = e->side;
    n->link->refs++;
    clock_push(&w->clock, &n->event, at);
}

/* Tree and slot links belong to the primitives, the others to the daemon. */
static enum layer layer_of(enum purpose purpose) {
    return purpose == PURPOSE_TREE || purpose == PURPOSE_SLOT ? LAYER_PRIM : LAYER_DAEMON;
}

static void feed_link(struct world *w, uint32_t node, enum purpose purpose, enum input_kind kind,
                      struct input_link link) {
    struct input in = {.kind = kind, .now = w->now, .link = link};
    carry_input(w, &w->nodes[node], layer_of(purpose), &in, 0);
}

/* What a machine calls this one: a launcher or mover has the number of its node, a client none. */
static uint32_t name_of(const struct world *w, uint32_t node) {
    if (node < w->universe)
        return node;
    if (node >= w->first_client)
        return NO_NODE;
    return node < w->first_mover ? node - w->universe : node - w->first_mover;
}

static struct input_link describe(const struct world *w, struct end *e) {
    uint64_t cookie = e->side == 0 ? end_link(e)->cookie : 0;
    return (struct input_link){.link = e->number,
                               .peer = name_of(w, end_peer(e)->node),
                               .cookie = cookie,
                               .role = e->role,
                               .life = end_peer(e)->life};
}

/* To whom a link leads. */
static uint32_t target_of(const struct world *w, const struct effect_open *open) {
    switch (open->purpose) {
    case PURPOSE_LAUNCHER:
        return world_launcher(w, open->node);
    case PURPOSE_CLIENT:
        return w->acting;
    case PURPOSE_MOVER:
        return world_mover(w, open->node);
    case PURPOSE_FILES: /* a client's address is its number */
        ASSERT(open->node != NO_NODE || open->address.len == 4);
        return open->node != NO_NODE ? world_mover(w, open->node) : load_le32(open->address.at);
    default:
        return open->node;
    }
}

/* ---- opening ---- */

void link_open(struct world *w, uint32_t opener, const struct effect_open *open, uint64_t when) {
    ASSERT(open->purpose < PURPOSES && open->cookie != 0);
    uint32_t target = target_of(w, open);
    ASSERT(target < w->node_count);
    struct notice *n = notice_new(w, EVENT_CONNECT, target, ANY_LIFE);
    n->opener = opener;
    n->opener_life = w->nodes[opener].boots;
    n->target = target;
    n->purpose = open->purpose;
    n->cookie = open->cookie;
    uint64_t takes = w->config.link.connect_ns * slowness(w, opener, target);
    clock_push(&w->clock, &n->event, when + takes + draw_jitter(w));
}

static void init_end(struct world *w, struct link *l, int side, uint32_t node, enum role role,
                     uint32_t peer) {
    struct end *e = &l->ends[side];
    e->side = (uint8_t)side;
    e->node = node;
    e->life = w->nodes[node].boots;
    e->role = role;
    gate_init(&e->gate, peer, w->nodes[peer].boots, role);
    list_init(&e->flight);
    list_init(&e->unsent);
    list_init(&e->to_flush);
    list_init(&e->held);
}

static struct link *establish(struct world *w, const struct notice *n) {
    struct link *l = pool_take(&w->pool, sizeof *l);
    memset(l, 0, sizeof *l);
    l->cookie = n->cookie;
    l->purpose = n->purpose;
    init_end(w, l, 0, n->opener, purpose_role(n->purpose, true), n->target);
    init_end(w, l, 1, n->target, purpose_role(n->purpose, false), n->opener);
    node_attach(&w->nodes[n->opener], &l->ends[0]);
    node_attach(&w->nodes[n->target], &l->ends[1]);
    return l;
}

void link_connect(struct world *w, struct notice *n) {
    const struct node *opener = &w->nodes[n->opener];
    if (!opener->up || opener->boots != n->opener_life) {
        notice_free(w, n);
        return;
    }
    struct link *l = establish(w, n);
    notice_free(w, n);
    tell(w, &l->ends[0], EVENT_UP, w->now); /* before anything that the target's machine may do */
    feed_link(w, l->ends[1].node, l->purpose, INPUT_LINK_UP, describe(w, &l->ends[1]));
}

void link_refuse(struct world *w, struct notice *n, uint64_t at) {
    n->event.kind = EVENT_REFUSED;
    n->event.node = n->opener;
    n->event.life = n->opener_life;
    clock_push(&w->clock, &n->event, at);
}

void link_refused(struct world *w, struct notice *n) {
    struct input_link link = {
        .peer = name_of(w, n->target), .cookie = n->cookie, .role = purpose_role(n->purpose, true)};
    uint32_t opener = n->opener;
    enum purpose purpose = n->purpose;
    notice_free(w, n);
    feed_link(w, opener, purpose, INPUT_LINK_DOWN, link);
}

void link_up(struct world *w, struct notice *n) {
    struct end *e = &n->link->ends[n->side];
    ASSERT(e->number != 0);
    struct input_link link = describe(w, e);
    uint32_t node = e->node;
    enum purpose purpose = n->link->purpose;
    notice_free(w, n);
    feed_link(w, node, purpose, INPUT_LINK_UP, link);
}

/* ---- ending ---- */

/* The end of the link travels to this end, behind all frames sent to it. */
static void announce_end(struct world *w, struct end *to, uint64_t when) {
    if (to->number == 0 || to->broken)
        return;
    uint64_t at = when + link_latency(w, to->node, end_peer(to)->node) + draw_jitter(w);
    for (int lane = 0; lane < LANES; lane++)
        at = later(at, to->wire_at[lane]);
    tell(w, to, EVENT_ENDING, at);
}

void link_close(struct world *w, struct end *e, uint64_t when) {
    announce_end(w, end_peer(e), when);
    node_detach(w, e);
}

void link_abandon(struct world *w, struct end *e) {
    struct end *peer = end_peer(e);
    memset(peer->wire_at, 0, sizeof peer->wire_at);
    LIST_EACH (l, &peer->flight) {
        struct frame *f = CONTAINER_OF(l, struct frame, flight);
        f->lost = f->lost || f->sent_at > w->now;
        if (!f->lost)
            peer->wire_at[f->lane] = later(peer->wire_at[f->lane], f->wire_at);
    }
    link_close(w, e, w->now);
}

/* Loses everything under way to this end from a random point on. */
static void lose_suffix(struct world *w, struct end *to) {
    uint64_t count = 0;
    LIST_EACH (l, &to->flight)
        count++;
    uint64_t kept = random_below(&w->faults, count + 1);
    LIST_EACH (l, &to->flight) {
        if (kept > 0)
            kept--;
        else
            CONTAINER_OF(l, struct frame, flight)->lost = true;
    }
}

void link_break(struct world *w, struct link *l) {
    if (l->ends[0].broken)
        return;
    l->ends[0].broken = l->ends[1].broken = true;
    uint64_t span = 4 * link_latency(w, l->ends[0].node, l->ends[1].node);
    for (int side = 0; side < 2; side++) {
        lose_suffix(w, &l->ends[side]);
        sent_release(w, &l->ends[side]);
        uint64_t delay = random_between(&w->faults, 0, span);
        if (l->ends[side].number != 0)
            tell(w, &l->ends[side], EVENT_DOWN, w->now + delay);
    }
}

/* The end of a link is retransmitted until it gets through, and waits for bytes that came before.
 */
void link_end_off_wire(struct world *w, struct notice *n) {
    const struct end *e = &n->link->ends[n->side];
    if (e->mute_until > w->now) {
        clock_push(&w->clock, &n->event, e->mute_until);
        return;
    }
    uint64_t at = w->now;
    for (int lane = 0; lane < LANES; lane++)
        at = later(at, e->memory_at[lane]);
    n->event.kind = EVENT_DOWN;
    if (at > w->now)
        clock_push(&w->clock, &n->event, at);
    else
        event_arrive(w, &n->event);
}

void link_down(struct world *w, struct notice *n) {
    struct end *e = &n->link->ends[n->side];
    if (e->number == 0) {
        notice_free(w, n);
        return;
    }
    struct input_link link = describe(w, e);
    uint32_t node = e->node;
    enum purpose purpose = n->link->purpose;
    node_detach(w, e);
    notice_free(w, n);
    feed_link(w, node, purpose, INPUT_LINK_DOWN, link);
}

/* ---- frames ---- */

static void take_off(struct world *w, struct frame *f, uint64_t at) {
    f->event.kind = EVENT_WIRE;
    f->wire_at = at;
    list_push_back(&f->to->flight, &f->flight);
    clock_push(&w->clock, &f->event, at);
}

/* Perhaps the network delivers the frame once more, a little later, out of order. */
static void maybe_duplicate(struct world *w, const struct frame *f) {
    if (!random_chance(&w->faults, 1, 4))
        return;
    const struct link_model *m = &w->config.link;
    uint64_t delay = random_between(&w->faults, 0, 2 * (m->latency_ns + m->jitter_ns));
    take_off(w, frame_copy(w, f), f->wire_at + delay);
}

static struct frame *make_frame(struct world *w, struct end *from, uint16_t type, uint32_t epoch,
                                struct body *body) {
    const struct message_rule *rule = message_rule(type);
    ASSERT(rule != NULL);
    struct frame *f = frame_new(w, end_peer(from), body);
    struct header h = {.magic = HEADER_MAGIC,
                       .version = HEADER_VERSION,
                       .lane = rule->lane,
                       .type = type,
                       .length = body->len,
                       .sequence = ++from->sequence[rule->lane],
                       .epoch = epoch,
                       .node = from->node,
                       .life = from->life};
    header_encode(&h, f->header);
    f->lane = rule->lane;
    return f;
}

/* The sender's processor is done with the frame at `when`. */
static void launch(struct world *w, struct end *from, struct frame *f, uint64_t when) {
    struct end *to = f->to;
    struct node *sender = &w->nodes[from->node];
    w->counts.bytes += frame_bytes(f);
    to->sent_bytes += frame_bytes(f);
    f->counted = true;
    f->sent_at = later(when, sender->egress_at[f->lane]) + interface_ns(w, f);
    sender->egress_at[f->lane] = f->sent_at;
    uint64_t through = trunks_pass(w, from->node, to->node, f);
    uint64_t at = through + link_latency(w, from->node, to->node) + draw_jitter(w);
    to->wire_at[f->lane] = later(at, to->wire_at[f->lane]);
    take_off(w, f, to->wire_at[f->lane]);
    if (f->sent != NULL) {
        f->sent->mark = to->sent_bytes;
        sent_tell(w, f->sent, f->sent_at);
        f->sent = NULL;
    }
    if (sender->duplicate_until > w->now)
        maybe_duplicate(w, f);
}

/* Where processors are shared, sending waits for the end of the turn. */
static void dispatch(struct world *w, struct end *from, struct frame *f, uint64_t when) {
    if (w->config.link.cores == 0) {
        launch(w, from, f, when);
        return;
    }
    if (list_empty(&from->unsent))
        list_push_back(&w->nodes[from->node].unsent, &from->to_flush);
    list_push_back(&from->unsent, &f->flight);
}

void link_send(struct world *w, struct end *from, uint16_t type, uint32_t epoch, struct body *body,
               uint64_t when) {
    if (!from->broken)
        dispatch(w, from, make_frame(w, from, type, epoch, body), when);
}

void link_put(struct world *w, struct end *from, struct body *body, uint32_t extra,
              struct notice *sent, uint64_t when) {
    if (from->broken) {
        sent_tell(w, sent, when);
        return;
    }
    struct frame *f = make_frame(w, from, MESSAGE_PUT, 0, body);
    f->extra = extra;
    f->sent = sent;
    dispatch(w, from, f, when);
}

uint64_t link_flush(struct world *w, struct end *from, uint64_t when) {
    uint64_t slow = node_slowness(w, &w->nodes[from->node]);
    uint64_t bytes = 0;
    if (list_empty(&from->unsent))
        return when;
    LIST_EACH (l, &from->unsent)
        bytes += frame_bytes(CONTAINER_OF(l, struct frame, flight));
    when += (w->config.link.cpu_send_ns + copy_ns(w, bytes)) * slow;
    struct list *l;
    while (!from->broken && (l = list_pop_front(&from->unsent)) != NULL)
        launch(w, from, CONTAINER_OF(l, struct frame, flight), when);
    link_drop_unsent(w, from);
    return when;
}

void link_drop_unsent(struct world *w, struct end *from) {
    struct list *l;
    while ((l = list_pop_front(&from->unsent)) != NULL)
        frame_free(w, CONTAINER_OF(l, struct frame, flight));
    list_remove(&from->to_flush);
}

void link_frame_off_wire(struct world *w, struct frame *f) {
    struct end *to = f->to;
    if (f->lost || to->number == 0 || to->mute_until > w->now) {
        frame_free(w, f);
        return;
    }
    uint64_t *ingress = &w->nodes[to->node].ingress_at[f->lane];
    *ingress = later(w->now, *ingress + interface_ns(w, f));
    to->memory_at[f->lane] = *ingress;
    f->event.kind = EVENT_FRAME;
    if (*ingress > w->now)
        clock_push(&w->clock, &f->event, *ingress);
    else
        event_happen(w, &f->event);
}

static enum refusal judge(struct end *to, const struct frame *f, struct header *ret) {
    if (f->header_len < HEADER_BYTES)
        return REFUSAL_TRUNCATED;
    header_decode(ret, f->header);
    enum refusal r = gate_check(&to->gate, ret, FRAME_BYTES_MAX);
    if (r == REFUSAL_NONE && ret->length != frame_body(f).len)
        return REFUSAL_TRUNCATED;
    return r;
}

/* A frame that must not be: the link ends here and now, and for the peer when it hears of it. */
static void refuse_frame(struct world *w, struct end *to, enum refusal r) {
    w->counts.refused[r]++;
    if (r == REFUSAL_DUPLICATE || r == REFUSAL_EPOCH || r == REFUSAL_LIFE)
        return;
    struct input_link link = describe(w, to);
    uint32_t node = to->node;
    enum purpose purpose = end_link(to)->purpose;
    link_close(w, to, w->now);
    feed_link(w, node, purpose, INPUT_LINK_DOWN, link);
}

/* What a frame costs the receiving processor. A process that reads a socket gets all that is there
 * with one system call. */
static uint64_t receive_ns(const struct world *w, struct end *to, uint64_t bytes) {
    const struct link_model *m = &w->config.link;
    if (m->cores == 0)
        return m->cpu_receive_ns;
    uint64_t turn = w->nodes[to->node].turn;
    uint64_t call = to->turn == turn ? 0 : m->cpu_receive_ns;
    to->turn = turn;
    return call + copy_ns(w, bytes);
}

static void deliver_message(struct world *w, struct end *to, const struct header *h,
                            struct bytes body) {
    struct input in = {.kind = INPUT_MESSAGE, .now = w->now};
    in.message = (struct input_message){.link = to->number,
                                        .peer = name_of(w, h->node),
                                        .epoch = h->epoch,
                                        .type = h->type,
                                        .body = body};
    w->counts.messages++;
    carry_input(w, &w->nodes[to->node], layer_of(end_link(to)->purpose), &in,
                receive_ns(w, to, HEADER_BYTES + body.len));
}

static void feed_put(struct world *w, struct end *to, const struct message_put *put, uint32_t len,
                     uint64_t frame_len) {
    struct input in = {.kind = INPUT_PUT, .now = w->now};
    in.put = (struct input_put){.link = to->number,
                                .buffer = put->buffer,
                                .offset = put->offset,
                                .len = len,
                                .note = put->note};
    w->counts.messages++;
    carry_input(w, &w->nodes[to->node], layer_of(end_link(to)->purpose), &in,
                receive_ns(w, to, frame_len));
}

/* Puts are the world's business: the machine only hears that the bytes are there. */
static void deliver_put(struct world *w, struct end *to, struct bytes body, uint64_t frame_len) {
    union message m;
    if (message_decode(MESSAGE_PUT, body, NULL, &m) < 0) {
        refuse_frame(w, to, REFUSAL_BODY);
        return;
    }
    const struct message_put *put = &m.put;
    const struct buffer *b = node_buffer(&w->nodes[to->node], put->buffer);
    if (b == NULL || b->link != to->number)
        return; /* closed, or granted to another link, while the bytes were under way */
    bool stamped = end_link(to)->purpose == PURPOSE_FILES;
    uint32_t len = stamped ? stamp_len(put->body) : (uint32_t)put->body.len;
    if (put->offset > b->bytes || len > b->bytes - put->offset) {
        refuse_frame(w, to, REFUSAL_BODY);
        return;
    }
    if (stamped)
        stamp_write(&w->nodes[to->node], put->buffer, put->offset, put->body);
    else if (len > 0)
        memcpy(b->at + put->offset, put->body.at, len);
    feed_put(w, to, put, len, frame_len);
}

void link_frame(struct world *w, struct frame *f) {
    struct end *to = f->to;
    if (to->number != 0) {
        struct header h;
        enum refusal r = judge(to, f, &h);
        if (r != REFUSAL_NONE)
            refuse_frame(w, to, r);
        else if (h.type == MESSAGE_PUT)
            deliver_put(w, to, frame_body(f), frame_bytes(f));
        else
            deliver_message(w, to, &h, frame_body(f));
    }
    frame_free(w, f);
}

/* SPDX-License-Identifier: MIT */
/* The primitives' machine: construction and the step function.
 *
 * Every input is judged here and handed to the part it concerns; the parts run straight. A message
 * of a former epoch is dropped and counted, one that does not decode costs its sender the link. */
#include "prim/prim.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "prim/internal.h"

void prim_config_times(struct prim_config *c, uint64_t period_ns) {
    c->period_ns = period_ns;
    c->attach_ns = period_ns / 4;
    c->grace_ns = period_ns * 5 / 4; /* time for two candidates */
    c->settle_ns = period_ns / 100;
    c->collect_ns = 4 * period_ns;
}

void prim_set_init(struct prim *p, struct nodeset *s, struct arena *a) {
    nodeset_init(s, p->universe, ARENA_TAKE(a, uint64_t, nodeset_bytes(p->universe) / 8));
}

/* Carves the parts out of the arena; measuring and taking are the same walk. */
static void carve(struct prim *p, const struct prim_config *c, bool seat, struct arena *a) {
    memset(p, 0, sizeof *p);
    p->config = *c;
    p->seat = seat;
    p->universe = limits_universe(&c->limits);
    prim_set_init(p, &p->own, a);
    route_init(p, a);
    ack_init(p, a);
    member_init(p, a);
    request_init(p, a);
    slot_init(p, a);
    query_init(p, a);
    place_init(p, a);
    if (seat) {
        order_init(p, a);
        view_init(p, a);
    }
}

size_t prim_bytes(const struct prim_config *c, bool seat) {
    struct arena a;
    arena_init(&a, NULL, 0);
    struct prim scratch; /* when measuring there is nothing to write to */
    ARENA_TAKE(&a, struct prim, 1);
    carve(&scratch, c, seat, &a);
    return arena_used(&a);
}

/* Whatever these limits allow must fit into the messages that carry it. */
static void check_messages(const struct prim_config *c) {
    const struct limits *l = &c->limits;
    size_t set = 80 + (size_t)limits_universe(l) / 8;
    size_t variables = 8 * (size_t)l->variables;
    ASSERT(64 + set <= message_rule(MESSAGE_ACK)->max_bytes);
    ASSERT(64 + set + 8 * (size_t)l->standing <= message_rule(MESSAGE_ARM)->max_bytes);
    ASSERT(128 + set + l->body_bytes <= message_rule(MESSAGE_PREPARE)->max_bytes);
    ASSERT(64 + 2 * set + variables + (size_t)l->window * RESOLUTION_BYTES <=
           message_rule(MESSAGE_VIEW)->max_bytes);
    ASSERT(64 + 2 * set + (size_t)l->window * RECORD_BYTES <=
           message_rule(MESSAGE_ATTACH)->max_bytes);
    ASSERT(l->record_bytes <= RECORD_BYTES_MAX);
    ASSERT(64 + set + REPLY_HEAD_BYTES + l->record_bytes <=
           message_rule(MESSAGE_RECORDS)->max_bytes);
    ASSERT(64 + (size_t)l->chunk_bytes <= message_rule(MESSAGE_PUT)->max_bytes);
}

struct prim *prim_new(const struct prim_config *c, bool seat, struct arena *a) {
    ASSERT(c->limits.window >= 1 && c->limits.window <= 64);
    ASSERT(c->limits.outstanding >= 1 && c->limits.outstanding <= 64);
    ASSERT(c->tree.nodes == c->limits.nodes);
    check_messages(c);
    struct prim *p = ARENA_TAKE(a, struct prim, 1);
    carve(p, c, seat, a);
    return p;
}

struct globals prim_globals(const struct prim *p) {
    return (struct globals){p->member.variables, p->member.events};
}

struct bytes prim_encode(struct prim *p, uint16_t type, const union message *m) {
    long len = message_encode(type, m, effects_tail(p->out));
    ASSERT(len >= 0);
    return effects_take(p->out, (size_t)len);
}

void prim_send(struct prim *p, uint32_t link, uint16_t type, const union message *m) {
    effects_send(p->out, link, p->epoch, type, prim_encode(p, type, m), (struct bytes){0});
}

void prim_close(struct prim *p, uint32_t link, enum refusal why) {
    struct effect *e = effects_add(p->out, EFFECT_CLOSE);
    e->close.link = link;
    e->close.refusal = (uint8_t)why;
}

void prim_persist(struct prim *p, uint32_t epoch, uint64_t view) {
    struct effect *e = effects_add(p->out, EFFECT_PERSIST);
    e->persist.value = (uint64_t)epoch << 32 | (view & UINT32_MAX);
    e->persist.ticket = e->persist.value;
}

static void on_boot(struct prim *p, const struct input_boot *b) {
    p->self = b->node;
    p->boots = b->boots;
    p->incarnation = (uint64_t)b->boots << 32;
    p->kept = b->kept;
    p->epoch = b->root ? b->epoch : (uint32_t)(b->kept >> 32);
    p->root = b->root;
    ASSERT(!p->root || p->seat);
    random_init(&p->random, b->random_seed);
    nodeset_add(&p->own, p->self);
    place_boot(p);
    if (p->root) {
        p->root_node = p->self;
        view_boot(p);
    } else if (p->self < p->config.limits.nodes) {
        uplink_start(p);
    }
    wave_start(p);
}

static void on_link_up(struct prim *p, const struct input_link *l) {
    if (l->role == ROLE_CHILD)
        route_link_up(p, l);
    else if (l->role != ROLE_PARENT ? !slot_link_up(p, l) : !uplink_link_up(p, l))
        prim_close(p, l->link, REFUSAL_NONE);
}

static void on_link_down(struct prim *p, const struct input_link *l) {
    if (slot_link_down(p, l))
        return;
    if (l->link != 0 && route_child(p, l->link) != NULL)
        route_link_down(p, l->link);
    else
        uplink_link_down(p, l);
}

/* A peer that talks nonsense, or talks where it has no business, loses its link. */
static void refuse(struct prim *p, uint32_t link, enum refusal why) {
    p->refused[why]++;
    prim_close(p, link, why);
    struct input_link down = {.link = link};
    on_link_down(p, &down);
}

static void donate(struct prim *p) {
    union message answer = {.donation = {.node = p->self}};
    answer.donation.variables =
        bytes_of(member_store_variables(p), 8 * (size_t)p->config.limits.variables);
    uplink_send(p, MESSAGE_DONATION, &answer);
}

/* From the parent: all down messages. */
static void on_down(struct prim *p, uint16_t type, const union message *m, struct bytes body) {
    enum refusal why = REFUSAL_NONE;
    switch (type) {
    case MESSAGE_ATTACHED:
        uplink_attached(p, &m->attached, body);
        break;
    case MESSAGE_FENCED:
        uplink_fenced(p, &m->fenced, body);
        break;
    case MESSAGE_VIEW:
        route_cast(p, type, m->view.members, body);
        ack_open(p, ACK_VIEW, m->view.view, nodeset_has(m->view.members, p->self));
        member_view(p, &m->view);
        break;
    case MESSAGE_PREPARE:
        route_cast(p, type, m->prepare.set, body);
        ack_open(p, ACK_PREPARE, m->prepare.order, nodeset_has(m->prepare.set, p->self));
        if (nodeset_has(m->prepare.set, p->self))
            member_prepare(p, &m->prepare);
        break;
    case MESSAGE_DECIDE:
        route_cast(p, type, m->decide.set, body);
        ack_open(p, ACK_DECIDE, m->decide.order, nodeset_has(m->decide.set, p->self));
        if (nodeset_has(m->decide.set, p->self))
            member_decide(p, m->decide.order, m->decide.stable, m->decide.commit);
        break;
    case MESSAGE_ARM:
        route_cast(p, type, m->arm.set, body);
        if (m->arm.disarm)
            ack_close(p, ACK_ARM, m->arm.number);
        else
            ack_open(p, ACK_ARM, m->arm.number, nodeset_has(m->arm.set, p->self));
        if (nodeset_has(m->arm.set, p->self))
            member_arm(p, &m->arm);
        break;
    case MESSAGE_RESULT:
        if (m->result.id.node == p->self)
            request_result(p, &m->result);
        else
            route_unicast(p, m->result.id.node, type, body);
        break;
    case MESSAGE_STROBE:
        route_cast(p, type, m->strobe.set, body);
        if (nodeset_has(m->strobe.set, p->self))
            member_strobe(p, &m->strobe);
        break;
    case MESSAGE_QUERY:
        route_cast(p, type, m->query.set, body);
        query_asked(p, &m->query);
        break;
    case MESSAGE_MAIL:
    case MESSAGE_PARCEL:
        why = mail_down(p, type, &m->mail, body);
        break;
    case MESSAGE_TICK:
        wave_tick(p, &m->tick, body);
        break;
    case MESSAGE_DONATE:
        if (m->donate.node != p->self)
            route_unicast(p, m->donate.node, type, body);
        else if (m->donate.incarnation == p->incarnation)
            donate(p);
        break;
    default:
        break;
    }
    if (why != REFUSAL_NONE)
        refuse(p, p->uplink.link, why);
}

/* Whose word a message from below is; NO_NODE if it is not one node's. */
static uint32_t speaker(uint16_t type, const union message *m) {
    switch (type) {
    case MESSAGE_REQUEST:
        return m->request.id.node;
    case MESSAGE_RECEIVED:
        return m->received.id.node;
    case MESSAGE_DONATION:
        return m->donation.node;
    default:
        return NO_NODE;
    }
}

/* A node's word counts only on the path by which it last attached: what a former life of it said
 * may still be on the way along another. */
static bool speaks_here(const struct child *c, uint32_t node) {
    return nodeset_has(&c->below, node) || planted(PLANTED_OLD_INCARNATION);
}

/* What the root does with messages that other nodes only pass on. */
static void on_word(struct prim *p, uint16_t type, const union message *m) {
    if (type == MESSAGE_REQUEST)
        order_admit(p, &m->request);
    else if (type == MESSAGE_RECEIVED)
        order_received(p, &m->received.id);
    else
        view_donation(p, &m->donation);
}

static void on_ack(struct prim *p, struct child *c, const struct message_ack *m) {
    nodeset_intersect(m->set, &c->below); /* a child speaks for those below it, for nobody else */
    if (nodeset_empty(m->set))
        return;
    if (!p->root)
        ack_acked(p, m);
    else if (m->what == ACK_VIEW)
        view_acked(p, m->number, m->set);
    else
        order_acked(p, (enum ack_what)m->what, m->number, m->no, m->set);
}

/* From a child: all up messages. */
static void on_up(struct prim *p, struct child *c, uint16_t type, const union message *m,
                  struct bytes body) {
    enum refusal why = REFUSAL_NONE;
    switch (type) {
    case MESSAGE_ATTACH:
        if (p->root)
            view_attach(p, c, &m->attach);
        else
            route_attach_passing(p, c, &m->attach, body);
        break;
    case MESSAGE_LOST:
        route_lost(p, c, &m->lost);
        break;
    case MESSAGE_DETACH:
        route_detach(p, c);
        break;
    case MESSAGE_ACK:
        on_ack(p, c, &m->ack);
        break;
    case MESSAGE_RECORDS:
        if (!query_replied(p, c, &m->records))
            why = REFUSAL_BODY;
        break;
    case MESSAGE_MAIL:
    case MESSAGE_PARCEL:
        why = mail_up(p, c, type, &m->mail, body);
        break;
    case MESSAGE_TOCK:
        wave_tock(p, c, &m->tock);
        break;
    default:
        if (!speaks_here(c, speaker(type, m)))
            p->refused[REFUSAL_SENDER]++;
        else if (p->root)
            on_word(p, type, m);
        else
            uplink_pass(p, type, body);
        break;
    }
    if (why != REFUSAL_NONE)
        refuse(p, c->link, why);
}

static void on_message(struct prim *p, const struct input_message *in) {
    union message m;
    bool from_parent = in->link == p->uplink.link;
    struct child *c = from_parent ? NULL : route_child(p, in->link);
    if (message_decode(in->type, in->body, p->in, &m) < 0) {
        refuse(p, in->link, REFUSAL_BODY);
        return;
    }
    if (in->type == MESSAGE_WANT) {
        if (m.want.node == in->peer)
            slot_want(p, in->link, &m.want);
        return;
    }
    if (uplink_scouting(p, in->link) && in->type == MESSAGE_EPOCH)
        uplink_scouted(p, in->epoch);
    if (c == NULL && !from_parent)
        return; /* of a link that we have closed, or do not listen to yet */
    if (from_parent)
        p->uplink.heard = p->now;
    else
        c->heard = p->now;
    if (from_parent && in->type == MESSAGE_EPOCH) {
        uplink_epoch(p, in->epoch, &m.epoch);
        return;
    }
    if (in->epoch != p->epoch) {
        p->refused[REFUSAL_EPOCH]++;
        return;
    }
    if (from_parent)
        on_down(p, in->type, &m, in->body);
    else
        on_up(p, c, in->type, &m, in->body);
}

static void on_timer(struct prim *p, uint32_t id) {
    switch ((enum prim_timer)id) {
    case TIMER_WAVE:
        wave_timer(p);
        break;
    case TIMER_UPLINK:
        uplink_timer(p);
        break;
    case TIMER_REQUEST:
        request_timer(p);
        break;
    case TIMER_ORDER:
        order_timer(p);
        break;
    case TIMER_VIEW:
        view_timer(p);
        break;
    case TIMER_SLOT:
        slot_timer(p);
        break;
    case TIMER_QUERY:
        query_timer(p);
        break;
    case TIMER_STROBE:
        strobe_timer(p);
        break;
    }
}

/* Sets that live for one step only. They share the effects' bytes, which stay warm in the cache
 * when one world steps thousands of nodes. */
static void lend_scratch(struct prim *p) {
    struct nodeset *sets[] = {&p->in[0], &p->in[1], &p->aim, &p->gone, &p->part, &p->part2};
    size_t bytes = nodeset_bytes(p->universe);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        nodeset_init(sets[i], p->universe, effects_room(p->out, bytes));
}

static void step(void *self, const struct input *in, struct effects *out) {
    struct prim *p = self;
    p->now = in->now;
    p->out = out;
    if (in->kind == INPUT_REQUEST && in->request.kind == PRIMITIVE_MAIL) {
        mail_make(p, &in->request);
        p->out = NULL;
        return;
    }
    lend_scratch(p);
    switch (in->kind) {
    case INPUT_BOOT:
        on_boot(p, &in->boot);
        break;
    case INPUT_MESSAGE:
        on_message(p, &in->message);
        break;
    case INPUT_LINK_UP:
        on_link_up(p, &in->link);
        break;
    case INPUT_LINK_DOWN:
        on_link_down(p, &in->link);
        break;
    case INPUT_TIMER:
        on_timer(p, in->timer.id);
        break;
    case INPUT_DURABLE:
        if (p->root)
            view_durable(p, in->durable.ticket);
        else
            uplink_durable(p, (uint32_t)(in->durable.ticket >> 32));
        break;
    case INPUT_PUT:
        slot_put(p, &in->put);
        break;
    case INPUT_REQUEST:
        request_make(p, &in->request);
        break;
    default:
        assert_failed("an input for the primitives", __FILE__, __LINE__);
    }
    if (p->root) {
        view_admit(p);
        order_pump(p);
    }
    place_tell(p);
    p->out = NULL;
}

struct machine prim_machine(struct prim *p) {
    return (struct machine){.self = p, .step = step};
}

bool prim_attached(const struct prim *p) {
    return p->root ? p->view->stage == STAGE_OPEN : p->uplink.state == UPLINK_ATTACHED;
}

static enum prim_phase phase_of(const struct prim *p) {
    if (p->root && p->view->stage != STAGE_OPEN)
        return PHASE_COLLECTING;
    if (p->root && p->view->acked < p->member.view)
        return PHASE_VIEW;
    if (p->root && order_undecided(p))
        return PHASE_PREPARING;
    if (slot_active(p))
        return PHASE_STREAMING;
    if (p->root && order_in_flight(p) > 0)
        return PHASE_DECIDING;
    return PHASE_QUIET;
}

void prim_status(const struct prim *p, struct prim_status *ret) {
    *ret = (struct prim_status){
        .root = p->root,
        .attached = prim_attached(p),
        .member = p->member.joined,
        .epoch = p->epoch,
        .incarnation = p->incarnation,
        .view = p->member.view,
        .parent = uplink_usable(p) && !p->root ? p->uplink.peer : NO_NODE,
        .children = p->route.count,
        .in_flight = p->root ? order_in_flight(p) : 0,
        .outstanding = request_count(p),
        .phase = phase_of(p),
    };
    memcpy(ret->refused, p->refused, sizeof ret->refused);
}

const char *phase_name(enum prim_phase phase) {
    static const char *const names[PHASES] = {"quiet", "preparing",  "deciding",
                                              "view",  "collecting", "streaming"};
    return phase < PHASES ? names[phase] : "?";
}

/* SPDX-License-Identifier: MIT */
/* Mail: what daemons say to each other along the tree, hop by hop and without any promise.
 *
 * A message of the table travels inside a carrier, one for each lane. Downwards it takes the way of a
 * cast: whoever it is for and can be reached gets it; each hop knows by itself whom it reaches, so the
 * bytes pass unchanged. Upwards it goes to the parent's daemon, or from hop to hop to the root's. Every
 * hop judges it by the carried message's row before it goes any further: so whoever sends what it may
 * not loses its own link, not that of a neighbour. */
#include "prim/internal.h"

static uint16_t carrier_of(const struct message_rule *rule) {
    return rule->lane == LANE_BULK ? MESSAGE_PARCEL : MESSAGE_MAIL;
}

static enum refusal judge(const struct prim *p, uint16_t carrier, const struct message_mail *m,
                          enum role sender) {
    const struct message_rule *rule = message_rule(m->type);
    if (rule == NULL)
        return REFUSAL_TYPE;
    if (!(rule->from & 1U << sender))
        return REFUSAL_ROLE;
    if (carrier_of(rule) != carrier)
        return REFUSAL_LANE;
    if (m->body.len > rule->max_bytes)
        return REFUSAL_SIZE;
    return m->origin < p->universe ? REFUSAL_NONE : REFUSAL_BODY;
}

static void deliver(struct prim *p, const struct message_mail *m) {
    struct input *up = effects_raise(p->out, INPUT_MESSAGE, p->now);
    up->message = (struct input_message){
        .peer = m->origin, .epoch = p->epoch, .type = m->type, .body = m->body};
}

/* The carrier's body without the carried one, which goes out from where it is. */
static struct bytes encode_head(struct prim *p, uint16_t carrier, const struct message_mail *m) {
    union message head = {.mail = *m};
    head.mail.body = (struct bytes){0};
    return prim_encode(p, carrier, &head);
}

static enum refusal send_down(struct prim *p, uint16_t carrier, const struct message_mail *m) {
    if (m->set == NULL || m->set->universe != p->universe)
        return REFUSAL_BODY;
    struct bytes head = encode_head(p, carrier, m);
    if (head.len + m->body.len > message_rule(carrier)->max_bytes)
        return REFUSAL_SIZE;
    nodeset_init(&p->aim, p->universe, effects_room(p->out, nodeset_bytes(p->universe)));
    route_cast_parts(p, carrier, m->set, head, m->body);
    if (nodeset_has(m->set, p->self))
        deliver(p, m);
    return REFUSAL_NONE;
}

static enum refusal send_up(struct prim *p, uint16_t carrier, struct message_mail *m) {
    if (p->root) {
        deliver(p, m);
        return REFUSAL_NONE;
    }
    if (p->uplink.state != UPLINK_ATTACHED)
        return REFUSAL_NONE;
    struct nodeset nobody;
    nodeset_init(&nobody, p->universe, NULL);
    m->set = &nobody;
    struct bytes head = encode_head(p, carrier, m);
    if (head.len + m->body.len > message_rule(carrier)->max_bytes)
        return REFUSAL_SIZE;
    effects_send(p->out, p->uplink.link, p->epoch, carrier, head, m->body);
    return REFUSAL_NONE;
}

/* What cannot be sent is dropped without a word: nobody waits for one. */
void mail_make(struct prim *p, const struct primitive *r) {
    const struct message_rule *rule = message_rule(r->type);
    uint16_t carrier = rule == NULL ? MESSAGE_MAIL : carrier_of(rule);
    bool down = r->way == MAIL_DOWN;
    struct message_mail m = {.origin = p->self,
                             .root = r->way == MAIL_ROOT,
                             .type = r->type,
                             .set = (struct nodeset *)r->set,
                             .body = r->body};
    enum refusal why = judge(p, carrier, &m, down ? ROLE_ROOT : ROLE_NODE);
    if (why == REFUSAL_NONE)
        why = down ? send_down(p, carrier, &m) : send_up(p, carrier, &m);
    if (why != REFUSAL_NONE)
        p->refused[why]++;
}

enum refusal mail_down(struct prim *p, uint16_t carrier, const struct message_mail *m,
                       struct bytes body) {
    enum refusal why = judge(p, carrier, m, ROLE_ROOT);
    if (why == REFUSAL_NONE && (m->root || nodeset_empty(m->set)))
        why = REFUSAL_BODY;
    if (why != REFUSAL_NONE)
        return why;
    route_cast_parts(p, carrier, m->set, body, (struct bytes){0});
    if (nodeset_has(m->set, p->self))
        deliver(p, m);
    return REFUSAL_NONE;
}

/* Lanes do not wait for each other: mail of a node may be here before the ATTACH that says that the node
 * is below. It is lost then, as when the way had broken. */
enum refusal mail_up(struct prim *p, const struct child *c, uint16_t carrier,
                     const struct message_mail *m, struct bytes body) {
    enum refusal why = judge(p, carrier, m, ROLE_NODE);
    if (why == REFUSAL_NONE && !nodeset_empty(m->set))
        why = REFUSAL_BODY;
    if (why != REFUSAL_NONE)
        return why;
    bool known = c->attached && nodeset_has(&c->below, m->origin);
    if (!known || (!m->root && m->origin != c->node))
        p->refused[REFUSAL_SENDER]++;
    else if (p->root || !m->root)
        deliver(p, m);
    else
        uplink_pass(p, carrier, body);
    return REFUSAL_NONE;
}

/* SPDX-License-Identifier: MIT */
/* The heartbeat: one combined wave, a tick down, a count of the living up.
 *
 * It also keeps every link honest. A parent hears from each child once a period, a child from its
 * parent; who is silent for SILENT_PERIODS is taken for gone. A node that itself hears nothing
 * repeats the last tick to its children, so that one stalled node does not make its whole subtree
 * scatter; only when the tick has stood still for STALLED_PERIODS do they look for another way up.
 */
#include "base/assert.h"
#include "prim/internal.h"

void wave_start(struct prim *p) {
    p->wave.tock_sent = true;
    effects_timer(p->out, TIMER_WAVE, p->now + p->config.period_ns);
}

static void send_tick(struct prim *p, struct bytes body) {
    struct route *r = &p->route;
    p->wave.tick_at = p->now;
    p->wave.missing = 0;
    if (r->count == 0)
        return;
    uint32_t *links = (uint32_t *)(void *)effects_room(p->out, r->count * sizeof *links);
    for (uint32_t i = 0; i < r->count; i++) {
        links[i] = r->children[i].link;
        r->children[i].tocked = !r->children[i].attached;
        r->children[i].tock_nodes = 0;
        p->wave.missing += r->children[i].attached;
    }
    struct effect *e = effects_add(p->out, EFFECT_SEND);
    e->send = (struct effect_send){.links = links,
                                   .link_count = r->count,
                                   .epoch = p->epoch,
                                   .type = MESSAGE_TICK,
                                   .head = body};
}

static void send_tock(struct prim *p, bool complete) {
    uint32_t nodes = 1;
    for (uint32_t i = 0; i < p->route.count; i++)
        nodes += p->route.children[i].tock_nodes;
    p->wave.tock_sent = true;
    if (p->root) {
        struct input *up = effects_raise(p->out, INPUT_WAVE, p->now);
        up->wave = (struct input_wave){.tick = p->wave.tick,
                                       .nodes = nodes,
                                       .complete = complete,
                                       .started_ns = p->wave.tick_at};
        return;
    }
    union message m = {.tock = {.tick = p->wave.tick, .nodes = nodes, .complete = complete}};
    uplink_send(p, MESSAGE_TOCK, &m);
}

/* Answers when the last child has. */
void wave_check(struct prim *p) {
    if (!p->wave.tock_sent && p->wave.missing == 0)
        send_tock(p, true);
}

/* The message of this node's own making: at the root the next tick, elsewhere the last one again.
 */
static void make_tick(struct prim *p) {
    union message m = {.tick = {.tick = p->wave.tick, .limbo = &p->part}};
    nodeset_clear(&p->part);
    if (p->root) {
        m.tick.view = p->member.view;
        m.tick.stable = order_stable(p);
        view_limbo(p, &p->part);
    }
    send_tick(p, prim_encode(p, MESSAGE_TICK, &m));
}

static void drop_silent_children(struct prim *p) {
    uint64_t limit = (SILENT_PERIODS + 1) * p->config.period_ns;
    for (uint32_t i = p->route.count; i-- > 0;) {
        if (i >= p->route.count)
            continue;
        struct child *c = &p->route.children[i];
        if (p->now - c->heard <= limit)
            continue;
        prim_close(p, c->link, REFUSAL_NONE);
        route_link_down(p, c->link);
    }
}

static void check_uplink(struct prim *p) {
    struct uplink *u = &p->uplink;
    if (u->state != UPLINK_ATTACHED)
        return;
    if (p->now - u->heard > SILENT_PERIODS * p->config.period_ns ||
        p->now - u->advanced > STALLED_PERIODS * p->config.period_ns)
        uplink_lost(p);
    else if (!p->member.joined && p->now - u->attached_at > p->config.period_ns)
        uplink_attach(p); /* the root may have missed that we want to join */
}

/* How long to wait for the next tick before repeating the last one. */
static uint64_t patience(const struct prim *p) {
    return p->config.period_ns * 3 / 2;
}

/* Who comes much later than it meant to was not running: a virtual machine that its host had
 * forgotten, say. Most likely all stood still then, and come back as we do. */
static void note_absence(struct prim *p) {
    if (p->wave.tick_at != 0 && p->now - p->wave.tick_at > 2 * p->config.period_ns)
        p->view->back_at = p->now;
}

void wave_timer(struct prim *p) {
    effects_timer(p->out, TIMER_WAVE, p->now + p->config.period_ns);
    if (p->root)
        note_absence(p);
    drop_silent_children(p);
    if (p->root) {
        if (!p->wave.tock_sent)
            send_tock(p, false);
        p->wave.tick++;
        p->wave.tock_sent = false;
        make_tick(p);
        wave_check(p);
        view_watch(p);
        return;
    }
    check_uplink(p);
    if (p->now - p->wave.tick_at >= patience(p))
        make_tick(p);
}

/* Does the root, for all we can tell, not count us in any more? Views travel faster than ticks
 * pass, so after two ticks of being behind we ask; whoever was given up will hear so. */
static bool left_behind(struct prim *p, const struct message_tick *m) {
    bool behind = p->member.joined && (p->member.epoch < p->epoch || m->view > p->member.view);
    p->wave.behind = behind ? p->wave.behind + 1 : 0;
    return p->wave.behind > 2;
}

void wave_tick(struct prim *p, const struct message_tick *m, struct bytes body) {
    if (p->member.joined && p->member.epoch == p->epoch)
        member_trim(p, m->stable);
    bool again = nodeset_has(m->limbo, p->self);
    if (m->tick > p->wave.tick) {
        again = left_behind(p, m) || again;
        p->uplink.advanced = p->now;
        if (!p->wave.tock_sent)
            send_tock(p, false);
        p->wave.tick = m->tick;
    }
    p->wave.tock_sent = false;
    send_tick(p, body);
    wave_check(p);
    if (again && p->uplink.state == UPLINK_ATTACHED)
        uplink_attach(p);
    /* A tick is as good a moment to look around as the timer's, which need not wake us then. */
    drop_silent_children(p);
    check_uplink(p);
    effects_timer(p->out, TIMER_WAVE, p->now + patience(p));
}

void wave_tock(struct prim *p, struct child *c, const struct message_tock *m) {
    if (m->tick != p->wave.tick)
        return; /* a late answer still shows that the child lives */
    p->wave.missing -= !c->tocked;
    c->tocked = true;
    c->tock_nodes = m->nodes;
    wave_check(p);
}

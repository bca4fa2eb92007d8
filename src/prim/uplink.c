/* SPDX-License-Identifier: MIT */
/* The way up: finding a parent, attaching, moving, being fenced.
 *
 * A node tries its ancestors in the plan, nearest first, then the seats of the root. A parent that
 * is itself attached answers a new link with its epoch; the node then attaches: its ATTACH travels
 * to the root, whose ATTACHED confirms the path back. Whenever the way up breaks, stalls or turns
 * out to be a detour (a nearer ancestor has come back), it is sought again from the nearest. */
#include <string.h>

#include "base/assert.h"
#include "prim/internal.h"

/* How long to wait for an answer: longer each time that nobody has answered in time, since a
 * cluster that is busy with thousands of joins needs patience, not more of them. */
static void wait_for_answer(struct prim *p, uint64_t patience_ns) {
    effects_timer(p->out, TIMER_UPLINK, p->now + (patience_ns << p->uplink.rounds));
}

static void plan_candidates(struct prim *p) {
    struct uplink *u = &p->uplink;
    u->candidate_count = tree_ancestors(&p->config.tree, p->self, u->candidates, CANDIDATES);
    for (uint32_t r = 0; r < p->config.limits.roots; r++)
        u->candidates[u->candidate_count++] = p->config.limits.nodes + r;
}

static void try_candidate(struct prim *p) {
    struct uplink *u = &p->uplink;
    u->state = UPLINK_OPENING;
    u->cookie = ++p->cookie;
    u->peer = u->candidates[u->candidate];
    struct effect *e = effects_add(p->out, EFFECT_OPEN);
    e->open = (struct effect_open){.node = u->peer, .purpose = PURPOSE_TREE, .cookie = u->cookie};
    wait_for_answer(p, p->config.attach_ns);
}

static void stop_scouting(struct prim *p) {
    struct uplink *u = &p->uplink;
    if (u->scout_link != 0)
        prim_close(p, u->scout_link, REFUSAL_NONE);
    u->scout_link = 0;
    u->scout_cookie = 0;
    u->move = false;
}

/* Leaves the link, if there is one, and begins with the nearest ancestor. */
static void seek(struct prim *p) {
    struct uplink *u = &p->uplink;
    stop_scouting(p);
    if (u->link != 0)
        prim_close(p, u->link, REFUSAL_NONE);
    u->link = 0;
    u->candidate = 0;
    u->retry_ns = p->config.attach_ns / 8 + 1;
    try_candidate(p);
}

/* This candidate will not do: the next, or, after the last, all again after a pause. */
static void seek_next(struct prim *p) {
    struct uplink *u = &p->uplink;
    if (u->link != 0)
        prim_close(p, u->link, REFUSAL_NONE);
    u->link = 0;
    if (u->candidate + 1 < u->candidate_count) {
        u->candidate++;
        try_candidate(p);
        return;
    }
    u->candidate = 0;
    u->state = UPLINK_WAITING;
    u->cookie = 0;
    uint64_t pause = u->retry_ns + random_below(&p->random, u->retry_ns);
    effects_timer(p->out, TIMER_UPLINK, p->now + pause);
    if (u->retry_ns < p->config.period_ns / 4)
        u->retry_ns *= 2;
    if (u->rounds < PATIENCE_MAX)
        u->rounds++;
}

void uplink_start(struct prim *p) {
    plan_candidates(p);
    seek(p);
}

bool uplink_usable(const struct prim *p) {
    return p->root || p->uplink.state == UPLINK_ATTACHING || p->uplink.state == UPLINK_ATTACHED;
}

void uplink_pass(struct prim *p, uint16_t type, struct bytes body) {
    if (!p->root && uplink_usable(p))
        effects_send(p->out, p->uplink.link, p->epoch, type, body, (struct bytes){0});
}

void uplink_send(struct prim *p, uint16_t type, const union message *m) {
    if (!p->root && uplink_usable(p))
        prim_send(p, p->uplink.link, type, m);
}

bool uplink_link_up(struct prim *p, const struct input_link *l) {
    struct uplink *u = &p->uplink;
    if (u->scout_cookie != 0 && l->cookie == u->scout_cookie) {
        u->scout_link = l->link; /* it will greet us if it can */
        return true;
    }
    if (u->state != UPLINK_OPENING || l->cookie != u->cookie)
        return false; /* of an attempt that was given up */
    u->link = l->link;
    u->heard = p->now;
    u->advanced = p->now;
    u->state = UPLINK_GREETING;
    wait_for_answer(p, 2 * p->config.attach_ns); /* it may be on its own way up */
    return true;
}

/* Not this time: later, if it is still worth it. If we have lost our own parent meanwhile the timer
 * is not the scout's any more. */
static void give_up_move(struct prim *p) {
    stop_scouting(p);
    if (p->uplink.state != UPLINK_ATTACHED)
        return;
    effects_timer(p->out, TIMER_UPLINK, 0);
    uplink_consider_move(p, &p->member.members);
}

/* The nearest ancestor that is a member and nearer than our parent; our own candidate if none is. */
static uint32_t better_candidate(const struct prim *p, const struct nodeset *members) {
    const struct uplink *u = &p->uplink;
    uint32_t i = 0;
    while (i < u->candidate && !nodeset_has(members, u->candidates[i]))
        i++;
    return i;
}

static void scout(struct prim *p) {
    struct uplink *u = &p->uplink;
    u->moves += u->moves < PATIENCE_MAX;
    u->scout_candidate = better_candidate(p, &p->member.members);
    if (u->scout_candidate == u->candidate) {
        u->move = false;
        return;
    }
    u->scout_cookie = ++p->cookie;
    struct effect *e = effects_add(p->out, EFFECT_OPEN);
    e->open = (struct effect_open){.node = u->candidates[u->scout_candidate],
                                   .purpose = PURPOSE_TREE,
                                   .cookie = u->scout_cookie};
    effects_timer(p->out, TIMER_UPLINK, p->now + 4 * p->config.attach_ns);
}

bool uplink_scouting(const struct prim *p, uint32_t link) {
    return link != 0 && link == p->uplink.scout_link;
}

/* The nearer ancestor is there and attached: go. What is in flight for us and ours is sent again. */
void uplink_scouted(struct prim *p, uint32_t epoch) {
    struct uplink *u = &p->uplink;
    if (u->state != UPLINK_ATTACHED || epoch != p->epoch) {
        give_up_move(p);
        return;
    }
    uplink_send(p, MESSAGE_DETACH, &(union message){0});
    prim_close(p, u->link, REFUSAL_NONE);
    u->link = u->scout_link;
    u->candidate = u->scout_candidate;
    u->peer = u->candidates[u->candidate];
    u->heard = p->now;
    u->advanced = p->now;
    u->scout_link = 0;
    stop_scouting(p);
    uplink_attach(p);
}

void uplink_link_down(struct prim *p, const struct input_link *l) {
    struct uplink *u = &p->uplink;
    if (u->scout_cookie != 0 &&
        (l->link != 0 ? l->link == u->scout_link : l->cookie == u->scout_cookie)) {
        u->scout_link = 0;
        give_up_move(p);
    } else if (l->link != 0 && l->link == u->link)
        uplink_lost(p);
    else if (u->state == UPLINK_OPENING && l->cookie == u->cookie)
        seek_next(p);
}

void uplink_lost(struct prim *p) {
    if (p->uplink.state == UPLINK_GREETING || p->uplink.state == UPLINK_ATTACHING)
        seek_next(p);
    else
        seek(p);
}

void uplink_timer(struct prim *p) {
    struct uplink *u = &p->uplink;
    switch (u->state) {
    case UPLINK_NONE:
        break;
    case UPLINK_WAITING:
        try_candidate(p);
        break;
    case UPLINK_OPENING:
    case UPLINK_GREETING:
        seek_next(p);
        break;
    case UPLINK_ATTACHING: /* the parent lives, but someone above it may just be moving: once more */
        if (u->attempts < ATTEMPTS_MAX && u->heard > u->asked_at)
            uplink_attach(p);
        else
            seek_next(p);
        break;
    case UPLINK_ATTACHED:
        if (u->scout_cookie != 0)
            give_up_move(p);
        else if (u->move)
            scout(p);
        break;
    }
}

/* The parent's epoch: attach to it; or, if it is newer than ours, first make sure that we shall
 * never follow an older one again. A parent that is behind is none. */
void uplink_epoch(struct prim *p, uint32_t epoch, const struct message_epoch *m) {
    if (epoch < p->epoch) {
        p->refused[REFUSAL_EPOCH]++;
        seek_next(p);
        return;
    }
    p->root_node = m->root;
    if (epoch == p->epoch) {
        uplink_attach(p);
        return;
    }
    p->epoch_wanted = epoch;
    p->uplink.state = UPLINK_GREETING;
    effects_timer(p->out, TIMER_UPLINK, p->now + PERSIST_PERIODS * p->config.period_ns);
    prim_persist(p, epoch, 0);
}

/* This epoch is on the disk. If it is the one we were told of, we may follow it. */
void uplink_durable(struct prim *p, uint32_t epoch) {
    if (epoch <= p->epoch || epoch != p->epoch_wanted)
        return;
    p->epoch = epoch;
    route_new_epoch(p);
    ack_reset(p);
    query_forget(p);
    if (p->uplink.state == UPLINK_GREETING && p->uplink.link != 0)
        uplink_attach(p);
}

void uplink_attach(struct prim *p) {
    struct uplink *u = &p->uplink;
    u->attempts = u->state == UPLINK_ATTACHING ? u->attempts + 1 : 1;
    u->state = UPLINK_ATTACHING;
    u->asked_at = p->now;
    wait_for_answer(p, p->config.period_ns); /* the root is many hops away */
    union message m = {.attach = {
                           .node = p->self,
                           .incarnation = p->incarnation,
                           .attempt = (uint64_t)p->boots << 40 | ++p->cookie,
                           .member = p->member.joined,
                           .member_epoch = p->member.epoch,
                           .view = p->member.view,
                           .below = &p->part,
                           .members = &p->part2,
                       }};
    nodeset_copy(&p->part, &p->own);
    nodeset_unite(&p->part, &p->route.reach);
    nodeset_subtract(&p->part, &p->route.waiting); /* they will attach for themselves */
    nodeset_clear(&p->part2);
    if (p->member.joined && p->member.epoch < p->epoch) {
        nodeset_copy(&p->part2, &p->member.members);
        m.attach.records = member_records(p);
    }
    prim_send(p, u->link, MESSAGE_ATTACH, &m);
}

void uplink_attached(struct prim *p, const struct message_attached *m, struct bytes body) {
    route_confirm(p, m->set, body);
    struct uplink *u = &p->uplink;
    if (!nodeset_has(m->set, p->self) || u->state != UPLINK_ATTACHING)
        return;
    u->state = UPLINK_ATTACHED;
    u->attached_at = p->now;
    u->rounds = 0;
    stop_scouting(p);
    if (u->candidate == 0)
        u->moves = 0;
    effects_timer(p->out, TIMER_UPLINK, 0);
    u->retry_ns = p->config.attach_ns / 8 + 1;
    route_greet(p);
    request_resend(p);
    if (p->member.joined)
        uplink_consider_move(p, &p->member.members);
}

/* If a member in the plan stands between us and our parent, go there, but not at once: it has just
 * come back, and may have to find its own way first. If it does not work out, the next try is
 * later. */
void uplink_consider_move(struct prim *p, const struct nodeset *joined) {
    struct uplink *u = &p->uplink;
    if (u->state != UPLINK_ATTACHED || u->move)
        return;
    if (better_candidate(p, joined) == u->candidate)
        return;
    u->move = true;
    uint64_t pause = p->config.period_ns + random_below(&p->random, p->config.period_ns);
    effects_timer(p->out, TIMER_UPLINK, p->now + (pause << u->moves));
}

/* The others have given this node up: whatever state it has is void. */
static void fence(struct prim *p) {
    p->rejoins++;
    p->incarnation = (uint64_t)p->boots << 32 | p->rejoins;
    effects_raise(p->out, INPUT_FENCED, p->now);
    route_close_all(p);
    ack_reset(p);
    query_reset(p);
    request_reset(p);
    slot_reset(p);
    member_reset(p);
    effects_add(p->out, EFFECT_HEAP_CLEAR);
    seek(p);
}

void uplink_fenced(struct prim *p, const struct message_fenced *m, struct bytes body) {
    if (m->node != p->self)
        route_unicast(p, m->node, MESSAGE_FENCED, body);
    else if (m->incarnation == p->incarnation)
        fence(p);
    else
        p->refused[REFUSAL_LIFE]++;
}

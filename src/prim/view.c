/* SPDX-License-Identifier: MIT */
/* Who is a member, as the acting root decides it.
 *
 * A view is a numbered set of members. It is cast whole and the newest wins, so views need no order
 * among themselves; a view is known when every member has acknowledged it. Before anything that was
 * decided without a dropped node is called finished or forgotten, the view without that node is
 * known: so a later root that meets the node again can tell that it was given up.
 *
 * A member whose path broke is in limbo: it should attach again by itself. One whose own link broke
 * is also suspect: operations that name it are refused until it is back. Who does not come back in
 * time is dropped, and fenced if it comes later. Joining nodes are gathered for a moment, the order
 * is held until nothing is undecided, and the view that admits them carries the root's variables.
 */
#include <string.h>

#include "base/assert.h"
#include "prim/internal.h"

void view_init(struct prim *p, struct arena *a) {
    const struct limits *l = &p->config.limits;
    struct view *v = ARENA_TAKE(a, struct view, 1);
    struct view scratch;
    if (arena_measuring(a))
        v = &scratch;
    memset(v, 0, sizeof *v);
    v->peers = ARENA_TAKE(a, struct peer, p->universe);
    v->last = ARENA_TAKE(a, uint64_t, (size_t)p->universe * l->outstanding);
    v->blame = ARENA_TAKE(a, uint32_t, (size_t)p->universe * l->outstanding);
    v->snapshot = ARENA_TAKE(a, uint64_t, l->variables);
    v->records = ARENA_TAKE(a, struct record, l->window);
    v->resolutions = ARENA_TAKE(a, uint8_t, l->window * (size_t)RESOLUTION_BYTES);
    struct nodeset *sets[] = {&v->pending, &v->suspects, &v->limbo,        &v->joiners, &v->joined,
                              &v->fallen,  &v->reported, &v->best_members, &v->dropping};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        prim_set_init(p, sets[i], a);
    if (!arena_measuring(a))
        p->view = v;
}

/* ---- timer: the earliest of the root's own times ---- */

static void arm_timer(struct prim *p) {
    struct view *v = p->view;
    uint64_t times[] = {v->settle_at, v->lost_at, v->collect_at, v->donate_at};
    uint64_t at = 0;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] != 0 && (at == 0 || times[i] < at))
            at = times[i];
    effects_timer(p->out, TIMER_VIEW, at);
}

static bool due(uint64_t *at, uint64_t now) {
    if (*at == 0 || *at > now)
        return false;
    *at = 0;
    return true;
}

/* ---- the beginning of an epoch ---- */

/* A new incarnation of a node, or the first we hear of it. */
void view_know_peer(struct prim *p, uint32_t node, uint64_t incarnation) {
    uint32_t slots = p->config.limits.outstanding;
    p->view->peers[node] = (struct peer){.incarnation = incarnation};
    memset(p->view->last + (size_t)node * slots, 0, slots * sizeof *p->view->last);
}

static void become_member(struct prim *p) {
    p->member.joined = true;
    p->member.epoch = p->epoch;
    nodeset_add(&p->member.members, p->self);
    view_know_peer(p, p->self, p->incarnation);
}

static void open_for_business(struct prim *p) {
    p->view->stage = STAGE_OPEN;
    nodeset_clear(&p->view->fallen);
    p->member.top = p->order->next - 1;
    struct input *up = effects_raise(p->out, INPUT_JOINED, p->now);
    up->joined = (struct input_joined){
        .epoch = p->epoch, .incarnation = p->incarnation, .order = p->member.top};
    nodeset_copy(&p->part, &p->member.members);
    struct input *nodes = effects_raise(p->out, INPUT_NODES, p->now);
    nodes->nodes = (struct input_nodes){
        .nodes = effects_copy_set(p->out, &p->part), .up = true, .order = p->member.top};
    order_open(p);
    if (!nodeset_empty(&p->view->joiners))
        p->view->settle_at = p->now + p->config.settle_ns;
    arm_timer(p);
}

/* Asks the lowest survivor for its variables: what joining nodes will get from us. */
static void ask_donor(struct prim *p) {
    struct view *v = p->view;
    v->stage = STAGE_DONATING;
    v->donor = nodeset_first(&p->member.members);
    if (v->donor == p->self) {
        open_for_business(p);
        return;
    }
    union message m = {.donate = {.node = v->donor, .incarnation = v->peers[v->donor].incarnation}};
    route_unicast(p, v->donor, MESSAGE_DONATE, prim_encode(p, MESSAGE_DONATE, &m));
    v->donate_at = p->now + p->config.attach_ns;
    arm_timer(p);
}

void view_donation(struct prim *p, const struct message_donation *m) {
    struct view *v = p->view;
    uint32_t n = p->config.limits.variables;
    if (v->stage != STAGE_DONATING || m->node != v->donor || m->variables.len != 8 * (size_t)n)
        return;
    for (uint32_t i = 0; i < n; i++)
        p->member.variables[i] = load_le64(m->variables.at + 8 * (size_t)i);
    v->donate_at = 0;
    open_for_business(p);
}

void view_boot(struct prim *p) {
    struct view *v = p->view;
    p->wave.tick = (uint64_t)p->epoch << 32;
    become_member(p);
    if (p->epoch > 1) {
        v->stage = STAGE_COLLECTING;
        v->collect_at = p->now + p->config.collect_ns;
        arm_timer(p);
        return;
    }
    p->order->next = order_first(p);
    p->member.view = 1;
    v->acked = 1;
    open_for_business(p);
}

/* ---- views ---- */

static void cast_view(struct prim *p, struct nodeset *set) {
    struct view *v = p->view;
    uint32_t n = p->config.limits.variables;
    union message m = {
        .view = {
            .view = p->member.view,
            .order = v->snapshot_order,
            .stable = order_stable(p),
            .members = &p->member.members,
            .joined = &v->joined,
            .resolutions = bytes_of(v->resolutions, v->resolution_count * (size_t)RESOLUTION_BYTES),
        }};
    if (!nodeset_empty(&v->joined)) {
        uint8_t *room = effects_room(p->out, 8 * (size_t)n);
        for (uint32_t i = 0; i < n; i++)
            store_le64(room + 8 * (size_t)i, v->snapshot[i]);
        m.view.variables = bytes_of(room, 8 * (size_t)n);
    }
    route_cast(p, MESSAGE_VIEW, set, prim_encode(p, MESSAGE_VIEW, &m));
}

/* All members know the view and, if it leaves somebody out, so will every later root. */
static void known_everywhere(struct prim *p) {
    struct view *v = p->view;
    v->acked = p->member.view;
    if (v->stage == STAGE_OPENING) {
        v->resolution_count = 0;
        ask_donor(p);
        return;
    }
    if (!nodeset_empty(&v->fallen) && v->stage == STAGE_OPEN) {
        struct input *up = effects_raise(p->out, INPUT_NODES, p->now);
        up->nodes = (struct input_nodes){.nodes = effects_copy_set(p->out, &v->fallen),
                                         .order = p->order->next - 1};
        nodeset_clear(&v->fallen);
    }
    if (!nodeset_empty(&v->joined)) {
        struct input *up = effects_raise(p->out, INPUT_NODES, p->now);
        up->nodes = (struct input_nodes){
            .nodes = effects_copy_set(p->out, &v->joined), .up = true, .order = v->snapshot_order};
        nodeset_clear(&v->joined);
    }
    if (!nodeset_empty(&v->joiners) && v->settle_at == 0) {
        v->settle_at = p->now + p->config.settle_ns;
        arm_timer(p);
    }
    order_view_acked(p);
}

/* A view that leaves somebody out is relied on only when it is on our disk too: should nobody who
 * knows it survive with us, the next root must not take those left out for members. */
static void acknowledged(struct prim *p) {
    struct view *v = p->view;
    if (v->stage == STAGE_OPENING || !nodeset_empty(&v->fallen))
        prim_persist(p, p->epoch, p->member.view);
    else
        known_everywhere(p);
}

void view_durable(struct prim *p, uint64_t ticket) {
    struct view *v = p->view;
    bool current = ticket == ((uint64_t)p->epoch << 32 | (p->member.view & UINT32_MAX));
    if (current && nodeset_empty(&v->pending) && v->acked < p->member.view)
        known_everywhere(p);
}

/* Casts the current members as a new view. Its number is already in member.view. */
void view_change(struct prim *p) {
    struct view *v = p->view;
    nodeset_copy(&v->pending, &p->member.members);
    nodeset_remove(&v->pending, p->self);
    v->since = p->now;
    v->nudged = false;
    cast_view(p, &p->member.members);
    if (nodeset_empty(&v->pending))
        acknowledged(p);
}

void view_acked(struct prim *p, uint64_t number, const struct nodeset *set) {
    struct view *v = p->view;
    if (number != p->member.view || nodeset_empty(&v->pending))
        return;
    nodeset_subtract(&v->pending, set);
    if (nodeset_empty(&v->pending))
        acknowledged(p);
}

/* Once a period: who has not acknowledged for long, though it lives, cannot be a member. */
void view_watch(struct prim *p) {
    struct view *v = p->view;
    struct nodeset *stalled = &p->in[0];
    nodeset_clear(stalled);
    if (v->stage == STAGE_COLLECTING || planted(PLANTED_NO_RESEND))
        return;
    order_watch(p, stalled);
    bool late = p->now - v->since > STALLED_PERIODS * p->config.period_ns;
    if (late && !nodeset_empty(&v->pending)) {
        if (v->nudged)
            nodeset_unite(stalled, &v->pending);
        v->nudged = true;
        v->since = p->now;
        nodeset_copy(&p->part2, &v->pending);
        cast_view(p, &p->part2);
    }
    if (!nodeset_empty(stalled))
        view_drop(p, stalled);
}

/* ---- leaving ---- */

void view_drop(struct prim *p, const struct nodeset *gone) {
    struct view *v = p->view;
    nodeset_copy(&p->part, gone);
    nodeset_intersect(&p->part, &p->member.members);
    nodeset_remove(&p->part, p->self);
    if (nodeset_empty(&p->part))
        return;
    struct nodeset *sets[] = {&p->member.members, &v->suspects, &v->limbo, &v->joined};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        nodeset_subtract(sets[i], &p->part);
    nodeset_unite(&v->fallen, &p->part);
    NODESET_EACH (node, &p->part) {
        v->peers[node].given_up = true;
    }
    p->member.view++;
    nodeset_copy(&v->dropping, &p->part); /* order_drop uses the scratch sets itself */
    order_drop(p, &v->dropping);
    query_drop(p, &v->dropping);
    slot_without(p, &p->member.members);
    view_change(p);
    if (v->stage == STAGE_DONATING && !nodeset_has(&p->member.members, v->donor))
        ask_donor(p);
}

/* Whoever is missed when we have been away ourselves has more time to find us again. */
static uint64_t patience_with(const struct prim *p, uint32_t node) {
    const struct view *v = p->view;
    bool we_too = v->back_at != 0 && v->peers[node].lost_at <= v->back_at + p->config.period_ns;
    bool suspect = nodeset_has(&v->suspects, node) && !we_too;
    return suspect ? p->config.grace_ns : LIMBO_PERIODS * p->config.period_ns;
}

/* When the next of those in limbo is out of time. */
static void expect_loss(struct prim *p) {
    struct view *v = p->view;
    v->lost_at = 0;
    NODESET_EACH (node, &v->limbo) {
        uint64_t at = v->peers[node].lost_at + patience_with(p, node);
        if (v->lost_at == 0 || at < v->lost_at)
            v->lost_at = at;
    }
}

/* These nodes have no path to us; `node`'s own link broke. */
void view_lost(struct prim *p, const struct nodeset *set, uint32_t node) {
    struct view *v = p->view;
    nodeset_subtract(&v->joiners, set);
    if (v->stage == STAGE_COLLECTING)
        return; /* what they reported still holds */
    nodeset_copy(&p->part, set);
    nodeset_intersect(&p->part, &p->member.members);
    if (nodeset_empty(&p->part))
        return;
    nodeset_unite(&v->limbo, &p->part);
    NODESET_EACH (lost, &p->part) {
        v->peers[lost].lost_at = p->now;
    }
    if (nodeset_has(&p->part, node))
        nodeset_add(&v->suspects, node);
    expect_loss(p);
    arm_timer(p);
}

/* A new epoch has its members, but not all of them may still have a path. */
void view_find_limbo(struct prim *p) {
    nodeset_copy(&p->gone, &p->member.members);
    nodeset_subtract(&p->gone, &p->route.reach);
    nodeset_remove(&p->gone, p->self);
    view_lost(p, &p->gone, NO_NODE);
}

void view_limbo(struct prim *p, struct nodeset *ret) {
    if (p->view->stage == STAGE_COLLECTING)
        return;
    nodeset_copy(ret, &p->view->limbo);
}

/* The first node of the set that no operation may name now, NO_NODE if all are fit. */
uint32_t view_unfit(struct prim *p, const struct nodeset *set) {
    nodeset_copy(&p->part, set);
    nodeset_subtract(&p->part, &p->member.members);
    if (!nodeset_empty(&p->part))
        return nodeset_first(&p->part);
    nodeset_and(&p->part, set, &p->view->suspects);
    return nodeset_first(&p->part);
}

/* ---- joining ---- */

/* Joining nodes wait until nothing is undecided, and nothing new is ordered until they are in. */
bool view_holds_order(const struct prim *p) {
    const struct view *v = p->view;
    return !nodeset_empty(&v->joiners) && v->settle_at == 0 && nodeset_empty(&v->joined);
}

void view_admit(struct prim *p) {
    struct view *v = p->view;
    if (v->stage != STAGE_OPEN || !view_holds_order(p) || order_undecided(p))
        return;
    nodeset_copy(&v->joined, &v->joiners);
    nodeset_clear(&v->joiners);
    nodeset_unite(&p->member.members, &v->joined);
    memcpy(v->snapshot, p->member.variables, p->config.limits.variables * sizeof *v->snapshot);
    v->snapshot_order = p->order->next - 1;
    p->member.view++;
    view_change(p);
}

/* ---- attaching ---- */

static void fence(struct prim *p, const struct message_attach *m) {
    union message f = {.fenced = {.node = m->node, .incarnation = m->incarnation}};
    route_unicast(p, m->node, MESSAGE_FENCED, prim_encode(p, MESSAGE_FENCED, &f));
}

static void confirm(struct prim *p, const struct nodeset *set) {
    union message m = {.attached = {.set = (struct nodeset *)set}};
    route_cast(p, MESSAGE_ATTACHED, set, prim_encode(p, MESSAGE_ATTACHED, &m));
}

/* They have a path again; what they missed follows the confirmation. */
static void found(struct prim *p, const struct nodeset *set) {
    struct view *v = p->view;
    nodeset_subtract(&v->suspects, set);
    nodeset_subtract(&v->limbo, set);
    confirm(p, set);
    if (v->stage == STAGE_COLLECTING)
        return;
    nodeset_and(&p->part, &v->pending, set);
    if (!nodeset_empty(&p->part) && !planted(PLANTED_NO_RESEND))
        cast_view(p, &p->part);
    if (v->stage == STAGE_OPEN) {
        order_resend(p, set);
        query_resend(p, set);
    }
}

/* A node without state of this epoch. Its former life, if it was a member, is over. */
static void attach_fresh(struct prim *p, const struct message_attach *m) {
    struct view *v = p->view;
    struct peer *peer = &v->peers[m->node];
    bool member = nodeset_has(&p->member.members, m->node);
    if (member && peer->incarnation == m->incarnation)
        return; /* its view is on its way */
    if (member) {
        nodeset_clear(&p->part2);
        nodeset_add(&p->part2, m->node);
        view_drop(p, &p->part2);
    }
    view_know_peer(p, m->node, m->incarnation);
    nodeset_add(&v->joiners, m->node);
    if (v->stage == STAGE_OPEN && v->settle_at == 0 && nodeset_empty(&v->joined)) {
        v->settle_at = p->now + p->config.settle_ns;
        arm_timer(p);
    }
}

void view_attach(struct prim *p, struct child *c, const struct message_attach *m) {
    struct view *v = p->view;
    if (m->node >= p->config.limits.nodes)
        return;
    struct peer *peer = &v->peers[m->node];
    bool hearsay = m->node != c->node;
    if (hearsay && m->incarnation < peer->incarnation && !planted(PLANTED_OLD_INCARNATION)) {
        p->refused[REFUSAL_LIFE]++;
        return;
    }
    if (!route_attach(p, c, m))
        return;
    if (v->stage == STAGE_COLLECTING) {
        found(p, m->below);
        collect_report(p, m);
        if (collect_complete(p))
            collect_finish(p);
        return;
    }
    bool member = nodeset_has(&p->member.members, m->node) && peer->incarnation == m->incarnation;
    bool given_up = peer->given_up && peer->incarnation == m->incarnation;
    if (given_up || (m->member && !member)) {
        fence(p, m);
        return;
    }
    if (!m->member)
        attach_fresh(p, m);
    found(p, m->below);
}

/* ---- time ---- */

static void drop_overdue(struct prim *p) {
    struct view *v = p->view;
    nodeset_clear(&p->part2);
    NODESET_EACH (node, &v->limbo) {
        if (v->peers[node].lost_at + patience_with(p, node) <= p->now)
            nodeset_add(&p->part2, node);
    }
    view_drop(p, &p->part2);
    expect_loss(p);
}

void view_timer(struct prim *p) {
    struct view *v = p->view;
    if (due(&v->collect_at, p->now) && v->stage == STAGE_COLLECTING)
        collect_finish(p);
    if (due(&v->donate_at, p->now) && v->stage == STAGE_DONATING)
        ask_donor(p);
    if (due(&v->lost_at, p->now))
        drop_overdue(p);
    due(&v->settle_at, p->now);
    arm_timer(p);
}

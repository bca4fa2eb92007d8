/* SPDX-License-Identifier: MIT */
/* Children, and who is reached through which of them.
 *
 * The paths are learnt from the ATTACH messages that pass: they carry the set of nodes that hang
 * together below the sender. A path just learnt is `waiting` until the root's ATTACHED has passed
 * it on the way down; casts skip it until then, and the root sends again what they missed. A set
 * that is lost is removed and reported upwards, unless its nodes are known to be elsewhere already.
 */
#include <string.h>

#include "base/assert.h"
#include "prim/internal.h"

void route_init(struct prim *p, struct arena *a) {
    struct route *r = &p->route;
    r->cap = p->seat ? p->config.limits.nodes : p->config.limits.children;
    uint32_t slots = 4;
    while (slots < 2 * r->cap)
        slots *= 2;
    r->index_mask = slots - 1;
    r->index = ARENA_TAKE(a, uint32_t, slots);
    r->children = ARENA_TAKE(a, struct child, r->cap);
    r->attempts = ARENA_TAKE(a, uint64_t, p->universe);
    r->sets = ARENA_TAKE(a, uint64_t, nodeset_bytes(p->universe) / 8 * r->cap);
    prim_set_init(p, &r->reach, a);
    prim_set_init(p, &r->waiting, a);
}

/* ---- index of children by link ---- */

static uint32_t index_home(const struct route *r, uint32_t link) {
    return link * 2654435761U >> 7 & r->index_mask;
}

static uint32_t index_find(const struct route *r, uint32_t link) {
    for (uint32_t i = index_home(r, link);; i = (i + 1) & r->index_mask)
        if (r->index[i] == 0 || r->children[r->index[i] - 1].link == link)
            return i;
}

/* Closes the gap that a removed entry leaves, so that searches need no markers. */
static void index_remove(struct route *r, uint32_t hole) {
    r->index[hole] = 0;
    for (uint32_t i = (hole + 1) & r->index_mask; r->index[i] != 0; i = (i + 1) & r->index_mask) {
        uint32_t home = index_home(r, r->children[r->index[i] - 1].link);
        if (((i - home) & r->index_mask) < ((i - hole) & r->index_mask))
            continue;
        r->index[hole] = r->index[i];
        r->index[i] = 0;
        hole = i;
    }
}

struct child *route_child(struct prim *p, uint32_t link) {
    struct route *r = &p->route;
    uint32_t at = r->index[index_find(r, link)];
    return at == 0 ? NULL : &r->children[at - 1];
}

static struct child *child_towards(struct prim *p, uint32_t node) {
    struct route *r = &p->route;
    if (!nodeset_has(&r->reach, node))
        return NULL;
    for (uint32_t i = 0; i < r->count; i++)
        if (nodeset_has(&r->children[i].below, node))
            return &r->children[i];
    return NULL;
}

/* ---- children come and go ---- */

/* Sets get their storage when a child comes, so that what is never used stays untouched. */
static void *below_storage(const struct prim *p, uint32_t i) {
    return p->route.sets + i * (nodeset_bytes(p->universe) / 8);
}

static void greet(struct prim *p, struct child *c) {
    prim_send(p, c->link, MESSAGE_EPOCH, &(union message){.epoch = {.root = p->root_node}});
}

/* We have a way up. Everyone who is told the epoch attaches (again): those who came while we had none,
 * and those whose ATTACH may have been lost with the old one. */
void route_greet(struct prim *p) {
    for (uint32_t i = 0; i < p->route.count; i++) {
        struct child *c = &p->route.children[i];
        if (!c->attached || nodeset_has(&p->route.waiting, c->node))
            greet(p, c);
    }
}

void route_new_epoch(struct prim *p) {
    struct route *r = &p->route;
    for (uint32_t i = 0; i < r->count; i++) {
        r->children[i].attached = false;
        nodeset_clear(&r->children[i].below);
    }
    nodeset_clear(&r->reach);
    nodeset_clear(&r->waiting);
    r->changed = true;
}

/* Takes a child out of the table; the last one moves into its place. */
static void remove_child(struct prim *p, struct child *c) {
    struct route *r = &p->route;
    index_remove(r, index_find(r, c->link));
    struct child *last = &r->children[r->count - 1];
    if (c != last) {
        uint32_t slot = index_find(r, last->link);
        struct nodeset mine = c->below;
        *c = *last;
        c->below = mine;
        nodeset_copy(&c->below, &last->below);
        r->index[slot] = (uint32_t)(c - r->children) + 1;
    }
    r->count--;
}

/* Nodes that were below and are not any more. */
static void forget(struct prim *p, const struct nodeset *gone, uint32_t node) {
    nodeset_subtract(&p->route.reach, gone);
    nodeset_subtract(&p->route.waiting, gone);
    p->route.changed = true;
    ack_without(p, gone);
    query_without(p, gone);
    if (p->root)
        view_lost(p, gone, node);
    else
        uplink_send(p, MESSAGE_LOST,
                    &(union message){.lost = {.set = (struct nodeset *)gone, .node = node}});
}

static void leave(struct prim *p, struct child *c, uint32_t node) {
    nodeset_copy(&p->gone, &c->below);
    p->wave.missing -= !c->tocked;
    remove_child(p, c);
    if (!nodeset_empty(&p->gone))
        forget(p, &p->gone, node);
    wave_check(p);
}

/* In the plan only descendants attach here, each by one link: a newer one replaces it. */
static bool welcome(struct prim *p, uint32_t peer) {
    struct child *old = child_towards(p, peer);
    if (old != NULL && old->node == peer) {
        prim_close(p, old->link, REFUSAL_NONE);
        leave(p, old, peer);
    }
    bool descendant =
        peer < p->config.limits.nodes && (p->root || tree_above(&p->config.tree, p->self, peer));
    return descendant && p->route.count < p->route.cap;
}

void route_link_up(struct prim *p, const struct input_link *l) {
    struct route *r = &p->route;
    if (!welcome(p, l->peer)) {
        prim_close(p, l->link, REFUSAL_NONE);
        return;
    }
    struct child *c = &r->children[r->count];
    *c = (struct child){.link = l->link, .node = l->peer, .heard = p->now, .tocked = true};
    nodeset_init(&c->below, p->universe, below_storage(p, r->count));
    r->count++;
    r->index[index_find(r, l->link)] = r->count;
    if (p->root || p->uplink.state == UPLINK_ATTACHED)
        greet(p, c);
}

void route_link_down(struct prim *p, uint32_t link) {
    struct child *c = route_child(p, link);
    leave(p, c, c->node);
}

void route_detach(struct prim *p, struct child *c) {
    prim_close(p, c->link, REFUSAL_NONE);
    leave(p, c, NO_NODE);
}

void route_lost(struct prim *p, struct child *c, const struct message_lost *m) {
    nodeset_and(&p->gone, m->set, &c->below);
    if (nodeset_empty(&p->gone))
        return; /* they have attached elsewhere since */
    nodeset_subtract(&c->below, &p->gone);
    forget(p, &p->gone, nodeset_has(&p->gone, m->node) ? m->node : NO_NODE);
}

/* ---- paths ---- */

/* Is all of `set` at or below `node` in the plan? Nobody else can hang there, whatever a child
 * says. */
static bool in_subtree(const struct prim *p, const struct nodeset *set, uint32_t node) {
    struct noderange r = tree_subtree(&p->config.tree, node);
    return nodeset_first(set) >= r.first && nodeset_last(set) <= r.last;
}

/* Learns that whoever is below the sender is reached through c from now on. False: it is not to be
 * believed, or it is late and the sender has attached by another way since. */
bool route_attach(struct prim *p, struct child *c, const struct message_attach *m) {
    struct route *r = &p->route;
    const struct nodeset *below = m->below;
    if (m->node >= p->config.limits.nodes || !nodeset_has(below, m->node) ||
        !in_subtree(p, below, c->node) || !in_subtree(p, below, m->node)) {
        p->refused[REFUSAL_SENDER]++;
        return false;
    }
    bool own_word = m->node == c->node; /* on its own link nobody else can speak */
    if (!own_word && m->attempt <= r->attempts[m->node]) {
        p->refused[REFUSAL_LIFE]++;
        return false;
    }
    r->attempts[m->node] = m->attempt;
    if (nodeset_intersects(below, &r->reach)) {
        for (uint32_t i = 0; i < r->count; i++)
            if (&r->children[i] != c)
                nodeset_subtract(&r->children[i].below, below);
        ack_without(p, below);
        query_without(p, below);
    }
    nodeset_unite(&c->below, below);
    nodeset_unite(&r->reach, below);
    r->changed = true;
    if (m->node == c->node)
        c->attached = true;
    return true;
}

void route_attach_passing(struct prim *p, struct child *c, const struct message_attach *m,
                          struct bytes body) {
    if (!uplink_usable(p) || !route_attach(p, c, m))
        return;
    nodeset_unite(&p->route.waiting, m->below);
    uplink_pass(p, MESSAGE_ATTACH, body);
}

void route_confirm(struct prim *p, const struct nodeset *set, struct bytes body) {
    if (nodeset_intersects(&p->route.waiting, set)) {
        nodeset_subtract(&p->route.waiting, set);
        p->route.changed = true;
    }
    route_cast(p, MESSAGE_ATTACHED, set, body);
}

void route_cast_parts(struct prim *p, uint16_t type, const struct nodeset *set, struct bytes head,
                      struct bytes tail) {
    struct route *r = &p->route;
    if (r->count == 0) {
        nodeset_clear(&p->aim);
        return;
    }
    nodeset_and(&p->aim, set, &r->reach);
    if (!nodeset_empty(&r->waiting))
        nodeset_subtract(&p->aim, &r->waiting);
    if (nodeset_empty(&p->aim))
        return;
    uint32_t *links = (uint32_t *)(void *)effects_room(p->out, r->count * sizeof *links);
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->count; i++)
        if (nodeset_intersects(&p->aim, &r->children[i].below))
            links[count++] = r->children[i].link;
    struct effect *e = effects_add(p->out, EFFECT_SEND);
    e->send = (struct effect_send){.links = links,
                                   .link_count = count,
                                   .epoch = p->epoch,
                                   .type = type,
                                   .head = head,
                                   .tail = tail};
}

void route_cast(struct prim *p, uint16_t type, const struct nodeset *set, struct bytes body) {
    route_cast_parts(p, type, set, body, (struct bytes){0});
}

void route_unicast(struct prim *p, uint32_t node, uint16_t type, struct bytes body) {
    struct child *c = child_towards(p, node);
    if (c != NULL)
        effects_send(p->out, c->link, p->epoch, type, body, (struct bytes){0});
}

/* Children that the new view leaves out have been given up: tell them, and let them go. */
void route_drop_children(struct prim *p, const struct nodeset *members) {
    struct route *r = &p->route;
    for (uint32_t i = r->count; i-- > 0;) {
        struct child *c = &r->children[i];
        bool was = nodeset_has(&p->member.members, c->node);
        if (!was || nodeset_has(members, c->node))
            continue;
        prim_close(p, c->link, REFUSAL_NONE);
        leave(p, c, c->node);
    }
}

void route_close_all(struct prim *p) {
    struct route *r = &p->route;
    for (uint32_t i = 0; i < r->count; i++)
        prim_close(p, r->children[i].link, REFUSAL_NONE);
    while (r->count > 0)
        remove_child(p, &r->children[r->count - 1]);
    p->wave.missing = 0;
    nodeset_clear(&r->reach);
    nodeset_clear(&r->waiting);
    r->changed = true;
}

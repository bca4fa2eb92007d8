/* SPDX-License-Identifier: MIT */
/* The first steps of a new epoch: who survived, and what became of what was under way.
 *
 * Survivors of the former epoch attach with a report: the view they know, the operations they hold
 * or have just decided, which of their own requests are answered. The newest view says who was a
 * member; a member that reports in time is a survivor, everyone else is fenced and joins anew. An
 * operation that any survivor knows to be committed is committed, any other is aborted; the first
 * view of the epoch says so to all. Nothing is answered and nothing new is ordered before that view
 * is known to all. */
#include "base/assert.h"
#include "prim/internal.h"

/* Only the last `window` orders can be unfinished: the old root never let more be open. */
static void merge_record(struct prim *p, const struct record *r) {
    struct view *v = p->view;
    struct record *mine = &v->records[r->order % p->config.limits.window];
    if (r->id.node >= p->universe || r->order < mine->order || r->order == 0)
        return;
    bool same = r->order == mine->order;
    if (same && r->epoch < mine->epoch)
        return; /* who has seen a later epoch knows better */
    if (!same || r->epoch > mine->epoch || r->state == RECORD_COMMITTED)
        *mine = *r;
}

static void merge_view(struct prim *p, const struct message_attach *m) {
    struct view *v = p->view;
    bool newer = m->member_epoch > v->best_epoch ||
                 (m->member_epoch == v->best_epoch && m->view > v->best_view);
    if (!newer)
        return;
    v->best_epoch = m->member_epoch;
    v->best_view = m->view;
    nodeset_copy(&v->best_members, m->members);
}

void collect_report(struct prim *p, const struct message_attach *m) {
    struct view *v = p->view;
    view_know_peer(p, m->node, m->incarnation);
    if (!m->member) {
        nodeset_remove(&v->reported, m->node);
        nodeset_add(&v->joiners, m->node);
        return;
    }
    nodeset_remove(&v->joiners, m->node);
    nodeset_add(&v->reported, m->node);
    merge_view(p, m);
    struct record r;
    for (uint32_t i = 0; record_load(&r, m->records, i); i++) {
        r.epoch = m->member_epoch;
        merge_record(p, &r);
        if (r.order > v->top)
            v->top = r.order;
    }
}

static bool knows_kept(const struct prim *p) {
    const struct view *v = p->view;
    return ((uint64_t)v->best_epoch << 32 | (v->best_view & UINT32_MAX)) >= p->kept;
}

static bool only_managers(const struct prim *p, const struct nodeset *s) {
    return nodeset_empty(s) || nodeset_first(s) >= p->config.limits.nodes;
}

/* Has everyone reported who is in the newest view, managers aside? Whoever has begun a new life meanwhile has nothing left to report: the
 * one that was a member is over. That holds of the view that our former life relied on; if this is an older one, somebody may still come who
 * knows better. */
bool collect_complete(struct prim *p) {
    struct view *v = p->view;
    if (v->best_epoch == 0)
        return false;
    struct nodeset *left = &p->part;
    nodeset_copy(left, &v->best_members);
    nodeset_subtract(left, &v->reported);
    if (only_managers(p, left))
        return true;
    nodeset_subtract(left, &v->joiners);
    return knows_kept(p) && only_managers(p, left);
}

static void resolve_all(struct prim *p) {
    struct view *v = p->view;
    uint32_t window = p->config.limits.window;
    uint64_t first = v->top >= window ? v->top - window + 1 : 1;
    for (uint64_t order = first; order <= v->top; order++) {
        const struct record *r = &v->records[order % window];
        if (r->order != order)
            continue;
        struct resolution done = {.order = order, .commit = r->state == RECORD_COMMITTED};
        resolution_store(v->resolutions + v->resolution_count++ * (size_t)RESOLUTION_BYTES, &done);
        if (nodeset_has(&p->member.members, r->id.node) && r->id.node != p->self)
            order_recover(p, r);
    }
}

/* Those who reported but are not in the newest view were given up by the former root. */
static void fence_others(struct prim *p) {
    struct view *v = p->view;
    nodeset_subtract(&v->reported, &p->member.members);
    uint32_t left = FENCES_AT_ONCE; /* the rest will ask, and hear it then */
    NODESET_EACH (node, &v->reported) {
        if (left-- == 0)
            break;
        union message f = {.fenced = {.node = node, .incarnation = v->peers[node].incarnation}};
        route_unicast(p, node, MESSAGE_FENCED, prim_encode(p, MESSAGE_FENCED, &f));
    }
    nodeset_clear(&v->reported);
}

void collect_finish(struct prim *p) {
    struct view *v = p->view;
    v->collect_at = 0;
    v->stage = STAGE_OPENING;
    if (!knows_kept(
            p)) /* nobody has the view that our former life relied on: they may have been given up
                 */
        nodeset_clear(&v->best_members);
    nodeset_and(&p->part, &v->reported, &v->best_members);
    nodeset_unite(&p->member.members, &p->part);
    p->order->next = order_first(p);
    resolve_all(p);
    fence_others(p);
    p->member.view = v->best_view + 1;
    view_find_limbo(p);
    view_change(p);
}

/* SPDX-License-Identifier: MIT */
/* Telling the daemon how it hangs in the tree: who is below it, and whether it has a way up itself.
 *
 * Looked at once, at the end of a step, and compared with what was told last: however much a step has
 * turned around, the daemon hears of it once, and not at all if it came to nothing. A new epoch is told
 * even then: what was on its way in the old one may be lost. */
#include "prim/internal.h"

void place_init(struct prim *p, struct arena *a) {
    prim_set_init(p, &p->place.below, a);
}

void place_boot(struct prim *p) {
    p->place.epoch = p->epoch;
}

/* The epoch in whose view we are; 0 while the view that resolves what is under way has not come. */
static uint32_t settled(const struct prim *p, bool attached) {
    bool in = p->root || (p->member.joined && p->member.epoch == p->epoch);
    return attached && in ? p->epoch : 0;
}

void place_tell(struct prim *p) {
    struct place *n = &p->place;
    bool attached = prim_attached(p);
    uint32_t epoch = settled(p, attached);
    bool news = attached != n->attached || p->epoch != n->epoch || epoch != n->settled;
    if (!news && !p->route.changed)
        return;
    p->route.changed = false;
    nodeset_copy(&p->part, &p->route.reach);
    if (!nodeset_empty(&p->route.waiting))
        nodeset_subtract(&p->part, &p->route.waiting);
    if (!news && nodeset_equal(&p->part, &n->below))
        return;
    n->attached = attached;
    n->epoch = p->epoch;
    n->settled = epoch;
    nodeset_copy(&n->below, &p->part);
    struct input *up = effects_raise(p->out, INPUT_TREE, p->now);
    up->tree = (struct input_tree){
        .below = effects_copy_set(p->out, &p->part), .attached = attached, .epoch = epoch};
}

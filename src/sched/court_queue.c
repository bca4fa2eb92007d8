/* SPDX-License-Identifier: MIT */
/* The court's queues, one for those that name a window: by priority, then as jobs came.
 *
 * Each is a list, and a tree in the same order: a heap by a number drawn from the place of a job, so that it is flat, where each job
 * knows the smallest size and estimate below it. Who looks for a job that may start passes over whole branches:
 * it is few steps though ten thousands wait. */
#include "base/assert.h"
#include "base/units.h"
#include "sched/court_inside.h"

static bool before(const struct court_job *a, const struct court_job *b) {
    if (a->pub.priority != b->pub.priority)
        return a->pub.priority > b->pub.priority;
    return a->tie < b->tie;
}

static struct court_line *line_of(struct court *c, const struct court_job *j) {
    return j->window != 0 ? &c->booked : &c->queue;
}

/* ---- the tree ---- */

static struct court_twig *twig(const struct court *c, uint32_t at) {
    return &c->jobs[at].tree;
}

/* Neighbours in the table are far apart. */
static uint32_t weight(uint32_t at) {
    uint32_t x = at * 2654435769u + 1;
    x ^= x >> 15;
    x *= 2246822519u;
    return x ^ x >> 13;
}

static void gather(const struct court *c, uint32_t at) {
    const struct storm_job *j = &c->jobs[at].pub;
    struct court_twig *t = twig(c, at);
    t->nodes = j->nodes;
    t->pes = j->pes;
    t->estimate = j->estimate;
    for (int side = 0; side < 2; side++) {
        uint32_t below = side ? t->right : t->left;
        if (below == COURT_NONE)
            continue;
        const struct court_twig *b = twig(c, below);
        t->nodes = b->nodes < t->nodes ? b->nodes : t->nodes;
        t->pes = b->pes < t->pes ? b->pes : t->pes;
        t->estimate = b->estimate < t->estimate ? b->estimate : t->estimate;
    }
}

static void gather_up(const struct court *c, uint32_t at) {
    for (; at != COURT_NONE; at = twig(c, at)->up)
        gather(c, at);
}

/* `by` takes the place of `at` below what is above that. */
static void replace(struct court *c, uint32_t at, uint32_t by) {
    uint32_t up = twig(c, at)->up;
    if (up == COURT_NONE)
        line_of(c, &c->jobs[at])->root = by;
    else if (twig(c, up)->left == at)
        twig(c, up)->left = by;
    else
        twig(c, up)->right = by;
    if (by != COURT_NONE)
        twig(c, by)->up = up;
}

/* A job changes places with the one above it. */
static void lift(struct court *c, uint32_t at) {
    uint32_t over = twig(c, at)->up;
    struct court_twig *a = twig(c, at), *o = twig(c, over);
    bool left = o->left == at;
    uint32_t inner = left ? a->right : a->left;
    replace(c, over, at);
    *(left ? &o->left : &o->right) = inner;
    if (inner != COURT_NONE)
        twig(c, inner)->up = over;
    *(left ? &a->right : &a->left) = over;
    o->up = at;
    gather(c, over);
    gather(c, at);
}

/* Returns the job before it, COURT_NONE if it is the first. */
static uint32_t plant(struct court *c, uint32_t at) {
    struct court_line *line = line_of(c, &c->jobs[at]);
    uint32_t up = COURT_NONE, prev = COURT_NONE;
    bool left = false;
    for (uint32_t i = line->root; i != COURT_NONE;
         i = left ? twig(c, i)->left : twig(c, i)->right) {
        up = i;
        left = before(&c->jobs[at], &c->jobs[i]);
        prev = left ? prev : i;
    }
    *twig(c, at) = (struct court_twig){.up = up, .left = COURT_NONE, .right = COURT_NONE};
    if (up == COURT_NONE)
        line->root = at;
    else
        *(left ? &twig(c, up)->left : &twig(c, up)->right) = at;
    gather_up(c, at);
    while (twig(c, at)->up != COURT_NONE && weight(at) > weight(twig(c, at)->up))
        lift(c, at);
    return prev;
}

static void uproot(struct court *c, uint32_t at) {
    const struct court_twig *t = twig(c, at);
    while (t->left != COURT_NONE && t->right != COURT_NONE)
        lift(c, weight(t->left) > weight(t->right) ? t->left : t->right);
    uint32_t up = t->up;
    replace(c, at, t->left != COURT_NONE ? t->left : t->right);
    gather_up(c, up);
}

/* ---- the list ---- */

void court_enqueue(struct court *c, struct court_job *j) {
    struct court_line *line = line_of(c, j);
    uint32_t at = (uint32_t)(j - c->jobs), prev = plant(c, at);
    uint32_t next = prev == COURT_NONE ? line->first : c->jobs[prev].next;
    j->prev = prev;
    j->next = next;
    *(prev == COURT_NONE ? &line->first : &c->jobs[prev].next) = at;
    *(next == COURT_NONE ? &line->last : &c->jobs[next].prev) = at;
    j->where = j->window != 0 ? WHERE_BOOKED : WHERE_QUEUE;
    line->count++;
    c->choosers += j->where == WHERE_QUEUE && j->pub.chooses;
}

/* Its own links stay: who goes through the queue may start what he stands on. */
void court_dequeue(struct court *c, struct court_job *j) {
    struct court_line *line = line_of(c, j);
    ASSERT(j->where == WHERE_QUEUE || j->where == WHERE_BOOKED);
    uproot(c, (uint32_t)(j - c->jobs));
    *(j->prev == COURT_NONE ? &line->first : &c->jobs[j->prev].next) = j->next;
    *(j->next == COURT_NONE ? &line->last : &c->jobs[j->next].prev) = j->prev;
    c->choosers -= j->where == WHERE_QUEUE && j->pub.chooses;
    j->where = WHERE_NOWHERE;
    line->count--;
}

/* ---- who may start ---- */

/* Nobody on this branch may, but perhaps the job for which room is held: as court_may() has it. */
static bool barren(const struct court *c, const struct court_twig *t, uint32_t slot) {
    const struct court_room *r = &c->room;
    if (t->nodes > c->matrix.rows[slot].some_count &&
        (matrix_flat(&c->matrix) || !court_swaps_open(court_of(&c->host))))
        return true;
    return r->held && r->slot == slot && !r->exact && t->pes > r->extra &&
           units_after(c->now, court_span(c, t->estimate)) > r->at;
}

static uint32_t first_in(const struct court *c, uint32_t at, uint32_t slot) {
    if (at == COURT_NONE || barren(c, twig(c, at), slot))
        return COURT_NONE;
    uint32_t found = first_in(c, twig(c, at)->left, slot);
    if (found != COURT_NONE)
        return found;
    if (court_may(c, &c->jobs[at], slot))
        return at;
    return first_in(c, twig(c, at)->right, slot);
}

static uint32_t first_from(const struct court *c, uint32_t at, uint32_t slot) {
    for (bool new = true; at != COURT_NONE;) {
        const struct court_twig *t = twig(c, at);
        if (new &&court_may(c, &c->jobs[at], slot))
            return at;
        uint32_t found = new ? first_in(c, t->right, slot) : COURT_NONE;
        if (found != COURT_NONE)
            return found;
        new = t->up != COURT_NONE &&twig(c, t->up)->left == at;
        at = t->up;
    }
    return COURT_NONE;
}

uint32_t court_candidate(const struct court *c, uint32_t from, uint32_t slot) {
    const struct court_job *held = &c->jobs[c->room.job];
    if (from == COURT_NONE)
        return COURT_NONE;
    uint32_t found = first_from(c, from, slot);
    bool meant = c->room.held && c->room.slot == slot && held->where == WHERE_QUEUE &&
                 !before(held, &c->jobs[from]) &&
                 (found == COURT_NONE || before(held, &c->jobs[found]));
    return meant && court_may(c, held, slot) ? c->room.job : found;
}

/* ---- for tests ---- */

static bool same(const struct court_twig *a, const struct court_twig *b) {
    return a->nodes == b->nodes && a->pes == b->pes && a->estimate == b->estimate;
}

/* A branch is as it should be, its jobs follow each other in the list from *next on. */
static bool branch_conserved(const struct court *c, uint32_t at, uint32_t up, uint32_t *next) {
    if (at == COURT_NONE)
        return true;
    struct court_twig *t = twig(c, at), had = *t;
    if (t->up != up || (up != COURT_NONE && weight(at) > weight(up)) ||
        !branch_conserved(c, t->left, at, next) || *next != at)
        return false;
    *next = c->jobs[at].next;
    gather(c, at);
    return same(&had, t) && branch_conserved(c, t->right, at, next);
}

bool court_tree_conserved(const struct court *c, const struct court_line *line) {
    uint32_t next = line->first;
    return branch_conserved(c, line->root, COURT_NONE, &next) && next == COURT_NONE;
}

/* SPDX-License-Identifier: MIT */
/* Best fit among jobs that start together.
 *
 * Who starts first takes nodes without knowing who comes next. So as long as nobody has been told of it, a job that was
 * started in this decision may be given other nodes: when one does not fit, those are moved out of its way, along
 * augmenting paths (J takes a node of A, A one of B, B a free one). Where a node goes to one job as a whole that finds
 * room if there is any. Where jobs share nodes it may not, and on small machines all ways are tried then.
 *
 * Whoever the policy, or the court's owner, has looked at stays where he is. What is tried in a decision is limited:
 * beyond that a job waits though it might have fitted. Where nodes are alike and nobody chooses nothing is tried. */
#include "base/assert.h"
#include "sched/court_inside.h"

enum {
    TRIES = 64,       /* in a decision */
    STEPS = 1 << 15,  /* looks at a node, in a decision */
    MOVED = 16,       /* looks that it takes to move somebody */
    SCANNED = 4,      /* nodes that are scanned in a look */
    MOVES = 1024,     /* for one job */
    SMALL_NODES = 16, /* where all ways are tried */
    SMALL_JOBS = 10
};

struct mover {
    struct want want;
    struct matrix_where at;
    struct nodeset *set;
    uint32_t free; /* nodes before this place of the order are not, and do not become so */
    bool seen;     /* by this search */
};

struct move {
    uint32_t node;
    uint16_t mover;
    bool take;
};

struct swap {
    struct court *court;
    struct mover movers[COURT_SWAPS_MAX + 1]; /* the last is who wants to start */
    uint32_t count;
    struct move moves[MOVES];
    uint32_t done;
};

void court_swaps_begin(struct court *c) {
    c->swaps = (struct court_swaps){.tries = TRIES, .steps = STEPS};
}

void court_swaps_end(struct court *c) {
    c->swaps.count = 0;
}

void court_swaps_note(struct court *c, const struct court_job *j) {
    struct court_swaps *s = &c->swaps;
    if (s->count < COURT_SWAPS_MAX)
        s->jobs[s->count++] = (uint32_t)(j - c->jobs);
    s->chosen = s->chosen || j->pub.chooses;
}

void court_swaps_pin(struct court *c, const struct court_job *j) {
    struct court_swaps *s = &c->swaps;
    for (uint32_t i = 0; i < s->count; i++)
        if (&c->jobs[s->jobs[i]] == j)
            s->jobs[i] = s->jobs[--s->count];
}

bool court_swaps_open(struct court *c) {
    struct court_swaps *s = &c->swaps;
    return s->count > 0 && s->tries > 0 && s->steps > 0 &&
           (s->chosen || c->choosers > 0 || matrix_uneven(&c->matrix));
}

/* ---- moving ---- */

static uint32_t each_on(const struct swap *s, const struct mover *x, uint32_t n) {
    return x->want.exclusive ? matrix_node_pes(&s->court->matrix, n) : x->want.ppn;
}

/* None has sections here. */
static void remember(struct court *c, const struct mover *x, uint32_t n, int64_t more) {
    c->memory.left[n] += more;
    if (x->at.memory_room != NULL)
        c->room.memory[n] += more;
}

static void put(struct swap *s, struct mover *x, uint32_t n, bool take) {
    struct court *c = s->court;
    matrix_shift(&c->matrix, x->at.row, n, want_each(&x->want), take);
    if (take)
        nodeset_add(x->set, n);
    else
        nodeset_remove(x->set, n);
    if (x->want.memory > 0)
        remember(c, x, n, take ? -(int64_t)x->want.memory : (int64_t)x->want.memory);
    if (x->at.room != NULL) {
        uint32_t had = c->room.free[n], each = each_on(s, x, n);
        c->room.free[n] = (uint16_t)(take ? had - each : had + each);
    }
}

static bool act(struct swap *s, struct mover *x, uint32_t n, bool take) {
    if (s->done == MOVES)
        return false;
    s->moves[s->done++] =
        (struct move){.node = n, .mover = (uint16_t)(x - s->movers), .take = take};
    put(s, x, n, take);
    return true;
}

static void undo(struct swap *s, uint32_t until) {
    while (s->done > until) {
        const struct move *m = &s->moves[--s->done];
        put(s, &s->movers[m->mover], m->node, !m->take);
    }
}

static bool look(struct swap *s) {
    struct court_swaps *limits = &s->court->swaps;
    if (limits->steps == 0)
        return false;
    limits->steps--;
    return true;
}

static bool suits(const struct swap *s, const struct mover *x, uint32_t n) {
    return matrix_suits(&s->court->matrix, &x->at, &x->want, n) && !nodeset_has(x->set, n);
}

/* ---- augmenting paths ---- */

static bool place(struct swap *s, struct mover *x);

/* It takes the node of another one, who finds another. */
static bool displace(struct swap *s, struct mover *x, struct mover *y, uint32_t n) {
    uint32_t mark = s->done, *steps = &s->court->swaps.steps;
    *steps -= *steps < MOVED ? *steps : MOVED;
    if (act(s, y, n, false) && suits(s, x, n) && act(s, x, n, true) && place(s, y))
        return true;
    undo(s, mark);
    return false;
}

/* It takes one from somebody who finds another. */
static bool oust(struct swap *s, struct mover *x) {
    const struct matrix *m = &s->court->matrix;
    x->seen = true;
    for (struct mover *y = s->movers; y < s->movers + s->count; y++) {
        if (y->seen)
            continue;
        NODESET_EACH (n, y->set) { /* as it was, behind each that would not do */
            if (n % SCANNED == 0 && !look(s))
                return false;
            if (!nodeset_has(x->set, n) && want_chooses(&x->want, n) &&
                matrix_node_pes(m, n) >= x->want.ppn && displace(s, x, y, n))
                return true;
            if (y->seen) /* it has nowhere to go, whatever is taken from it */
                break;
        }
    }
    return false;
}

/* One more node for it. */
static bool place(struct swap *s, struct mover *x) {
    const struct matrix *m = &s->court->matrix;
    uint32_t *steps = &s->court->swaps.steps;
    while (x->free<m->config.nodes && * steps> 0) { /* a look at each */
        uint32_t left = m->config.nodes - x->free, end = x->free + (left < *steps ? left : *steps);
        uint32_t i = matrix_nth_suiting(m, &x->at, &x->want, x->free, end);
        *steps -= i - x->free + (i < end);
        x->free = i;
        if (i < end && !nodeset_has(x->set, matrix_nth(m, i)))
            return act(s, x, matrix_nth(m, i), true);
        x->free += i < end;
    }
    return oust(s, x);
}

static void drop(struct swap *s, struct mover *x) {
    while (!nodeset_empty(x->set))
        put(s, x, nodeset_first(x->set), false);
}

/* All that is free goes to it: it is not enough, else nobody would have to be moved. */
static bool gather(struct swap *s, struct mover *x) {
    const struct matrix *m = &s->court->matrix;
    uint32_t looks = (m->config.nodes + SCANNED - 1) / SCANNED, *steps = &s->court->swaps.steps;
    bool may = *steps >= looks;
    *steps -= may ? looks : *steps;
    for (uint32_t n = 0; may && nodeset_count(x->set) < x->want.nodes; n++) {
        n = matrix_suiting(m, &x->at, &x->want, n);
        if (n == UINT32_MAX)
            break;
        put(s, x, n, true);
    }
    return may;
}

/* What is free goes to it at once, then it is one for one. */
static bool augment(struct swap *s, struct mover *x) {
    if (!gather(s, x))
        return false;
    while (nodeset_count(x->set) < x->want.nodes) {
        for (uint32_t i = 0; i < s->count; i++)
            s->movers[i].seen = false;
        if (!oust(s, x))
            return false;
    }
    return true;
}

/* ---- all ways ---- */

/* Nodes for this one, behind so many of them, and for those after it. */
static bool search(struct swap *s, uint32_t mover, uint32_t from) {
    if (mover == s->count)
        return true;
    struct mover *x = &s->movers[mover];
    const struct matrix *m = &s->court->matrix;
    if (nodeset_count(x->set) == x->want.nodes)
        return search(s, mover + 1, 0);
    for (uint32_t i = from; i < m->config.nodes && look(s); i++) {
        uint32_t n = matrix_nth(m, i), mark = s->done;
        if (!suits(s, x, n))
            continue;
        if (act(s, x, n, true) && search(s, mover, i + 1))
            return true;
        undo(s, mark);
    }
    return false;
}

static bool search_all(struct swap *s) {
    const struct matrix *m = &s->court->matrix;
    if (matrix_flat(m) || m->config.nodes > SMALL_NODES || s->count > SMALL_JOBS)
        return false;
    for (struct mover *x = s->movers; x < s->movers + s->count; x++)
        for (uint32_t n = 0; n < m->config.nodes; n++)
            if (nodeset_has(x->set, n) && !act(s, x, n, false))
                return false;
    return search(s, 0, 0);
}

/* ---- */

static void add(struct swap *s, const struct court_job *j, const struct matrix_where *at,
                struct nodeset *set) {
    s->movers[s->count++] = (struct mover){.want = court_want(j), .at = *at, .set = set};
}

bool court_swap(struct court *c, const struct court_job *j, const struct matrix_where *at) {
    if (!c->deciding || j->section_count > 0 || !court_swaps_open(c))
        return false;
    struct swap s = {.court = c};
    c->swaps.tries--;
    for (uint32_t i = 0; i < c->swaps.count; i++) {
        const struct court_job *k = &c->jobs[c->swaps.jobs[i]];
        struct matrix_where where = court_where_within(c, k, at->row);
        if (k->pub.slot == at->row)
            add(&s, k, &where, &c->sets[k->set]);
    }
    struct mover *x = &s.movers[s.count];
    struct nodeset *set = court_next_set(c);
    nodeset_clear(set);
    add(&s, j, at, set);
    bool found = augment(&s, x);
    if (!found) {
        undo(&s, 0);
        drop(&s, x);
        found = search_all(&s);
    }
    if (!found)
        undo(&s, 0);
    drop(&s, x); /* it is the policy's to start it */
    return found;
}

/* ---- who waits ---- */

enum { COVET_LOOKS = 32 };

static const struct nodeset *smaller(const struct nodeset *only, const struct nodeset *meets) {
    if (only == NULL || meets == NULL)
        return only != NULL ? only : meets;
    return nodeset_count(only) < nodeset_count(meets) ? only : meets;
}

/* Of what it chooses, the smaller set; NULL: it does not. */
static const struct nodeset *chosen(const struct court_job *j) {
    return smaller(j->only, j->meets);
}

/* It wants one of these, if they are fewer than so many. */
static void covet(struct court *c, const struct court_job *j, uint32_t size) {
    const struct nodeset *set = chosen(j);
    if (set != NULL && nodeset_count(set) < size)
        nodeset_unite(&c->scratch, set);
    for (uint32_t k = 0; k < j->section_count; k++) {
        const struct nodeset *part = smaller(j->sections[k].only, j->sections[k].meets);
        if (part != NULL && nodeset_count(part) < size)
            nodeset_unite(&c->scratch, part);
    }
}

const struct nodeset *court_coveted(struct court *c, const struct court_job *j) {
    const struct nodeset *own = chosen(j);
    uint32_t size = own != NULL ? nodeset_count(own) : c->config.limits.nodes, looks = 0;
    if (c->choosers == 0)
        return NULL;
    nodeset_clear(&c->scratch);
    for (uint32_t i = c->queue.first; i != COURT_NONE && looks < COVET_LOOKS;
         i = c->jobs[i].next, looks++)
        if (&c->jobs[i] != j)
            covet(c, &c->jobs[i], size);
    return nodeset_empty(&c->scratch) ? NULL : &c->scratch;
}

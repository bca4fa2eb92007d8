/* SPDX-License-Identifier: MIT */
/* Free processors of the nodes; see places.h.
 *
 * All that is derived (trees, counters, sums) changes in one place: a node is taken out of the
 * books, its own numbers change, and it is entered again. A tree is an array: the children of i are
 * 2i and 2i+1, the root is 1, node n is leaf leaves+n; each has the larger value of its children. */
#include "sched/places.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"

/* ---- trees ---- */

static void tree_set(uint16_t *t, uint32_t leaves, uint32_t node, uint16_t value) {
    uint32_t i = leaves + node;
    t[i] = value;
    for (i /= 2; i >= 1; i /= 2) {
        uint16_t most = t[2 * i] > t[2 * i + 1] ? t[2 * i] : t[2 * i + 1];
        if (t[i] == most)
            break;
        t[i] = most;
    }
}

/* The lowest node at or above `from` whose value is at least `least` (which is not 0). */
static uint32_t tree_next(const uint16_t *t, uint32_t leaves, uint32_t from, uint32_t least) {
    if (from >= leaves)
        return NODESET_NONE;
    uint32_t i = leaves + from;
    while (t[i] < least) {
        while (i % 2 == 1) { /* a right child, or the root */
            if (i == 1)
                return NODESET_NONE;
            i /= 2;
        }
        i++;
    }
    while (i < leaves)
        i = t[2 * i] >= least ? 2 * i : 2 * i + 1;
    return i - leaves;
}

/* ---- the books ---- */

static uint32_t node_free(const struct places *p, uint32_t n) {
    return nodeset_has(&p->usable, n) ? (uint32_t)(p->pes[n] - p->used[n]) : 0;
}

static uint32_t node_whole(const struct places *p, uint32_t n) {
    return nodeset_has(&p->usable, n) && p->used[n] == 0 ? p->pes[n] : 0;
}

/* Nodes that are not usable count as nodes without a free PE. */
static void leave_books(struct places *p, uint32_t n) {
    p->free_count[node_free(p, n)]--;
    p->whole_count[node_whole(p, n)]--;
    p->pes_count[p->pes[n]]--;
    p->pes_all -= p->pes[n];
    p->used_all -= p->used[n];
    p->free_all -= node_free(p, n);
}

static void enter_books(struct places *p, uint32_t n) {
    uint32_t left = node_free(p, n), whole = node_whole(p, n);
    p->free_count[left]++;
    p->whole_count[whole]++;
    p->pes_count[p->pes[n]]++;
    p->pes_all += p->pes[n];
    p->used_all += p->used[n];
    p->free_all += left;
    tree_set(p->free_tree, p->leaves, n, (uint16_t)left);
    tree_set(p->whole_tree, p->leaves, n, (uint16_t)whole);
}

static void set_used(struct places *p, uint32_t n, uint32_t used) {
    ASSERT(used <= p->pes[n]);
    leave_books(p, n);
    p->used[n] = (uint16_t)used;
    enter_books(p, n);
}

/* ---- start ---- */

static void carve(struct places *p, const struct places_config *c, struct arena *a) {
    ASSERT(c->nodes <= c->universe && c->universe <= NODESET_UNIVERSE_MAX);
    ASSERT(c->pes <= c->pes_max && c->pes_max <= PLACES_PES_MAX);
    *p = (struct places){.config = *c, .leaves = 1};
    while (p->leaves < c->nodes)
        p->leaves *= 2;
    p->free_count = ARENA_TAKE(a, uint32_t, c->pes_max + 1);
    p->whole_count = ARENA_TAKE(a, uint32_t, c->pes_max + 1);
    p->pes_count = ARENA_TAKE(a, uint32_t, c->pes_max + 1);
    p->pes = ARENA_TAKE(a, uint16_t, c->nodes);
    p->used = ARENA_TAKE(a, uint16_t, c->nodes);
    p->free_tree = ARENA_TAKE(a, uint16_t, 2 * (size_t)p->leaves);
    p->whole_tree = ARENA_TAKE(a, uint16_t, 2 * (size_t)p->leaves);
    nodeset_init(&p->usable, c->universe,
                 ARENA_TAKE(a, uint64_t, nodeset_bytes(c->universe) / sizeof(uint64_t)));
}

size_t places_bytes(const struct places_config *c) {
    struct arena a;
    struct places scratch;
    arena_init(&a, NULL, 0);
    carve(&scratch, c, &a);
    return arena_used(&a);
}

void places_init(struct places *p, const struct places_config *c, struct arena *a) {
    carve(p, c, a);
    memset(p->free_count, 0, sizeof p->free_count[0] * (c->pes_max + 1));
    memset(p->whole_count, 0, sizeof p->whole_count[0] * (c->pes_max + 1));
    memset(p->pes_count, 0, sizeof p->pes_count[0] * (c->pes_max + 1));
    memset(p->free_tree, 0, sizeof p->free_tree[0] * 2 * p->leaves);
    memset(p->whole_tree, 0, sizeof p->whole_tree[0] * 2 * p->leaves);
    for (uint32_t n = 0; n < c->nodes; n++) {
        p->pes[n] = (uint16_t)c->pes;
        p->used[n] = 0;
        enter_books(p, n);
    }
}

void places_set_pes(struct places *p, uint32_t node, uint32_t pes) {
    ASSERT(node < p->config.nodes && pes <= p->config.pes_max && p->used[node] == 0);
    leave_books(p, node);
    p->pes[node] = (uint16_t)pes;
    enter_books(p, node);
}

void places_set_usable(struct places *p, const struct nodeset *set, bool usable) {
    NODESET_EACH (n, set) {
        if (n >= p->config.nodes)
            break;
        if (nodeset_has(&p->usable, n) == usable)
            continue;
        leave_books(p, n);
        if (usable)
            nodeset_add(&p->usable, n);
        else
            nodeset_remove(&p->usable, n);
        enter_books(p, n);
    }
}

/* ---- taking ---- */

static uint64_t count_from(const uint32_t *counts, uint32_t least, uint32_t most) {
    uint64_t sum = 0;
    for (uint32_t i = least; i <= most; i++)
        sum += counts[i];
    return sum;
}

/* The last number of the run of `s` that `n` is in. */
static uint32_t run_end(const struct nodeset *s, uint32_t n) {
    struct noderange run;
    bool found = nodeset_next_range(s, n, &run);
    ASSERT(found && run.first == n);
    return run.last;
}

/* The lowest node at or above `from` that fits and is allowed: forbidden runs are jumped over. */
static uint32_t next_fit(const struct places *p, const struct places_want *w, uint32_t from) {
    const uint16_t *tree = w->exclusive ? p->whole_tree : p->free_tree;
    for (;;) {
        uint32_t n = tree_next(tree, p->leaves, from, w->ppn);
        if (n == NODESET_NONE)
            return n;
        struct noderange run;
        if (w->only && !nodeset_has(w->only, n)) {
            if (!nodeset_next_range(w->only, n, &run))
                return NODESET_NONE;
            from = run.first;
        } else if (w->exclude && nodeset_has(w->exclude, n)) {
            from = run_end(w->exclude, n) + 1;
        } else {
            return n;
        }
    }
}

static uint32_t count_members(const struct places *p, const struct places_want *w,
                              const struct nodeset *set) {
    uint32_t count = 0;
    NODESET_EACH (n, set) {
        if (n >= p->config.nodes)
            break;
        count += p->pes[n] >= w->ppn && !(w->exclude && nodeset_has(w->exclude, n));
    }
    return count;
}

bool places_fits(const struct places *p, const struct places_want *w) {
    ASSERT(w->nodes >= 1 && w->ppn >= 1);
    uint64_t fit = count_from(p->pes_count, w->ppn, p->config.pes_max);
    if (fit < w->nodes)
        return false;
    if (w->only)
        return count_members(p, w, w->only) >= w->nodes;
    if (w->exclude) {
        struct places_want excluded = {.ppn = w->ppn};
        fit -= count_members(p, &excluded, w->exclude);
    }
    return fit >= w->nodes;
}

static int refuse(const struct places *p, const struct places_want *w, struct nodeset *ret) {
    nodeset_clear(ret);
    return places_fits(p, w) ? -EAGAIN : -ENOSPC;
}

int places_take(struct places *p, const struct places_want *w, struct nodeset *ret) {
    ASSERT(w->nodes >= 1 && w->ppn >= 1 && ret->universe == p->config.universe);
    const uint32_t *counts = w->exclusive ? p->whole_count : p->free_count;
    if (count_from(counts, w->ppn, p->config.pes_max) < w->nodes)
        return refuse(p, w, ret);
    nodeset_clear(ret);
    for (uint32_t n = 0; nodeset_count(ret) < w->nodes; n++) {
        n = next_fit(p, w, n);
        if (n == NODESET_NONE)
            return refuse(p, w, ret);
        nodeset_add(ret, n);
    }
    NODESET_EACH (n, ret)
        set_used(p, n, w->exclusive ? p->pes[n] : p->used[n] + w->ppn);
    return 0;
}

int places_hold(struct places *p, const struct nodeset *set, uint32_t ppn) {
    NODESET_EACH (n, set) {
        if (n >= p->config.nodes)
            return -EINVAL;
        uint32_t more = ppn == PLACES_WHOLE ? p->pes[n] : ppn;
        if (p->used[n] + (uint64_t)more > p->pes[n])
            return -EBUSY;
    }
    NODESET_EACH (n, set)
        set_used(p, n, ppn == PLACES_WHOLE ? p->pes[n] : p->used[n] + ppn);
    return 0;
}

void places_give(struct places *p, const struct nodeset *set, uint32_t ppn) {
    NODESET_EACH (n, set) {
        ASSERT(n < p->config.nodes);
        uint32_t less = ppn == PLACES_WHOLE ? p->pes[n] : ppn;
        ASSERT(less <= p->used[n]);
        set_used(p, n, p->used[n] - less);
    }
}

/* ---- asking ---- */

uint64_t places_pes(const struct places *p) {
    return p->pes_all;
}

uint64_t places_used(const struct places *p) {
    return p->used_all;
}

uint64_t places_free(const struct places *p) {
    return p->free_all;
}

uint32_t places_node_pes(const struct places *p, uint32_t node) {
    return node < p->config.nodes ? p->pes[node] : 0;
}

uint32_t places_node_used(const struct places *p, uint32_t node) {
    return node < p->config.nodes ? p->used[node] : 0;
}

const struct nodeset *places_usable(const struct places *p) {
    return &p->usable;
}

/* Do the counters say how many nodes have each value, and the tree which is the largest? */
static bool tree_conserved(const struct places *p, const uint16_t *tree, const uint32_t *counts) {
    for (uint32_t i = 1; i < p->leaves; i++) {
        uint16_t left = tree[2 * i], right = tree[2 * i + 1];
        if (tree[i] != (left > right ? left : right))
            return false;
    }
    for (uint32_t n = p->config.nodes; n < p->leaves; n++)
        if (tree[p->leaves + n] != 0)
            return false;
    /* A tree that knows the nodes above each value knows all of them. */
    for (uint32_t v = 1; v <= p->config.pes_max; v++) {
        uint32_t count = 0;
        for (uint32_t n = tree_next(tree, p->leaves, 0, v); n != NODESET_NONE;
             n = tree_next(tree, p->leaves, n + 1, v))
            count += tree[p->leaves + n] == v;
        if (count != counts[v])
            return false;
    }
    return true;
}

bool places_conserved(const struct places *p) {
    uint64_t pes = 0, used = 0, left = 0;
    for (uint32_t n = 0; n < p->config.nodes; n++) {
        if (p->used[n] > p->pes[n] || p->free_tree[p->leaves + n] != node_free(p, n) ||
            p->whole_tree[p->leaves + n] != node_whole(p, n))
            return false;
        pes += p->pes[n];
        used += p->used[n];
        left += node_free(p, n);
    }
    return pes == p->pes_all && used == p->used_all && left == p->free_all &&
           tree_conserved(p, p->free_tree, p->free_count) &&
           tree_conserved(p, p->whole_tree, p->whole_count) &&
           count_from(p->pes_count, 0, p->config.pes_max) == p->config.nodes;
}

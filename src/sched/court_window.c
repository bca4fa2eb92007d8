/* SPDX-License-Identifier: MIT */
/* Windows: nodes that are reserved for some jobs, from then to then.
 *
 * No policy has to know of them. While a window is open its nodes are as if they were down, and the court itself starts
 * the jobs that name it, in the order of their queue, whoever fits; to the policy they are not there, unless
 * they outlast the window: then it hears that they run. Before it opens, its nodes are barred to whoever
 * would not be over by then: the longer a job, the more windows it reaches, so it is enough to know the nodes of
 * the next one, of the next two, and so on. */
#include <errno.h>

#include "base/assert.h"
#include "base/bits.h"
#include "sched/court_inside.h"

size_t court_windows_sets(void) {
    return 2 * (size_t)STORM_WINDOWS_MAX + 2;
}

void court_windows_init(struct court *c, uint64_t *storage) {
    struct court_windows *w = &c->windows;
    size_t words = nodeset_bytes(c->config.universe) / 8;
    for (uint32_t i = 0; i < STORM_WINDOWS_MAX; i++, storage += 2 * words) {
        nodeset_init(&w->at[i].nodes, c->config.universe, storage);
        nodeset_init(&w->ahead[i], c->config.universe, storage + words);
    }
    nodeset_init(&w->up, c->config.universe, storage);
    nodeset_init(&w->bar, c->config.universe, storage + words);
    w->edge = STORM_NEVER;
}

struct court_window *court_window_find(const struct court *c, uint32_t id) {
    const struct court_windows *w = &c->windows;
    for (uint32_t i = 0; i < w->count; i++)
        if (w->at[i].id == id)
            return (struct court_window *)&w->at[i];
    return NULL;
}

static bool is_open(const struct court *c, const struct court_window *w) {
    return w - c->windows.at < c->windows.open;
}

bool court_window_is_open(const struct court *c, uint32_t id) {
    const struct court_window *w = id == 0 ? NULL : court_window_find(c, id);
    return w != NULL && is_open(c, w);
}

/* ---- which nodes can be used ---- */

static bool in_open(const struct court *c, uint32_t node) {
    for (uint32_t i = 0; i < c->windows.open; i++)
        if (nodeset_has(&c->windows.at[i].nodes, node))
            return true;
    return false;
}

void court_windows_usable(struct court *c, const struct nodeset *nodes, bool usable) {
    struct court_windows *w = &c->windows;
    if (usable)
        nodeset_unite(&w->up, nodes);
    else
        nodeset_subtract(&w->up, nodes);
    if (w->open == 0) {
        matrix_set_usable(&c->matrix, nodes, usable);
        return;
    }
    nodeset_copy(&w->bar, nodes);
    for (uint32_t i = 0; i < w->open; i++)
        nodeset_subtract(&w->bar, &w->at[i].nodes);
    matrix_set_usable(&c->matrix, &w->bar, usable);
}

/* Its nodes are for its jobs only, or for everybody again. */
static void set_nodes(struct court *c, const struct court_window *window, bool usable) {
    struct court_windows *w = &c->windows;
    nodeset_and(&w->bar, &window->nodes, &w->up);
    matrix_set_usable(&c->matrix, &w->bar, usable);
}

/* ---- begin and end ---- */

/* What follows from the table. */
static void reckon(struct court *c) {
    struct court_windows *w = &c->windows;
    w->edge = STORM_NEVER;
    for (uint32_t i = 0; i < w->count; i++) {
        uint64_t next = i < w->open ? w->at[i].to : w->at[i].from;
        w->edge = next < w->edge ? next : w->edge;
        if (i < w->open)
            continue;
        struct nodeset *ahead = &w->ahead[i - w->open];
        nodeset_copy(ahead, &w->at[i].nodes);
        if (i > w->open)
            nodeset_unite(ahead, &w->ahead[i - w->open - 1]);
    }
    c->era++;
    c->stirred = true;
}

/* Its place goes behind the others: a set keeps its memory. */
static void drop(struct court *c, uint32_t at) {
    struct court_windows *w = &c->windows;
    struct court_window gone = w->at[at];
    if (at < w->open) {
        set_nodes(c, &gone, true);
        w->open--;
    }
    w->count--;
    for (uint32_t i = at; i < w->count; i++)
        w->at[i] = w->at[i + 1];
    w->at[w->count] = gone;
    for (uint32_t i = 0; i < c->running; i++) {
        struct court_job *j = &c->jobs[c->ends[i].job];
        if (!j->inside || j->window != gone.id)
            continue;
        j->inside = false;
        if (c->policy->resumed)
            c->policy->resumed(c->self, &c->host, &j->pub);
    }
}

static void tell(struct court *c) {
    reckon(c);
    if (c->policy->nodes)
        c->policy->nodes(c->self, &c->host);
}

/* Ends come first: one may begin where another ends. */
void court_windows_pass(struct court *c) {
    struct court_windows *w = &c->windows;
    for (uint32_t i = w->count; i-- > 0;)
        if (w->at[i].to <= c->now)
            drop(c, i);
    for (; w->open < w->count && w->at[w->open].from <= c->now; w->open++)
        set_nodes(c, &w->at[w->open], false);
    tell(c);
}

static int judge(const struct court *c, uint32_t id, uint64_t from, uint64_t to,
                 const struct nodeset *nodes) {
    const struct court_windows *w = &c->windows;
    if (id == 0 || from >= to || to <= c->now || nodeset_empty(nodes) ||
        nodeset_last(nodes) >= c->config.limits.nodes || court_window_find(c, id) != NULL)
        return -EINVAL;
    if (w->count == STORM_WINDOWS_MAX)
        return -ENOSPC;
    for (uint32_t i = 0; i < w->count; i++)
        if (w->at[i].from < to && from < w->at[i].to && nodeset_intersects(&w->at[i].nodes, nodes))
            return -EEXIST;
    return 0;
}

int court_window_add(struct court *c, uint64_t now, uint32_t id, uint64_t from, uint64_t to,
                     const struct nodeset *nodes) {
    struct court_windows *w = &c->windows;
    court_pass_time(c, now);
    int r = judge(c, id, from, to, nodes);
    if (r < 0)
        return r;
    struct court_window new = w->at[w->count];
    uint32_t at = w->count++;
    for (; at > 0 && w->at[at - 1].from > from; at--)
        w->at[at] = w->at[at - 1];
    new.id = id;
    new.from = from;
    new.to = to;
    nodeset_copy(&new.nodes, nodes);
    w->at[at] = new;
    if (from <=
        now) { /* it stands among those that are open: nobody who has not begun is before it */
        w->open++;
        set_nodes(c, &w->at[at], false);
    }
    tell(c);
    court_stir(c);
    return 0;
}

void court_window_remove(struct court *c, uint64_t now, uint32_t id) {
    court_pass_time(c, now);
    const struct court_window *w = court_window_find(c, id);
    if (w == NULL)
        return;
    drop(c, (uint32_t)(w - c->windows.at));
    tell(c);
    court_stir(c);
}

/* ---- who is kept out ---- */

struct court_bar court_bar_at(const struct court *c, const struct court_job *j, uint64_t at) {
    const struct court_windows *w = &c->windows;
    uint64_t ends = units_after(at, court_span_of(c, j));
    struct court_bar bar = {.shut = j->window != 0};
    for (uint32_t i = 0; i < w->count; i++) {
        bool meets = w->at[i].from < ends && w->at[i].to > at;
        if (w->at[i].id == j->window)
            bar.shut = w->at[i].from > at || w->at[i].to <= at;
        else if (meets)
            bar.mask |= (uint64_t)1 << i;
    }
    return bar;
}

const struct nodeset *court_bar_set(const struct court *c, const struct court_job *j,
                                    struct court_bar bar) {
    struct nodeset *set = (struct nodeset *)&c->windows.bar;
    const struct court_window *own = j->window == 0 ? NULL : court_window_find(c, j->window);
    nodeset_clear(set);
    if (own != NULL) { /* it may have no other nodes */
        nodeset_add_range(set, 0, c->config.limits.nodes - 1);
        nodeset_subtract(set, &own->nodes);
    }
    for (; bar.mask != 0; bar.mask &= bar.mask - 1)
        nodeset_unite(set, &c->windows.at[__builtin_ctzll(bar.mask)].nodes);
    return nodeset_empty(set) ? NULL : set;
}

bool court_window_known(const struct court *c, uint32_t id, bool *ret_open) {
    const struct court_window *w = court_window_find(c, id);
    *ret_open = w != NULL && is_open(c, w);
    return w != NULL;
}

bool court_window_bars(const struct court *c, uint32_t job) {
    const struct court_job *j = &c->jobs[job];
    struct court_bar bar = court_bar_at(c, j, c->now);
    if (bar.shut || bar.mask == 0)
        return bar.shut;
    return nodeset_intersects(court_bar_set(c, j, bar), &c->sets[j->set]);
}

bool court_window_leaves(const struct court *c, uint32_t job, const struct nodeset **ret_barred) {
    const struct court_job *j = &c->jobs[job];
    struct court_bar bar = court_bar_at(c, j, c->now);
    *ret_barred = bar.shut ? NULL : court_bar_set(c, j, bar);
    return !bar.shut;
}

/* ---- jobs that name one ---- */

/* Its nodes are as if they were down, but not for it. */
static void start(struct court *c, struct court_job *j) {
    uint32_t rows = court_sliced(c) ? c->limits.slots : 1;
    struct matrix_where at = {.last = UINT32_MAX,
                              .barred = court_bar_set(c, j, court_bar_at(c, j, c->now)),
                              .up = &c->windows.up,
                              .memory = court_memory_for(c, j)};
    for (; at.row < rows && court_has_sets(c, j); at.row++) {
        if (court_seat(c, j, &at) < 0)
            continue;
        j->inside = true;
        court_dequeue(c, j);
        court_run(c, j, c->now, at.row);
        court_news(c, j, PENDING_START);
        return;
    }
}

void court_windows_start(struct court *c) {
    for (uint32_t at = c->windows.open > 0 ? c->booked.first : COURT_NONE; at != COURT_NONE;) {
        struct court_job *j = &c->jobs[at];
        const struct court_window *w = court_window_find(c, j->window);
        at = j->next;
        if (w != NULL && is_open(c, w))
            start(c, j);
    }
}

/* ---- for tests ---- */

bool court_windows_conserved(const struct court *c) {
    const struct court_windows *w = &c->windows;
    for (uint32_t i = 0; i < w->count; i++)
        if ((w->at[i].from <= c->now) != (i < w->open) || w->at[i].to <= c->now ||
            (i > 0 && w->at[i - 1].from > w->at[i].from))
            return false;
    for (uint32_t n = 0; n < c->config.limits.nodes; n++)
        if (bits_test(c->matrix.usable, n) != (nodeset_has(&w->up, n) && !in_open(c, n)))
            return false;
    for (uint32_t i = 0; i < c->running; i++) {
        const struct court_job *j = &c->jobs[c->ends[i].job];
        if (j->inside && !court_window_is_open(c, j->window))
            return false;
    }
    return true;
}

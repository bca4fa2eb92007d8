/* SPDX-License-Identifier: MIT */
/* What policies see and decide: the functions of storm_host. Whatever comes from a policy may be wrong. */
#include <errno.h>

#include "base/assert.h"
#include "sched/court_inside.h"

static uint32_t place_of(const struct court *c, const struct court_job *j) {
    return (uint32_t)(j - c->jobs);
}

/* The job that a policy means, be it over; NULL if there is none. */
static struct court_job *find_any(struct court *c, const struct storm_job *job) {
    uintptr_t base = (uintptr_t)c->jobs, at = (uintptr_t)job;
    if (at < base || (at - base) % sizeof c->jobs[0] != 0)
        return NULL;
    size_t i = (at - base) / sizeof c->jobs[0];
    return i < c->jobs_used ? &c->jobs[i] : NULL;
}

static struct court_job *find(struct court *c, const struct storm_job *job) {
    struct court_job *j = find_any(c, job);
    return j != NULL && j->pub.state != STORM_OVER ? j : NULL;
}

int court_fault(struct court *c, const struct court_job *j, const char *words, uint32_t node) {
    if (c->broken)
        return -EINVAL;
    struct text t;
    text_init(&t, c->words, sizeof c->words);
    text_str(&t, "the policy ");
    text_str(&t, c->policy->name);
    text_char(&t, ' ');
    text_str(&t, words);
    if (j != NULL) {
        text_str(&t, " (job ");
        text_u64(&t, j->pub.id);
        if (node != COURT_NONE) {
            text_str(&t, ", node ");
            text_u64(&t, node);
        }
        text_char(&t, ')');
    }
    text_str(&t, "; going on under fcfs");
    c->broken = true;
    c->words_news = true;
    return -EINVAL;
}

/* ---- looking ---- */

static uint64_t host_now(const struct storm_host *h) {
    return court_of(h)->now;
}

static const struct storm_limits *host_limits(const struct storm_host *h) {
    return &court_of(h)->limits;
}

static void *host_own(struct storm_host *h, const struct storm_job *job) {
    struct court *c = court_of(h);
    const struct court_job *j = (const struct court_job *)job;
    return c->own + (size_t)place_of(c, j) * (COURT_OWN_MAX / 8);
}

/* Behind a job that waits, or did when we were last asked. */
static uint32_t next_of(struct court *c, const struct storm_job *after) {
    const struct court_job *j = after ? find(c, after) : NULL;
    if (after == NULL)
        return c->queue.first;
    if (j == NULL || j->next == COURT_NONE || c->jobs[j->next].where != WHERE_QUEUE)
        return COURT_NONE;
    return j->next;
}

static const struct storm_job *host_queued(struct storm_host *h, const struct storm_job *after) {
    struct court *c = court_of(h);
    uint32_t at = next_of(c, after);
    return at == COURT_NONE ? NULL : &c->jobs[at].pub;
}

static const struct storm_job *host_running(struct storm_host *h, const struct storm_job *after) {
    struct court *c = court_of(h);
    uint32_t at = 0;
    if (after != NULL) {
        const struct court_job *j = find(c, after);
        if (j == NULL)
            return NULL;
        at = court_ends_at(c, j->pub.ends, j->tie) + 1;
    }
    while (at < c->running && c->jobs[c->ends[at].job].inside)
        at++;
    return at < c->running ? &c->jobs[c->ends[at].job].pub : NULL;
}

static const struct storm_job *host_candidate(struct storm_host *h, const struct storm_job *after,
                                              uint32_t slot) {
    struct court *c = court_of(h);
    if (slot >= c->limits.slots || (c->matrix.rows[slot].free == 0 && !court_swaps_open(c)))
        return NULL;
    uint32_t at = court_candidate(c, next_of(c, after), slot);
    return at == COURT_NONE ? NULL : &c->jobs[at].pub;
}

static uint64_t host_pes(const struct storm_host *h) {
    return court_of(h)->matrix.pes_usable;
}

static uint64_t host_held(const struct storm_host *h, const struct storm_job *job) {
    const struct court *c = court_of(h);
    const struct court_job *j = find_any(court_of(h), job);
    struct court_part p;
    uint64_t pes = 0;
    if (j == NULL || j->where != WHERE_RUNS)
        return 0;
    for (uint32_t k = 0; court_part(c, j, k, &p); k++)
        NODESET_EACH (n, p.set)
            if (bits_test(c->matrix.usable, n))
                pes += p.each == WANT_WHOLE ? matrix_node_pes(&c->matrix, n) : p.each;
    return pes;
}

static uint64_t host_free(const struct storm_host *h, uint32_t slot) {
    const struct court *c = court_of(h);
    return slot < c->limits.slots ? c->matrix.rows[slot].free : 0;
}

static uint32_t host_span(const struct storm_host *h, const struct storm_job *job, uint32_t from,
                          uint32_t *ret_last) {
    struct court *c = court_of(h);
    const struct court_job *j = find_any(c, job); /* while its end is told it still has its nodes */
    struct noderange run;
    if (j == NULL || j->where != WHERE_RUNS || !nodeset_next_range(&c->sets[j->set], from, &run))
        return UINT32_MAX;
    court_swaps_pin(c, j); /* it may keep that in mind */
    *ret_last = run.last;
    return run.first;
}

static bool host_fits(struct storm_host *h, const struct storm_job *job, uint32_t slot,
                      uint32_t first, uint32_t last) {
    struct court *c = court_of(h);
    const struct court_job *j = find(c, job);
    if (j == NULL || slot >= c->limits.slots || !court_has_sets(c, j))
        return false;
    /* Who looks for a place among some will start it there: not where it is against what is held for another. */
    bool some = first > 0 || last < c->config.limits.nodes - 1;
    struct matrix_where at = some ? court_where_within(c, j, slot) : court_where(c, j, slot);
    at.first = first;
    at.last = last;
    struct want w = court_want(j);
    if (some)
        return matrix_fits(&c->matrix, &at, &w);
    return court_fits(c, j, &at) || (j->where == WHERE_QUEUE && court_swap(c, j, &at));
}

static uint64_t host_earliest(struct storm_host *h, const struct storm_job *job, uint32_t slot) {
    struct court *c = court_of(h);
    const struct court_job *j = find(c, job);
    return j == NULL || slot >= c->limits.slots ? STORM_NEVER : court_earliest(c, j, slot);
}

/* ---- deciding ---- */

static uint64_t host_reserve(struct storm_host *h, const struct storm_job *job, uint32_t slot) {
    struct court *c = court_of(h);
    struct court_job *j = find(c, job);
    if (j == NULL || slot >= c->limits.slots)
        return STORM_NEVER;
    if (c->promised != COURT_NONE && c->promised != place_of(c, j))
        c->jobs[c->promised].pub.reserved = STORM_NEVER; /* it is not the head any more */
    c->promised = place_of(c, j);
    return j->pub.reserved = court_reserve(c, j, slot);
}

static bool host_may(struct storm_host *h, const struct storm_job *job, uint32_t slot) {
    struct court *c = court_of(h);
    const struct court_job *j = find(c, job);
    return j != NULL && slot < c->limits.slots && j->where == WHERE_QUEUE && court_may(c, j, slot);
}

static void host_expect(struct storm_host *h, const struct storm_job *job, uint64_t start) {
    struct court_job *j = find(court_of(h), job);
    if (j != NULL && j->where == WHERE_QUEUE)
        j->pub.reserved = start;
}

/* The job that a policy wants to start, NULL if it may not; then that was its last word. */
static struct court_job *startable(struct court *c, const struct storm_job *job, uint32_t slot) {
    struct court_job *j = find(c, job);
    if (c->broken)
        return NULL;
    if (j == NULL || !c->deciding)
        court_fault(c, NULL, j == NULL ? "starts a job that is not there" : "starts a job unasked",
                    COURT_NONE);
    else if (j->where != WHERE_QUEUE)
        court_fault(c, j, "starts a job twice", COURT_NONE);
    else if (slot >= c->limits.slots)
        court_fault(c, j, "starts a job in a slot that is not there", COURT_NONE);
    else if (!court_has_sets(c, j))
        court_fault(c, j, "starts more jobs than can run", COURT_NONE);
    else
        return j;
    return NULL;
}

static void started(struct court *c, struct court_job *j, uint32_t slot) {
    court_dequeue(c, j);
    court_run(c, j, c->now, slot);
    court_news(c, j, PENDING_START);
}

static int host_start(struct storm_host *h, const struct storm_job *job, uint32_t slot,
                      uint32_t first, uint32_t last) {
    struct court *c = court_of(h);
    struct court_job *j = startable(c, job, slot);
    if (j == NULL)
        return -EINVAL;
    if (court_take(c, j, slot, first, last) < 0)
        return court_fault(c, j, "starts a job where too few processors are free", COURT_NONE);
    started(c, j, slot);
    return 0;
}

/* A node of them that is in a window, or would be before the job is over; COURT_NONE: none is. */
static uint32_t reserved_of(const struct court *c, const struct court_job *j,
                            const struct nodeset *set) {
    struct court_bar bar = court_bar_at(c, j, c->now);
    const struct nodeset *barred = court_bar_set(c, j, bar);
    if (barred != NULL)
        NODESET_EACH (n, set)
            if (nodeset_has(barred, n))
                return n;
    return COURT_NONE;
}

static int host_start_on(struct storm_host *h, const struct storm_job *job, uint32_t slot,
                         const uint32_t *nodes, uint32_t count) {
    struct court *c = court_of(h);
    struct court_job *j = startable(c, job, slot);
    uint32_t node = COURT_NONE;
    if (j == NULL)
        return -EINVAL;
    struct want w = court_want(j);
    struct matrix_where at = {.row = slot, .last = UINT32_MAX, .memory = court_memory_for(c, j)};
    struct nodeset *set = court_next_set(c);
    nodeset_clear(set);
    for (uint32_t i = 0; i < count; i++) {
        if (nodes[i] >= c->config.limits.nodes)
            return court_fault(c, j, "starts a job on a node that is not there", nodes[i]);
        if (!want_chooses(&w, nodes[i]))
            return court_fault(c, j, "starts a job on a node that it must not have", nodes[i]);
        nodeset_add(set, nodes[i]);
    }
    if (nodeset_count(set) != j->pub.nodes || count != j->pub.nodes)
        return court_fault(c, j, "starts a job on another number of nodes than it needs",
                           COURT_NONE);
    node = reserved_of(c, j, set);
    if (node != COURT_NONE)
        return court_fault(c, j, "starts a job on a node that is reserved", node);
    int r = court_seat_on(c, j, &at, &node);
    if (r < 0)
        return court_fault(c, j,
                           r == -EHOSTDOWN ? "starts a job on a node that is down"
                           : r == -ENOMEM  ? "starts a job on a node with too little memory"
                           : node == COURT_NONE
                               ? "starts a job on nodes that are not for its sections"
                               : "starts a job on processors that are busy",
                           node);
    started(c, j, slot);
    return 0;
}

static int host_stop(struct storm_host *h, const struct storm_job *job) {
    struct court *c = court_of(h);
    struct court_job *j = find(c, job);
    if (j == NULL || j->where != WHERE_RUNS)
        return court_fault(c, j, "stops a job that does not run", COURT_NONE);
    if (!j->stopping)
        court_news(c, j, PENDING_STOP);
    j->stopping = true;
    return 0;
}

static int host_resize(struct storm_host *h, const struct storm_job *job, uint32_t nodes) {
    (void)h;
    (void)job;
    (void)nodes;
    return -ENOTSUP;
}

static bool host_merge(struct storm_host *h, uint32_t into, uint32_t from) {
    struct court *c = court_of(h);
    uint32_t slots = c->limits.slots;
    return into < slots && from < slots && into != from && court_merge(c, into, from);
}

static int host_turn(struct storm_host *h, uint32_t slot) {
    struct court *c = court_of(h);
    if (slot >= c->limits.slots)
        return court_fault(c, NULL, "turns to a slot that is not there", COURT_NONE);
    c->turn_news = c->turn_news || slot != c->slot;
    c->slot = slot;
    return 0;
}

static int host_wake(struct storm_host *h, uint64_t at) {
    struct court *c = court_of(h);
    uint64_t least = units_after(c->now, c->config.wake_least > 0 ? c->config.wake_least : 1);
    c->wake_at = at > least ? at : least;
    return 0;
}

static uint64_t host_window(const struct storm_host *h, uint32_t index, uint64_t *ret_from,
                            uint64_t *ret_to) {
    const struct court *c = court_of(h);
    if (index >= c->windows.count)
        return STORM_NEVER;
    const struct court_window *w = &c->windows.at[index];
    uint64_t pes = 0;
    NODESET_EACH (n, &w->nodes)
        if (nodeset_has(&c->windows.up, n))
            pes += matrix_node_pes(&c->matrix, n);
    *ret_from = w->from;
    *ret_to = w->to;
    return pes;
}

const struct storm_host_ops court_host_ops = {
    .size = sizeof(struct storm_host_ops),
    .now = host_now,
    .limits = host_limits,
    .own = host_own,
    .queued = host_queued,
    .running = host_running,
    .candidate = host_candidate,
    .pes = host_pes,
    .free = host_free,
    .span = host_span,
    .fits = host_fits,
    .earliest = host_earliest,
    .reserve = host_reserve,
    .may = host_may,
    .expect = host_expect,
    .start = host_start,
    .start_on = host_start_on,
    .stop = host_stop,
    .resize = host_resize,
    .merge = host_merge,
    .turn = host_turn,
    .wake = host_wake,
    .window = host_window,
    .held = host_held,
};

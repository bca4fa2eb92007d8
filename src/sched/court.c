/* SPDX-License-Identifier: MIT */
/* The court; see court.h. Here: jobs that come and go, and the policy that is told. */
#include "sched/court.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/list.h"
#include "base/units.h"
#include "sched/court_inside.h"
#include "sched/policies.h"

/* ---- start ---- */

static size_t policy_bytes(const struct storm_policy *p, const struct storm_limits *l) {
    return p->bytes ? p->bytes(l) : 0;
}

static size_t self_bytes(const struct court_config *c) {
    size_t most = c->guest ? policy_bytes(c->guest, &c->limits) : 0;
    const struct storm_policy *p;
    for (uint32_t i = 0; (p = policies_at(i)) != NULL; i++)
        if (policy_bytes(p, &c->limits) > most)
            most = policy_bytes(p, &c->limits);
    return most + 8;
}

static uint32_t running_max(const struct court_config *c) {
    const struct storm_limits *l = &c->limits;
    uint64_t most = (uint64_t)l->nodes * l->pes_max * l->slots;
    if (c->running != 0 && c->running < most)
        most = c->running;
    return (uint32_t)(most < l->jobs ? most : l->jobs);
}

static struct court_config whole_config(const struct court_config *given) {
    struct court_config c = *given;
    ASSERT(c.limits.slots >= 1 && c.limits.slots <= STORM_SLOTS_MAX && c.limits.jobs >= 1);
    c.universe = c.universe ? c.universe : c.limits.nodes;
    c.pes = c.pes ? c.pes : c.limits.pes_max;
    c.running = running_max(&c);
    return c;
}

static struct matrix_config matrix_of(const struct court_config *c) {
    return (struct matrix_config){.nodes = c->limits.nodes,
                                  .universe = c->universe,
                                  .pes = c->pes,
                                  .pes_max = c->limits.pes_max,
                                  .rows = c->limits.slots + 1};
}

/* Everything but the matrix, whose own code carves. */
static uint64_t *carve(struct court *c, struct arena *a) {
    const struct storm_limits *l = &c->config.limits;
    c->self = ARENA_TAKE(a, uint64_t, self_bytes(&c->config) / 8 + 1);
    c->own = ARENA_TAKE(a, uint64_t, (size_t)l->jobs * (COURT_OWN_MAX / 8));
    c->jobs = ARENA_TAKE(a, struct court_job, l->jobs);
    heap_init(&c->later, ARENA_TAKE(a, struct heap_item *, l->jobs), l->jobs);
    c->ends = ARENA_TAKE(a, struct court_end_entry, l->jobs);
    c->sets = ARENA_TAKE(a, struct nodeset, c->config.running);
    c->set_free = ARENA_TAKE(a, uint32_t, c->config.running);
    c->parts = ARENA_TAKE(a, struct nodeset, c->config.sections);
    c->part_next = ARENA_TAKE(a, uint32_t, c->config.sections);
    c->room.free = ARENA_TAKE(a, uint16_t, l->nodes);
    c->room.memory = ARENA_TAKE(a, int64_t, l->nodes);
    c->room.may = ARENA_TAKE(a, uint64_t, bits_words(l->nodes));
    c->room.will = ARENA_TAKE(a, uint64_t, bits_words(l->nodes));
    c->memory.has = ARENA_TAKE(a, int64_t, l->nodes);
    c->memory.left = ARENA_TAKE(a, int64_t, l->nodes);
    c->forecast = ARENA_TAKE(a, struct plan_step, court_outlook_steps(c));
    return ARENA_TAKE(a, uint64_t,
                      nodeset_bytes(c->config.universe) / 8 *
                          (c->config.running + c->config.sections + court_windows_sets() + 1));
}

size_t court_bytes(const struct court_config *given) {
    struct court scratch = {.config = whole_config(given)};
    struct matrix_config m = matrix_of(&scratch.config);
    struct arena a;
    arena_init(&a, NULL, 0);
    ARENA_TAKE(&a, struct court, 1);
    carve(&scratch, &a);
    return arena_used(&a) + matrix_bytes(&m) + 64;
}

static void begin_policy(struct court *c, const struct storm_policy *policy);

struct court *court_new(const struct court_config *given, const struct storm_policy *policy,
                        struct arena *a) {
    struct court *c = ARENA_TAKE(a, struct court, 1);
    *c = (struct court){.host = {&court_host_ops}, .config = whole_config(given)};
    c->limits = c->config.limits;
    uint64_t *storage = carve(c, a);
    struct matrix_config m = matrix_of(&c->config);
    matrix_init(&c->matrix, &m, a);
    size_t words = nodeset_bytes(c->config.universe) / 8;
    court_memory_init(c);
    court_seats_init(c, storage);
    storage += words * (c->config.running + c->config.sections);
    nodeset_init(&c->scratch, c->config.universe, storage);
    court_windows_init(c, storage + words);
    c->queue = c->booked = (struct court_line){COURT_NONE, COURT_NONE, COURT_NONE, 0};
    c->jobs_free = c->news_first = c->news_last = c->promised = COURT_NONE;
    c->quantum_at = c->wake_at = STORM_NEVER;
    begin_policy(c, policy);
    return c;
}

/* ---- jobs ---- */

static uint32_t place_of(const struct court *c, const struct court_job *j) {
    return (uint32_t)(j - c->jobs);
}

static struct court_job *job_new(struct court *c) {
    uint32_t at = c->jobs_free;
    if (at != COURT_NONE)
        c->jobs_free = c->jobs[at].next;
    else if (c->jobs_used < c->config.limits.jobs)
        at = c->jobs_used++;
    else
        return NULL;
    memset(c->own + (size_t)at * (COURT_OWN_MAX / 8), 0, COURT_OWN_MAX);
    c->jobs[at] = (struct court_job){.prev = COURT_NONE, .next = COURT_NONE, .set = COURT_NONE};
    return &c->jobs[at];
}

/* How large it is, in the terms of a job without sections. */
struct extent {
    uint32_t nodes, ppn; /* ppn: the largest */
    uint64_t pes;
};

static struct extent extent_of(const struct court_order *o) {
    struct extent e = {o->nodes, o->ppn, (uint64_t)o->nodes * o->ppn};
    if (o->section_count > 0)
        e = (struct extent){0};
    for (uint32_t k = 0; k < o->section_count; k++) {
        const struct court_section *s = &o->sections[k];
        e.nodes += s->nodes;
        e.ppn = s->ppn > e.ppn ? s->ppn : e.ppn;
        e.pes += (uint64_t)s->nodes * s->ppn;
    }
    return e;
}

static bool takes_memory(const struct court_order *o) {
    for (uint32_t k = 0; k < o->section_count; k++)
        if (o->sections[k].memory > 0)
            return true;
    return o->section_count == 0 && o->memory > 0;
}

static void job_fill(struct court *c, struct court_job *j, const struct court_order *o) {
    struct extent e = extent_of(o);
    uint64_t pes = o->exclusive ? (uint64_t)e.nodes * c->config.limits.pes_max : e.pes;
    j->sections = o->sections;
    j->section_count = (uint8_t)o->section_count;
    j->takes_memory = takes_memory(o);
    j->memory = o->section_count > 0 ? 0 : o->memory;
    j->only = o->only != NULL && !nodeset_empty(o->only) ? o->only : NULL;
    j->exclude = o->exclude != NULL && !nodeset_empty(o->exclude) ? o->exclude : NULL;
    j->meets = o->meets;
    j->avoid = o->avoid;
    j->window = o->window;
    j->pub =
        (struct storm_job){.id = o->id,
                           .nodes = e.nodes,
                           .ppn = e.ppn,
                           .procs = o->procs ? o->procs : (uint32_t)e.pes,
                           .pes = pes > UINT32_MAX ? UINT32_MAX : (uint32_t)pes,
                           .exclusive = o->exclusive,
                           .chooses = j->only != NULL || j->meets != NULL || j->exclude != NULL ||
                                      j->avoid != NULL || o->section_count > 0 || j->takes_memory,
                           .state = STORM_WAITS,
                           .priority = o->priority,
                           .arrived = c->now,
                           .estimate = o->estimate,
                           .ends = STORM_NEVER,
                           .reserved = STORM_NEVER};
}

struct want court_want(const struct court_job *j) {
    struct want w = {.nodes = j->pub.nodes,
                     .ppn = j->pub.ppn,
                     .exclusive = j->pub.exclusive,
                     .only = j->only,
                     .meets = j->meets,
                     .exclude = j->exclude,
                     .avoid = j->avoid,
                     .sections = j->sections,
                     .section_count = j->section_count,
                     .memory = j->memory};
    for (uint32_t k = 0; k < w.section_count; k++)
        w.ppn = w.sections[k].ppn < w.ppn ? w.sections[k].ppn : w.ppn;
    return w;
}

uint64_t court_span(const struct court *c, uint64_t estimate) {
    uint64_t slots = court_sliced(c) ? c->limits.slots : 1, ticks;
    if (__builtin_mul_overflow(estimate, slots, &ticks))
        return STORM_NEVER;
    return ticks;
}

uint64_t court_span_of(const struct court *c, const struct court_job *j) {
    return court_span(c, j->pub.estimate);
}

/* ---- what runs, by expected end ---- */

uint32_t court_ends_at(const struct court *c, uint64_t ends, uint64_t tie) {
    uint32_t low = 0, high = c->running;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        const struct court_end_entry *e = &c->ends[mid];
        if (e->ends < ends || (e->ends == ends && e->tie < tie))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void ends_add(struct court *c, struct court_job *j) {
    uint32_t at = court_ends_at(c, j->pub.ends, j->tie);
    memmove(&c->ends[at + 1], &c->ends[at], sizeof c->ends[0] * (c->running - at));
    c->ends[at] = (struct court_end_entry){j->pub.ends, j->tie, place_of(c, j)};
    c->running++;
}

static void ends_remove(struct court *c, const struct court_job *j) {
    uint32_t at = court_ends_at(c, j->pub.ends, j->tie);
    ASSERT(at < c->running && c->ends[at].job == place_of(c, j));
    c->running--;
    memmove(&c->ends[at], &c->ends[at + 1], sizeof c->ends[0] * (c->running - at));
}

/* It has its nodes in this slot and runs from now on. */
void court_run(struct court *c, struct court_job *j, uint64_t started, uint32_t slot) {
    j->where = WHERE_RUNS;
    j->tie = c->ties++;
    j->pub.state = STORM_RUNS;
    j->pub.slot = slot;
    j->pub.slots = (uint64_t)1 << slot;
    j->pub.started = started;
    j->pub.ends = units_after(started, court_span_of(c, j));
    j->pub.reserved = STORM_NEVER;
    ends_add(c, j);
    c->matrix.rows[slot].jobs++;
    c->slots_changed = true;
}

/* Its PEs are for others. */
static void release(struct court *c, struct court_job *j) {
    ends_remove(c, j);
    court_unseat(c, j);
    c->matrix.rows[j->pub.slot].jobs--;
    c->slots_changed = true;
}

void court_pass_time(struct court *c, uint64_t now) {
    ASSERT(now >= c->now);
    c->now = now;
    while (c->config.ends_hold && c->running > 0 && c->ends[0].ends <= now) {
        struct court_job *j = &c->jobs[c->ends[0].job];
        release(c, j);
        j->where = WHERE_SPENT;
    }
    if (c->windows.edge <= now)
        court_windows_pass(c);
}

/* ---- the policy ---- */

static void begin_policy(struct court *c, const struct storm_policy *policy) {
    ASSERT(policy->version == STORM_POLICY_VERSION && policy->own <= COURT_OWN_MAX);
    ASSERT(policy_bytes(policy, &c->config.limits) <= self_bytes(&c->config));
    c->policy = policy;
    c->era++;
    c->broken = false;
    c->room.held = false;
    c->wake_at = STORM_NEVER;
    c->slots_changed = true;
    memset(c->self, 0, policy_bytes(policy, &c->config.limits));
    memset(c->own, 0, (size_t)c->jobs_used * COURT_OWN_MAX);
    for (uint32_t i = c->queue.first; i != COURT_NONE; i = c->jobs[i].next)
        c->jobs[i].pub.reserved = STORM_NEVER; /* what another has promised */
    if (policy->init)
        policy->init(c->self, &c->host);
    for (uint32_t i = 0; i < c->running && policy->resumed; i++)
        if (!c->jobs[c->ends[i].job].inside)
            policy->resumed(c->self, &c->host, &c->jobs[c->ends[i].job].pub);
    for (uint32_t i = c->queue.first; i != COURT_NONE && policy->arrived; i = c->jobs[i].next)
        policy->arrived(c->self, &c->host, &c->jobs[i].pub);
}

/* Estimates count differently under another policy. */
static void reckon_ends(struct court *c) {
    uint32_t count = c->running;
    c->running = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct court_job *j = &c->jobs[c->ends[i].job];
        j->pub.ends = units_after(j->pub.started, court_span_of(c, j));
        ends_add(c, j); /* only entries before this one are overwritten */
    }
}

static void take_policy(struct court *c, const struct storm_policy *policy) {
    c->policy = policy;
    reckon_ends(c);
    begin_policy(c, policy);
}

static void ask_now(struct court *c) {
    c->stirred = false;
    court_windows_start(c);
    for (;;) {
        c->deciding = true;
        court_swaps_begin(c);
        if (!c->broken)
            c->policy->decide(c->self, &c->host);
        c->deciding = false;
        court_swaps_end(c);
        c->room.held = false;
        if (!c->broken)
            break;
        take_policy(c, &policy_fcfs);
    }
    court_settle_slots(c);
}

void court_stir(struct court *c) {
    c->stirred = true;
    if (!c->held)
        ask_now(c);
}

void court_ask(struct court *c, uint64_t now, bool may) {
    court_pass_time(c, now);
    if (c->broken) /* by what it was told: whoever hears of that finds another */
        take_policy(c, &policy_fcfs);
    if (may && c->stirred)
        ask_now(c);
    else
        court_settle_slots(c);
}

void court_hold(struct court *c, uint64_t now, bool held) {
    court_pass_time(c, now);
    c->held = held;
    court_stir(c);
}

void court_change(struct court *c, uint64_t now, const struct storm_policy *policy, uint32_t slots,
                  uint64_t quantum) {
    ASSERT(slots >= 1 && slots <= c->config.limits.slots);
    court_pass_time(c, now);
    c->limits.slots = slots;
    c->limits.quantum = quantum;
    c->quantum_at = STORM_NEVER;
    take_policy(c, policy);
    court_stir(c);
}

/* ---- what happens ---- */

void court_node_pes(struct court *c, uint32_t node, uint32_t pes) {
    matrix_copy_row(&c->matrix, c->config.limits.slots, 0); /* what was reckoned there is over */
    matrix_set_pes(&c->matrix, node, pes);
}

void court_node_rank(struct court *c, uint32_t node, uint8_t rank) {
    matrix_set_rank(&c->matrix, node, rank);
}

void court_set_usable(struct court *c, uint64_t now, const struct nodeset *nodes, bool usable) {
    court_pass_time(c, now);
    court_windows_usable(c, nodes, usable);
    if (c->policy->nodes)
        c->policy->nodes(c->self, &c->host);
    court_stir(c);
}

void court_met(struct court *c, uint64_t now) {
    court_pass_time(c, now);
    c->era++;
    if (c->policy->nodes)
        c->policy->nodes(c->self, &c->host);
    court_stir(c);
}

/* Is every size a size, and none more than there is? */
static bool sized(const struct court *c, const struct court_order *o) {
    const struct storm_limits *l = &c->config.limits;
    if (o->section_count > COURT_SECTIONS_MAX || o->section_count > c->config.sections)
        return false;
    if (o->section_count == 0)
        return o->nodes >= 1 && o->ppn >= 1 && o->nodes <= l->nodes && o->ppn <= l->pes_max;
    uint64_t nodes = 0;
    for (uint32_t k = 0; k < o->section_count; k++) {
        const struct court_section *s = &o->sections[k];
        nodes += s->nodes;
        if (s->nodes < 1 || s->ppn < 1 || s->ppn > l->pes_max)
            return false;
    }
    return nodes <= l->nodes;
}

static bool names_nodes(const struct court_order *o) {
    for (uint32_t k = 0; k < o->section_count; k++)
        if (o->sections[k].only != NULL)
            return true;
    return false;
}

/* Whoever has been running has the memory, whatever the node says now. */
static bool could(const struct court *c, const struct court_order *o, bool anew) {
    const struct nodeset *only = o->only != NULL && !nodeset_empty(o->only) ? o->only : NULL;
    const struct court_window *window = o->window == 0 ? NULL : court_window_find(c, o->window);
    if (!sized(c, o))
        return false;
    bool memory = anew && takes_memory(o) && c->memory.limited > 0;
    if (matrix_flat(&c->matrix) && only == NULL && o->exclude == NULL && window == NULL &&
        !memory && !names_nodes(o))
        return true;
    struct want w = {.nodes = extent_of(o).nodes,
                     .ppn = o->ppn,
                     .sections = o->sections,
                     .section_count = o->section_count,
                     .memory = o->section_count > 0 ? 0 : o->memory};
    struct fit f;
    fit_init(&f, &w);
    for (uint32_t n = 0; n < c->config.limits.nodes && (o->section_count > 0 || f.count < w.nodes);
         n++) {
        uint32_t pes = matrix_node_pes(&c->matrix, n);
        if ((only == NULL || nodeset_has(only, n)) &&
            (window == NULL || nodeset_has(&window->nodes, n)) &&
            (o->exclude == NULL || !nodeset_has(o->exclude, n)))
            fit_tell(&f, fit_mask_by_name(&w, n) &
                             fit_mask_by_size(&w, &(struct fit_node){pes, pes,
                                                                     memory ? c->memory.has[n]
                                                                            : FIT_MEMORY_ANY}));
    }
    return fit_missing(&f) == 0;
}

bool court_could(const struct court *c, const struct court_order *o) {
    return could(c, o, true);
}

static void enter_queue(struct court *c, struct court_job *j) {
    court_enqueue(c, j);
    if (c->policy->arrived && j->where == WHERE_QUEUE)
        c->policy->arrived(c->self, &c->host, &j->pub);
}

int court_arrive(struct court *c, uint64_t now, const struct court_order *o, uint32_t *ret_job) {
    court_pass_time(c, now);
    if (!court_could(c, o))
        return -E2BIG;
    struct court_job *j = job_new(c);
    if (j == NULL)
        return -ENOSPC;
    job_fill(c, j, o);
    *ret_job = place_of(c, j);
    j->tie = o->rank != 0 ? o->rank : c->ties++;
    if (o->begin > now) {
        j->where = WHERE_LATER;
        j->later = (struct heap_item){.key = o->begin, .tie = j->tie};
        int r = heap_push(&c->later, &j->later);
        ASSERT(r == 0);
        if (c->stirred) /* a window began or ended with this moment */
            court_stir(c);
        return 0;
    }
    enter_queue(c, j);
    court_stir(c);
    return 0;
}

int court_resume(struct court *c, uint64_t now, const struct court_order *o, uint64_t started,
                 const struct nodeset *nodes, uint32_t slot, uint32_t *ret_job) {
    struct court_job *j;
    if (slot >= c->config.limits.slots || !could(c, o, false))
        return -E2BIG;
    if ((j = job_new(c)) == NULL)
        return -ENOSPC;
    court_pass_time(c, now);
    job_fill(c, j, o);
    int r = court_has_sets(c, j) ? court_seat_again(c, j, slot, nodes) : -ENOSPC;
    if (r < 0) {
        j->where = WHERE_NOWHERE;
        j->next = c->jobs_free;
        c->jobs_free = place_of(c, j);
        return r;
    }
    j->inside = court_window_is_open(c, j->window);
    court_run(c, j, started, slot);
    if (c->policy->resumed && !j->inside)
        c->policy->resumed(c->self, &c->host, &j->pub);
    *ret_job = place_of(c, j);
    court_settle_slots(c);
    return 0;
}

static void news_drop(struct court *c, const struct court_job *j) {
    uint32_t *link = &c->news_first, last = COURT_NONE;
    while (*link != place_of(c, j)) {
        last = *link;
        link = &c->jobs[*link].news_next;
    }
    *link = j->news_next;
    if (c->news_last == place_of(c, j))
        c->news_last = last;
}

void court_end(struct court *c, uint64_t now, uint32_t job) {
    ASSERT(job < c->jobs_used);
    struct court_job *j = &c->jobs[job];
    court_pass_time(c, now);
    ASSERT(j->where != WHERE_NOWHERE);
    bool told = j->where != WHERE_LATER && j->where != WHERE_BOOKED && !j->inside;
    if (j->where == WHERE_LATER)
        heap_remove(&c->later, &j->later);
    else if (j->where == WHERE_QUEUE || j->where == WHERE_BOOKED)
        court_dequeue(c, j);
    else if (j->where == WHERE_RUNS)
        release(c, j);
    j->pub.state = STORM_OVER;
    if (told && c->policy->ended)
        c->policy->ended(c->self, &c->host, &j->pub);
    if (j->in_news)
        news_drop(c, j);
    j->where = WHERE_NOWHERE;
    j->next = c->jobs_free;
    c->jobs_free = job;
    court_stir(c);
}

void court_hand_over(struct court *c, uint64_t now, uint32_t job) {
    ASSERT(job < c->jobs_used && c->jobs[job].where == WHERE_RUNS);
    court_pass_time(c, now);
    release(c, &c->jobs[job]);
    c->jobs[job].where = WHERE_SPENT;
}

void court_wants(struct court *c, uint64_t now, uint32_t job, uint32_t nodes) {
    court_pass_time(c, now);
    if (c->policy->wants)
        c->policy->wants(c->self, &c->host, &c->jobs[job].pub, nodes);
    court_stir(c);
}

void court_measured(struct court *c, uint64_t now, uint32_t job, const struct storm_measures *m) {
    court_pass_time(c, now);
    if (c->policy->measured)
        c->policy->measured(c->self, &c->host, &c->jobs[job].pub, m);
    court_stir(c);
}

void court_tick(struct court *c, uint64_t now) {
    court_pass_time(c, now);
    struct heap_item *item;
    while ((item = heap_peek(&c->later)) != NULL && item->key <= now) {
        heap_pop(&c->later);
        c->stirred = true;
        enter_queue(c, CONTAINER_OF(item, struct court_job, later));
    }
    bool woken = !c->held || c->wake_at <= now; /* else there is nothing new but a turn */
    if (c->wake_at <= now)
        c->wake_at = STORM_NEVER;
    if (c->quantum_at <= now) {
        uint64_t due = c->quantum_at;
        c->quantum_at = STORM_NEVER;
        c->deciding = true;
        if (c->policy->quantum)
            c->policy->quantum(c->self, &c->host);
        else
            court_turns(c, due);
        c->deciding = false;
    }
    if (woken)
        court_stir(c);
}

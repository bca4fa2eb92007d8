/* SPDX-License-Identifier: MIT */
/* The machine manager's step: which input is whose affair. */
#include "mm/mm.h"

#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "mm/inside.h"
#include "sched/policies.h"

void mm_config_times(struct mm_config *c) {
    c->lease_ns = 20 * NS_PER_S;
    c->absent_ns = 3 * NS_PER_S;
    c->orphan_ns = 30 * NS_PER_S;
    c->grace_ns = 5 * NS_PER_S;
    c->launch_ns = 10 * NS_PER_S;
    c->vacate_ns = 10 * NS_PER_S;
}

/* Ends that are not durable yet keep their places beside those of jobs that run. */
enum { RUNNING_SPARE = 1024, FOLLOWS_EACH = 4, AFTER_SPARE = 4096 };

enum { SECTIONS_RUNNING = 1024 }; /* of jobs that run at once and have any */

enum { SLOTS_USUAL = 4, RUNNING_SHARED = 4096 };
#define QUANTUM_USUAL_NS (50 * NS_PER_MS)
#define WAKE_LEAST_NS    (20 * NS_PER_MS)

/* Of a node. */
static uint32_t pes_most(const struct mm_config *c) {
    return c->pes_max > c->pes ? c->pes_max : c->pes;
}

/* So many jobs could run side by side. */
static uint64_t pes_in_all(const struct mm_config *c) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->limits.nodes; i++) {
        size_t at = (size_t)i * 4;
        uint32_t said = at < c->said.widths.len ? load_le32(c->said.widths.at + at) : 0;
        sum += said > c->pes ? said : c->pes;
    }
    return sum;
}

/* Where time is shared, more may run than there are processors; on large clusters that has an end. */
static uint32_t running_jobs(const struct mm_config *c) {
    uint64_t pes = pes_in_all(c), shared = pes * STORM_SLOTS_MAX;
    if (shared > RUNNING_SHARED)
        shared = RUNNING_SHARED;
    return (uint32_t)(shared > pes ? shared : pes);
}

static uint32_t running_cap(const struct mm_config *c) {
    return running_jobs(c) + RUNNING_SPARE;
}

/* Rows for every number of slots that may be asked for later. */
static struct court_config court_of(const struct mm_config *c) {
    return (struct court_config){
        .limits = {.nodes = c->limits.nodes,
                   .pes_max = pes_most(c),
                   .jobs = c->jobs_max + 1, /* one is split into others: family.c */
                   .slots = STORM_SLOTS_MAX,
                   .quantum = QUANTUM_USUAL_NS},
        .universe = limits_universe(&c->limits),
        .pes = c->pes,
        .running = running_jobs(c),
        .sections = SECTIONS_RUNNING,
        .wake_least = WAKE_LEAST_NS,
        .guest = c->guest};
}

enum { OWN_SETS = 13 };

static void carve_sets(struct mm *m, uint64_t *sets, size_t each, uint32_t universe) {
    struct nodeset *const mine[OWN_SETS] = {&m->forget_set,    &m->scratch[0], &m->scratch[1],
                                            &m->work,          &m->empty,      &m->members,
                                            &m->taken,         &m->called,     &m->owners.reclaimed,
                                            &m->owners.barred, &m->one,        &m->claimed,
                                            &m->unlent};
    size_t at = 0;
    for (uint32_t k = 0; k < COURT_SECTIONS_MAX; k++, at += each)
        nodeset_init(&m->section_sets[k], universe, sets + at);
    for (size_t i = 0; i < sizeof mine / sizeof *mine; i++, at += each)
        nodeset_init(mine[i], universe, sets + at);
    m->running_sets = sets + at;
    m->running_free_count = m->running_cap;
}

static void carve_copies(struct mm *m, uint64_t *sets, uint8_t *bodies) {
    uint32_t universe = limits_universe(&m->config.limits);
    size_t each = nodeset_bytes(universe) / 8;
    for (uint32_t i = 0; i < TRANSFER_PLACES; i++) {
        nodeset_init(&m->copies[i].set, universe, sets + 2 * i * each);
        nodeset_init(&m->copies[i].without, universe, sets + (2 * i + 1) * each);
        m->copies[i].body = bodies + (size_t)i * (m->config.limits.body_bytes / 2);
    }
    for (uint32_t i = 0; i < HOLDERS_MAX; i++)
        nodeset_init(&m->holders[i].set, universe, sets + ((size_t)2 * TRANSFER_PLACES + i) * each);
}

static void copy_roster(struct mm *m, const struct mm_config *c, uint8_t *storage) {
    uint32_t nodes = c->limits.nodes;
    roster_init(&m->roster, c->roster->prefix, nodes, storage);
    roster_init(&m->roster_next, c->roster->prefix, nodes, storage + roster_bytes(nodes));
    roster_copy(&m->roster, c->roster);
    roster_all(&m->roster, &m->taken);
    m->config.roster = NULL;
}

static void carve_plans(struct mm *m, uint32_t *plans, uint8_t *runs) {
    size_t places = (size_t)m->config.limits.nodes + 1;
    m->plan_switches = plans;
    m->plan_order = plans + places;
    m->plan_ends = plans + 2 * places;
    m->switches = plans + 3 * places;
    m->plan_runs = runs;
}

/* Files that ask for their own room. */
static void measure_parts(const struct mm_config *c, struct arena *a) {
    arena_take(a, vitals_bytes(c), 8);
    arena_take(a, needs_bytes(c), 8);
    arena_take(a, family_bytes(c), 8);
    arena_take(a, classes_bytes(), 8);
    arena_take(a, petition_bytes(), 8);
    arena_take(a, owners_bytes(c), 8);
}

static void init_parts(struct mm *m, struct arena *a) {
    vitals_init(m, a);
    needs_init(m, a);
    family_init(m, a);
    classes_init(m, a);
    petition_init(m, a);
    owners_init(m, a);
}

static struct mm *carve(const struct mm_config *c, struct arena *a) {
    uint32_t universe = limits_universe(&c->limits), cap = running_cap(c);
    size_t each = nodeset_bytes(universe) / 8;
    struct mm *m = ARENA_TAKE(a, struct mm, 1);
    struct job *jobs = ARENA_TAKE(a, struct job, c->jobs_max);
    struct wish *wishes = ARENA_TAKE(a, struct wish, c->jobs_max);
    struct sectioned *sectioned = ARENA_TAKE(a, struct sectioned, c->jobs_max);
    uint64_t *wish_sets = ARENA_TAKE(a, uint64_t, 2 * each * c->jobs_max);
    struct running *runnings = ARENA_TAKE(a, struct running, cap);
    uint32_t *running_free = ARENA_TAKE(a, uint32_t, cap);
    struct heap_item **dues = ARENA_TAKE(a, struct heap_item *, cap);
    struct await *awaits = ARENA_TAKE(a, struct await, c->jobs_max);
    struct heap_item **begins = ARENA_TAKE(a, struct heap_item *, c->jobs_max);
    uint64_t *sets = ARENA_TAKE(
        a, uint64_t, (OWN_SETS + COURT_SECTIONS_MAX + RUNNING_SETS * (size_t)cap) * each);
    uint64_t *copy_sets =
        ARENA_TAKE(a, uint64_t, ((size_t)2 * TRANSFER_PLACES + HOLDERS_MAX) * each);
    uint8_t *copy_bodies =
        ARENA_TAKE(a, uint8_t, (size_t)TRANSFER_PLACES * (c->limits.body_bytes / 2));
    uint32_t *plans = ARENA_TAKE(a, uint32_t, 4 * ((size_t)c->limits.nodes + 1));
    uint8_t *runs = ARENA_TAKE(a, uint8_t, c->limits.body_bytes / 4);
    uint16_t *by_node = ARENA_TAKE(a, uint16_t, (size_t)cap * c->limits.nodes);
    uint64_t *windows = ARENA_TAKE(a, uint64_t, STORM_WINDOWS_MAX * each);
    struct node *nodes = ARENA_TAKE(a, struct node, c->limits.nodes);
    uint8_t *rosters = arena_take(a, 2 * roster_bytes(c->limits.nodes), 8);
    uint32_t follow_cap = c->clients_max * FOLLOWS_EACH;
    struct follow *follows = ARENA_TAKE(a, struct follow, follow_cap);
    uint32_t after_cap = 2 * cap + AFTER_SPARE;
    struct after *after = ARENA_TAKE(a, struct after, after_cap);
    struct court_config court = court_of(c);
    if (arena_measuring(a)) {
        arena_take(a, court_bytes(&court), 8);
        measure_parts(c, a);
        return NULL;
    }
    memset(m, 0, sizeof *m);
    skew_init(&m->skew);
    m->config = *c;
    m->jobs = jobs;
    m->wishes = wishes;
    m->sectioned = sectioned;
    m->wish_sets = wish_sets;
    m->runnings = runnings;
    m->running_cap = cap;
    m->running_free = running_free;
    m->nodes = nodes;
    m->follows = follows;
    m->follow_cap = follow_cap;
    m->after = after;
    m->after_cap = after_cap;
    heap_init(&m->dues, dues, cap);
    m->awaits = awaits;
    m->await_cap = c->jobs_max;
    heap_init(&m->begins, begins, c->jobs_max);
    m->court = court_new(&court, &policy_fcfs, a);
    init_parts(m, a);
    carve_sets(m, sets, each, universe);
    carve_copies(m, copy_sets, copy_bodies);
    reserve_init(m, windows);
    m->running_by_node = by_node;
    for (uint32_t i = 0; i < c->limits.nodes; i++)
        nodes[i] = (struct node){.pes = c->pes};
    copy_roster(m, c, rosters);
    carve_plans(m, plans, runs);
    return m;
}

size_t mm_bytes(const struct mm_config *c) {
    struct arena a;
    arena_init(&a, NULL, 0);
    carve(c, &a);
    return arena_used(&a);
}

/* The memory must be zero: tables that are not used yet are not touched. */
struct mm *mm_new(const struct mm_config *c, struct arena *a) {
    ASSERT(is_power_of_two(c->jobs_max));
    struct mm *m = carve(c, a);
    m->next_id = 1;
    m->given_first = m->given_last = m->steps_first = m->steps_last = NO_SLOT;
    m->turns.slot = GANG_ALL;
    m->await_free = m->doomed_first = NO_SLOT;
    memset(m->requests, 0xFF, sizeof m->requests);
    memset(m->await_buckets, 0xFF, sizeof m->await_buckets);
    memset(m->follow_buckets, 0xFF, sizeof m->follow_buckets);
    m->replaying = true;
    m->config.slots = c->slots == 0 ? SLOTS_USUAL : c->slots;
    m->config.quantum_ns = c->quantum_ns == 0 ? QUANTUM_USUAL_NS : c->quantum_ns;
    m->config.policy = c->policy == NULL ? &policy_fcfs : c->policy;
    court_hold(m->court, 0, true); /* it is asked when we want */
    needs_said(m, &c->said);
    m->config.said = (struct input_traits){0};
    return m;
}

static void on_boot(struct mm *m, const struct input *in) {
    m->wall_ns = in->boot.wall_ns;
    m->epoch = in->boot.epoch;
    m->booted = wall(m);
    m->fresh = in->boot.boots <= 1;
    m->turns.since = in->now;
    m->turns.version = (uint64_t)in->boot.epoch << 32;
}

static void on_replay(struct mm *m, const struct input_replay *in) {
    if (in->body.len > 0) {
        record_replay(m, in);
        return;
    }
    m->replaying = false;
    m->dirty = true;
    policy_begin(m);
    reserve_begin(m);
    waits_timer(m);
    node_resume(m);
    start_resume(m);
    queue_resume(m);
    family_look(m);
    waits_resume(m);
    slices_resume(m);
    vitals_resume(m);
}

static void on_mail(struct mm *m, const struct input_message *in) {
    union message c;
    if (in->type == MESSAGE_OUTPUT || in->type == MESSAGE_DRAINED) {
        stream_up(m, in);
        return;
    }
    if (in->type == MESSAGE_PIDS) {
        stream_pids(m, in);
        return;
    }
    if (in->type == MESSAGE_PETITION) {
        petition_heard(m, in);
        return;
    }
    if (in->peer >= m->config.limits.nodes ||
        message_decode(in->type, in->body, m->scratch, &c) < 0)
        return;
    if (in->type == MESSAGE_ENDS)
        end_heard(m, &c.ends);
    else if (in->type == MESSAGE_HAVE)
        end_have(m, in->peer, &c.have);
    else if (in->type == MESSAGE_ARRIVED)
        files_arrived(m, in->peer, &c.arrived);
    else if (in->type == MESSAGE_OFFERED)
        files_offered(m, in->peer, &c.offered);
    else if (in->type == MESSAGE_TURNED)
        strobe_turned(m, in->peer, &c.turned);
}

static void on_timer(struct mm *m, uint32_t id) {
    if (id == TIMER_DUE)
        due_run(m);
    else if (id == TIMER_FORGET)
        end_forget_flush(m);
    else if (id == TIMER_NODES)
        node_tick(m);
    else if (id == TIMER_BEGIN)
        waits_begin(m);
    else if (id == TIMER_STALL)
        after_stalled(m);
    else if (id == TIMER_COURT)
        queue_tick(m);
    else if (id == TIMER_RESERVE)
        reserve_tick(m);
    else if (id == TIMER_VITALS)
        vitals_timer(m);
    else if (id == TIMER_QUEUE)
        m->dirty = true;
}

static void step(void *self, const struct input *in, struct effects *out) {
    struct mm *m = self;
    m->now = in->now;
    m->out = out;
    vitals_input(m, in);
    switch (in->kind) {
    case INPUT_BOOT:
        on_boot(m, in);
        break;
    case INPUT_REPLAY:
        on_replay(m, &in->replay);
        break;
    case INPUT_LOGGED:
        after_logged(m, &in->logged);
        break;
    case INPUT_FETCHED:
        if (in->fetched.ticket & INQUIRY_TICKET)
            ask_fetched(m, &in->fetched);
        else
            start_fetched(m, &in->fetched);
        break;
    case INPUT_COMPLETION:
        if (in->completion.tag & FILES_TAG)
            files_completed(m, &in->completion);
        else if (in->completion.tag != VITALS_TAG)
            start_completed(m, &in->completion);
        break;
    case INPUT_MESSAGE:
        if (in->message.link == 0)
            on_mail(m, &in->message);
        else
            client_message(m, &in->message);
        break;
    case INPUT_LINK_DOWN:
        client_down(m, in->link.link);
        break;
    case INPUT_NODES:
        files_node_down(m, in->nodes.nodes);
        node_changed(m, &in->nodes);
        files_nodes_changed(m);
        break;
    case INPUT_ROSTER:
        node_roster(m, &in->roster);
        break;
    case INPUT_TRAITS:
        needs_said(m, &in->traits);
        break;
    case INPUT_TIMER:
        on_timer(m, in->timer.id);
        break;
    default:
        break;
    }
    if (m->copy_left)
        start_crowded(m);
    petition_settle(m);
    queue_run(m);
}

struct machine mm_machine(struct mm *m) {
    return (struct machine){.self = m, .step = step};
}

void mm_counts(const struct mm *m, struct mm_counts *ret) {
    *ret = (struct mm_counts){.queued = m->queued,
                              .nodes = roster_count(&m->roster),
                              .submitted = m->submitted,
                              .ended = m->ended};
    for (uint32_t i = 0; i < m->running_peak; i++)
        ret->running += m->runnings[i].job != 0 && m->runnings[i].phase != PHASE_OVER;
    NODESET_EACH (i, &m->taken)
        ret->nodes_up += m->nodes[i].member && m->nodes[i].announced;
}

/* SPDX-License-Identifier: MIT */
/* How the nodes are, and what runs have used until now: gathered from time to time (wire/vitals.h).
 *
 * A gather is under way for a fraction of the period at most. What is known of a node stays until it tells anew or is
 * down. What a run has used is reckoned once, when a gather is over: of nodes where it has ended its end tells
 * exactly, of the others their records do. */
#include "mm/inside.h"
#include "rm/gather.h"
#include "wire/vitals.h"

#define TIMEOUT_NS (VITALS_PERIOD_NS / 2)

enum { TRIES = 1 }; /* who is missed is asked again with all the others */

static struct gather_config config_of(const struct mm_config *c) {
    return (struct gather_config){.limits = c->limits,
                                  .channel = CHANNEL_VITALS,
                                  .tries = TRIES,
                                  .timer = TIMER_GATHER,
                                  .tag = VITALS_TAG};
}

size_t vitals_bytes(const struct mm_config *c) {
    struct gather_config g = config_of(c);
    return c->limits.record_channels > CHANNEL_VITALS ? gather_bytes(&g) : 0;
}

void vitals_init(struct mm *m, struct arena *a) {
    struct gather_config g = config_of(&m->config);
    if (m->config.limits.record_channels > CHANNEL_VITALS)
        m->vitals = gather_new(&g, a);
}

void vitals_resume(struct mm *m) {
    if (m->vitals != NULL)
        effects_timer(m->out, TIMER_VITALS, m->now + VITALS_PERIOD_NS);
}

void vitals_timer(struct mm *m) {
    nodeset_and(&m->work, &m->members, &m->taken);
    gather_start(m->vitals, &m->work, TIMEOUT_NS, m->now, m->out);
    effects_timer(m->out, TIMER_VITALS, m->now + VITALS_PERIOD_NS);
}

/* ---- what runs have used ---- */

static void begin_reckoning(struct mm *m) {
    for (uint32_t i = 0; i < m->running_peak; i++) {
        struct running *r = &m->runnings[i];
        r->so_far = r->usage;
        r->so_far_nodes = 0;
        r->so_far_at = 0;
    }
}

static void reckon(struct mm *m, uint32_t node, const struct vitals_run *v) {
    struct job *j = job_find(m, run_job(v->run));
    struct running *r = j == NULL ? NULL : job_running(m, j);
    if (r == NULL || r->run != v->run || r->phase != PHASE_GOING || !nodeset_has(&r->waiting, node))
        return;
    usage_add(&r->so_far, &v->usage);
    r->so_far_nodes++;
    r->so_far_at = m->now;
}

static void reckon_all(struct mm *m) {
    begin_reckoning(m);
    NODESET_EACH (node, &m->members) {
        struct gather_record record;
        struct vitals g;
        struct vitals_run v;
        size_t at;
        if (!gather_get(m->vitals, node, &record) || vitals_read(record.bytes, &g, &at) < 0)
            continue;
        while (vitals_next(record.bytes, &at, node, &v) == 1)
            reckon(m, node, &v);
    }
}

void vitals_input(struct mm *m, const struct input *in) {
    if (m->vitals == NULL || gather_input(m->vitals, in, m->out) == GATHER_NOTHING)
        return;
    reckon_all(m);
    owners_gathered(m);
}

/* ---- telling ---- */

void vitals_of_node(const struct mm *m, uint32_t node, struct node_row *row) {
    struct gather_record record;
    struct vitals g;
    size_t at;
    if (m->vitals == NULL || !gather_get(m->vitals, node, &record) ||
        vitals_read(record.bytes, &g, &at) < 0)
        return;
    row->load_x100 = g.gauge.load_x100;
    row->memory_bytes = g.gauge.memory_bytes;
    row->memory_used = g.gauge.memory_used;
    row->seen_ns = m->wall_ns + record.at;
}

void vitals_of_job(const struct mm *m, const struct job *j, struct job_row *row) {
    const struct running *r = job_running(m, j);
    if (r == NULL || state_over((enum job_state)j->state) || r->so_far_at == 0)
        return;
    row->measured = true;
    row->usage = r->so_far;
    row->measured_ns = m->wall_ns + r->so_far_at;
    row->measured_nodes = r->so_far_nodes;
}

/* SPDX-License-Identifier: MIT */
/* Who is a member, in the model, and the heartbeat: see model_inside.h.
 *
 * As in the protocol: nodes that boot are gathered for a moment and join together, with the root's
 * variables. A node that crashes is suspect at once, so nothing names it any more, and given up
 * after the grace. A root of a later epoch needs a while to gather the survivors, and takes the
 * variables of the lowest. */
#include <string.h>

#include "base/assert.h"
#include "sim/model_inside.h"

static void copy_variables(struct model *m, uint32_t to, uint32_t from) {
    memcpy(memory_variables(m->memory, to), memory_variables(m->memory, from),
           m->config.prim.limits.variables * sizeof(uint64_t));
}

static void tell_joined(struct model *m, uint32_t node) {
    struct input in = {.kind = INPUT_JOINED, .now = m->now};
    in.joined = (struct input_joined){.epoch = m->epoch,
                                      .incarnation = (uint64_t)m->nodes[node].boots << 32,
                                      .order = m->ledger.applied};
    model_feed(m, node, &in);
}

/* The set may be the scratch: it is not used again before the root's daemon has looked at it. */
static void tell_nodes(struct model *m, const struct nodeset *set, bool up) {
    struct input in = {.kind = INPUT_NODES, .now = m->now};
    in.nodes = (struct input_nodes){.nodes = set, .up = up, .order = m->ledger.applied};
    if (m->root != NO_NODE && m->open)
        model_feed(m, m->root, &in);
}

/* ---- roots ---- */

static void open_up(struct model *m) {
    m->open = true;
    nodeset_subtract(&m->members, &m->dead); /* they were not collected */
    nodeset_clear(&m->dead);
    uint32_t donor = nodeset_first(&m->members);
    if (donor != NODESET_NONE)
        copy_variables(m, m->root, donor);
    nodeset_add(&m->members, m->root);
    tell_joined(m, m->root);
    nodeset_copy(&m->scratch, &m->members);
    tell_nodes(m, &m->scratch, true);
    ledger_opened(m);
    if (!nodeset_empty(&m->joiners) && !m->settling) {
        m->settling = true;
        model_note(m, DUE_SETTLE, m->root, 0, m->now + m->config.prim.settle_ns);
    }
}

static void boot_root(struct model *m, uint32_t node) {
    const struct prim_config *p = &m->config.prim;
    ASSERT(m->root == NO_NODE);
    m->root = node;
    m->tick = (uint64_t)m->epoch << 32;
    m->settling = false;
    model_note(m, DUE_TICK, node, 0, m->now + p->period_ns);
    if (m->epoch == 1)
        open_up(m);
    else /* survivors notice within a fraction of a period; for the dead one waits longer */
        model_note(m, DUE_OPEN, node, 0,
                   m->now + (nodeset_empty(&m->dead) ? p->attach_ns : p->collect_ns));
}

static void crash_root(struct model *m) {
    nodeset_remove(&m->members, m->root);
    nodeset_unite(&m->joiners, &m->joined); /* they have not heard of it */
    nodeset_clear(&m->joined);
    survey_closed(m);
    m->root = NO_NODE;
    m->open = false;
    ledger_closed(m);
}

/* ---- compute nodes ---- */

void census_booted(struct model *m, uint32_t node, bool root) {
    if (root) {
        boot_root(m, node);
        return;
    }
    if (node >= m->config.prim.limits.nodes)
        return; /* a seat that waits for its turn */
    nodeset_add(&m->joiners, node);
    if (!m->open || m->settling)
        return;
    m->settling = true;
    model_note(m, DUE_SETTLE, m->root, 0, m->now + m->config.prim.settle_ns);
}

void census_crashed(struct model *m, uint32_t node) {
    if (node == m->root) {
        crash_root(m);
        return;
    }
    nodeset_remove(&m->joiners, node);
    nodeset_remove(&m->joined, node);
    if (!nodeset_has(&m->members, node))
        return;
    nodeset_add(&m->dead, node);
    ledger_crashed(m, node);
    model_note(m, DUE_DOWN, node, 0, m->now + m->config.prim.grace_ns);
}

uint32_t census_unfit(struct model *m, const struct nodeset *set) {
    nodeset_copy(&m->scratch, set);
    nodeset_subtract(&m->scratch, &m->members);
    if (nodeset_empty(&m->scratch))
        nodeset_and(&m->scratch, set, &m->dead);
    return nodeset_first(&m->scratch);
}

/* These are members no more. */
static void give_up(struct model *m, const struct nodeset *gone) {
    nodeset_subtract(&m->members, gone);
    nodeset_subtract(&m->dead, gone);
    survey_given_up(m, gone);
    tell_nodes(m, gone, false);
}

static void on_down(struct model *m, const struct due *d) {
    if (!m->open || !nodeset_has(&m->dead, d->node) || m->nodes[d->node].boots != d->life)
        return; /* it has come back meanwhile, or a new root will see for itself */
    nodeset_clear(&m->scratch);
    nodeset_add(&m->scratch, d->node);
    give_up(m, &m->scratch);
}

static void on_settle(struct model *m) {
    m->settling = false;
    if (nodeset_empty(&m->joiners))
        return;
    nodeset_unite(&m->joined, &m->joiners);
    nodeset_clear(&m->joiners);
    uint64_t view_ns = cost_ns(&m->config.cost, COST_COMPARE, 0, m->config.prim.limits.nodes);
    model_note(m, DUE_JOIN, m->root, 0, m->now + view_ns);
}

static void on_join(struct model *m) {
    nodeset_and(&m->scratch, &m->joined, &m->dead); /* a former life of theirs is over */
    if (!nodeset_empty(&m->scratch))
        give_up(m, &m->scratch);
    nodeset_copy(&m->scratch, &m->joined);
    nodeset_clear(&m->joined);
    NODESET_EACH (node, &m->scratch)
        copy_variables(m, node, m->root);
    nodeset_unite(&m->members, &m->scratch);
    nodeset_and(&m->scratch2, &m->scratch, &m->listeners);
    NODESET_EACH (node, &m->scratch2)
        tell_joined(m, node);
    tell_nodes(m, &m->scratch, true);
}

/* ---- heartbeat ---- */

static void on_tick(struct model *m) {
    uint64_t wave_ns = cost_ns(&m->config.cost, COST_WAVE, 0, m->config.prim.limits.nodes);
    model_note(m, DUE_TICK, m->root, 0, m->now + m->config.prim.period_ns);
    model_note(m, DUE_WAVE, m->root, ++m->tick, m->now + wave_ns);
    m->tick_ns = m->now;
}

static void on_wave(struct model *m, uint64_t tick) {
    struct input in = {.kind = INPUT_WAVE, .now = m->now};
    nodeset_copy(&m->scratch, &m->members);
    nodeset_subtract(&m->scratch, &m->dead);
    in.wave =
        (struct input_wave){.tick = tick,
                            .nodes = nodeset_count(&m->scratch),
                            .complete = true,
                            .started_ns = m->tick_ns - (m->tick - tick) * m->config.prim.period_ns};
    m->counts.messages += 2 * (uint64_t)in.wave.nodes;
    model_feed(m, m->root, &in);
}

void census_due(struct model *m, const struct due *d) {
    switch ((enum due_kind)d->kind) {
    case DUE_SETTLE:
        on_settle(m);
        break;
    case DUE_JOIN:
        on_join(m);
        break;
    case DUE_DOWN:
        on_down(m, d);
        break;
    case DUE_OPEN:
        open_up(m);
        break;
    case DUE_TICK:
        on_tick(m);
        break;
    case DUE_WAVE:
        on_wave(m, d->number);
        break;
    case DUE_OP:
    case DUE_TIMER:
    case DUE_DURABLE:
    case DUE_SURVEY:
    case DUE_MAIL:
        assert_failed("an event of the census", __FILE__, __LINE__);
    }
}

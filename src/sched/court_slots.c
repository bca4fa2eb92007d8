/* SPDX-License-Identifier: MIT */
/* Slots: whose turn it is, who runs as well where columns are idle, rows that become one.
 *
 * Alternative scheduling: in every slot the jobs of other slots, in the order of their slots and expected
 * ends, run as well if all their columns are idle there, those of such jobs counted. It is found out anew whenever
 * something has changed: an own job always comes before a guest. */
#include "base/assert.h"
#include "sched/court_inside.h"

static uint32_t rows(const struct court *c) {
    uint32_t count = 0;
    for (uint32_t s = 0; s < c->config.limits.slots; s++)
        count += c->matrix.rows[s].jobs > 0;
    return count;
}

uint32_t court_rows(const struct court *c) {
    return rows(c);
}

/* ---- alternative scheduling ---- */

/* A new set of slots for the job, all found so far. */
static void visit(struct court *c, struct court_job *j, uint32_t slot, uint64_t *slots) {
    uint32_t scratch = c->config.limits.slots;
    if (!court_idle(c, j, scratch))
        return;
    court_occupy(c, j, scratch);
    *slots |= (uint64_t)1 << slot;
}

/* Guests of this slot: in the order of their own slots, and of their expected ends. */
static void fill(struct court *c, uint32_t slot) {
    matrix_copy_row(&c->matrix, c->config.limits.slots, slot);
    for (uint32_t from = 0; from < c->config.limits.slots; from++) {
        if (from == slot || c->matrix.rows[from].jobs == 0)
            continue;
        for (uint32_t i = 0; i < c->running; i++) {
            struct court_job *j = &c->jobs[c->ends[i].job];
            if (j->pub.slot == from)
                visit(c, j, slot, &j->found);
        }
    }
}

static uint64_t all_slots(const struct court *c) {
    uint32_t n = c->config.limits.slots;
    return n == STORM_SLOTS_MAX ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

static void find_slots(struct court *c) {
    bool local = (c->policy->flags & STORM_UNCOORDINATED) != 0;
    for (uint32_t i = 0; i < c->running; i++) {
        struct court_job *j = &c->jobs[c->ends[i].job];
        j->found = local ? all_slots(c) : (uint64_t)1 << j->pub.slot;
    }
    if (!local && (c->policy->flags & STORM_ALTERNATIVE) && rows(c) > 1)
        for (uint32_t s = 0; s < c->config.limits.slots; s++)
            if (c->matrix.rows[s].jobs > 0)
                fill(c, s);
    for (uint32_t i = 0; i < c->running; i++) {
        struct court_job *j = &c->jobs[c->ends[i].job];
        if (j->pub.slots != j->found)
            court_news(c, j, PENDING_SLOTS);
        j->pub.slots = j->found;
    }
}

/* ---- turns ---- */

void court_turn_next(struct court *c) {
    uint32_t slots = c->config.limits.slots;
    for (uint32_t i = 1; i <= slots; i++) {
        uint32_t s = (c->slot + i) % slots;
        if (c->matrix.rows[s].jobs == 0)
            continue;
        c->turn_news = c->turn_news || s != c->slot;
        c->slot = s;
        return;
    }
}

/* The turn that was due then, and those behind it. */
void court_turns(struct court *c, uint64_t due) {
    uint64_t quantum = c->limits.quantum, turns = 1 + (quantum > 0 ? (c->now - due) / quantum : 0);
    uint32_t left = rows(c) > 0 ? (uint32_t)(turns % rows(c)) : 0;
    while (left-- > 0)
        court_turn_next(c);
    if (quantum > 0)
        c->quantum_at = due + turns * quantum;
}

uint64_t court_cycle(const struct court *c) {
    uint64_t cycle = 0;
    if (c->quantum_at == STORM_NEVER || c->policy->quantum != NULL)
        return 0;
    for (uint32_t s = 0; s < c->config.limits.slots; s++)
        cycle |= (uint64_t)(c->matrix.rows[s].jobs > 0) << s;
    return cycle;
}

uint64_t court_turn_ends(const struct court *c) {
    return c->quantum_at;
}

void court_settle_slots(struct court *c) {
    if (c->slots_changed)
        find_slots(c);
    c->slots_changed = false;
    if (c->policy->flags & STORM_UNCOORDINATED) {
        c->quantum_at = STORM_NEVER;
        return;
    }
    if (c->matrix.rows[c->slot].jobs ==
        0) { /* nobody's own: whoever was a guest has a turn of his own */
        court_turn_next(c);
        c->quantum_at = STORM_NEVER;
    }
    if (rows(c) < 2)
        c->quantum_at = STORM_NEVER;
    else if (c->quantum_at == STORM_NEVER && c->limits.quantum > 0)
        c->quantum_at = c->now + c->limits.quantum;
}

/* ---- slot unification ---- */

bool court_merge(struct court *c, uint32_t into, uint32_t from) {
    if (c->matrix.rows[into].jobs == 0 || c->matrix.rows[from].jobs == 0 ||
        !matrix_disjoint(&c->matrix, into, from))
        return false;
    for (uint32_t i = 0; i < c->running; i++) {
        struct court_job *j = &c->jobs[c->ends[i].job];
        if (j->pub.slot != from)
            continue;
        court_vacate(c, j, from);
        court_occupy(c, j, into);
        c->matrix.rows[from].jobs--;
        c->matrix.rows[into].jobs++;
        j->pub.slot = into;
        court_news(c, j, PENDING_SLOTS);
    }
    c->slots_changed = true;
    return true;
}

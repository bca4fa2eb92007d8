/* SPDX-License-Identifier: MIT */
/* Judges who runs at once, where slots take turns. See audit.h.
 *
 * Whether a process is held is what the model kernels say; to which slots it belongs, what its launcher believes; how
 * many processors it has, what the manager holds for it. */
#include <inttypes.h>

#include "base/units.h"
#include "sim/audit_inside.h"

/* A turn that is missed is made up for by repeating what was lost. */
#define LATE_NS (20 * NS_PER_S)

uint32_t audit_row(const struct mm *m, uint32_t job) {
    struct mm_job j;
    if (!mm_job(m, job, &j))
        return 0;
    if (j.kind == JOB_STEP && !mm_job(m, j.inside, &j))
        return 0;
    return j.row;
}

/* Processors that a run has on its node. */
static uint32_t width(const struct mm *m, const struct sim_census *c) {
    struct mm_job j;
    uint32_t job = run_job(c->run);
    if (m == NULL || !mm_job(m, job, &j) || run_of(job, j.attempt) != c->run || !j.held)
        return c->own;
    return j.each > c->own ? j.each : c->own;
}

void audit_woke(struct audit *a, uint32_t node) {
    const struct pl *p = hall_pl(a->hall, node);
    const struct mm *m = audit_manager(a);
    struct sim_census c, first = {0}, last = {0};
    uint64_t slots = UINT64_MAX;
    uint32_t used = 0, runs = 0;
    for (uint32_t at = 0; p != NULL && sim_kernel_census(hall_kernel(a->hall, node), &at, &c);) {
        struct pl_look l;
        if (c.own == 0 || c.frozen)
            continue;
        used += width(m, &c);
        if (pl_look(p, c.run, &l) && l.slots != 0)
            slots &= l.slots;
        if (runs++ == 0)
            first = c;
        last = c;
        if (slots == 0)
            verdict_add(a->verdict, "gang",
                        "runs %" PRIx64 " and %" PRIx64
                        " are of different slots, and run at once on node %" PRIu32,
                        first.run, c.run, node);
        if (slots == 0)
            return;
    }
    if (used > a->pes && !a->loose)
        verdict_add(a->verdict, "gang",
                    "%" PRIu32 " runs at once on node %" PRIu32 " need %" PRIu32
                    " processors: %" PRIx64 " to %" PRIx64,
                    runs, node, used, first.run, last.run);
}

void audit_still(struct audit *a, uint32_t node) {
    const struct pl *p = hall_pl(a->hall, node);
    struct sim_census c;
    for (uint32_t at = 0; p != NULL && sim_kernel_census(hall_kernel(a->hall, node), &at, &c);) {
        struct pl_look l;
        if (c.own > 0 && !c.frozen && pl_look(p, c.run, &l) && l.suspended && !l.killing)
            verdict_add(a->verdict, "gang",
                        "run %" PRIx64 " is suspended, and runs on node %" PRIu32, c.run, node);
    }
}

void audit_policy(struct audit *a) {
    const struct mm *m = audit_manager(a);
    struct mm_policy p;
    if (m == NULL)
        return;
    mm_policy(m, &p);
    a->shared = a->shared || p.rows > 1;
    a->loose = a->loose || (p.policy->flags & STORM_UNCOORDINATED) != 0;
    if (p.fault[0] != '\0')
        verdict_add(a->verdict, "policy", "%s", p.fault);
}

/* While a node's launcher thinks that its user holds it, it waits for him. */
static void judge_turns(struct audit *a, uint32_t node, uint64_t late) {
    const struct pl *p = hall_pl(a->hall, node);
    struct sim_census c;
    for (uint32_t at = 0; p != NULL && sim_kernel_census(hall_kernel(a->hall, node), &at, &c);) {
        struct pl_look l;
        if (c.own > 0 && c.frozen && pl_look(p, c.run, &l) && !l.suspended &&
            hall_now(a->hall) > c.frozen_at + late)
            verdict_add(a->verdict, "gang",
                        "run %" PRIx64 " on node %" PRIu32 " has had no turn for %" PRIu64 " s",
                        c.run, node, (hall_now(a->hall) - c.frozen_at) / NS_PER_S);
    }
}

void audit_turns(struct audit *a) {
    const struct mm *m = audit_manager(a);
    struct mm_policy p;
    if (m == NULL)
        return;
    mm_policy(m, &p);
    for (uint32_t i = 0; i < a->nodes; i++)
        judge_turns(a, i, LATE_NS + p.quantum_ns * (p.rows + 2));
}

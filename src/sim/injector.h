/* SPDX-License-Identifier: MIT */
/* Injects the faults of one run, each aimed at a field of the coverage table.
 *
 * A fault waits until the root shows the phase it is aimed at (or until its patience is over), then
 * hits a node of the wanted role, or any if there is none; what was really hit is counted. Crashed
 * nodes come back: at once, after a while, or much later.
 *
 * Some crashes come in company, since the worst histories need two faults at once. When a root
 * dies, some of its links may break first, with a decision on the way, so that it reaches a part of
 * the nodes only. When a node dies, its parent may be paused, so that what the dead one has asked
 * for comes up after its next life has begun. */
#pragma once

#include "base/random.h"
#include "sim/coverage.h"
#include "sim/history.h"
#include "sim/scenario.h"

struct injector {
    struct world *world;
    struct history *history;
    const struct scenario *scenario;
    struct random random;
    struct coverage *coverage;
    uint64_t next_cell; /* of the rotation */
    uint32_t injected;  /* of the planned ones */
    bool aiming;
    bool ready; /* the phase is there */
    struct coverage_cell aim;
    uint64_t act_at;       /* when to aim next, or when patience ends */
    uint64_t heal_at;      /* when the last fault with an end has ended */
    bool lurking;          /* for a node that has just asked for something */
    uint32_t prey;         /* it has; NO_NODE if not yet */
    uint32_t ambushed;     /* it crashes while its parent is paused, NO_NODE if none */
    uint64_t ambush_at;    /* when; while lurking: when to give up */
    bool doomed;           /* the root dies at its next decision */
    bool dooming;          /* there is one */
    uint64_t doom_at;      /* at this time, decision or not */
    uint32_t *outstanding; /* by node, as last seen */
    uint64_t *power_at;    /* by node: when to power it on, 0 if not planned */
    uint64_t power_next;
};

void injector_init(struct injector *i, const struct scenario *s, struct world *w, struct history *h,
                   struct coverage *c);
void injector_fini(struct injector *i);

/* After a step of the node. */
void injector_observe(struct injector *i, uint32_t node, const struct prim_status *status);

/* Between two steps: powers on, aims, hits. */
void injector_act(struct injector *i);

/* All planned faults are done. */
bool injector_finished(const struct injector *i);

/* When there is something to do next. */
uint64_t injector_next(const struct injector *i);

/* Powers every node on that is down. */
void injector_heal(struct injector *i);

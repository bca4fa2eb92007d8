/* SPDX-License-Identifier: MIT */
/* Everything about one run of a campaign of files that is drawn from its seed: how many movers, how fast
 * everything is, what is sent to whom in which shape, and how much goes wrong. */
#pragma once

#include "base/random.h"
#include "sim/yard.h"

enum { PLAN_CARGOES_MAX = 4 };

struct files_plan {
    struct yard_config yard;
    uint32_t cargoes;
    struct cargo_config cargo[PLAN_CARGOES_MAX];
    uint32_t like[PLAN_CARGOES_MAX]; /* an earlier one that it resembles; itself: none */
    uint32_t cached_percent;         /* of pieces that are here before, on some nodes */
    bool single;                     /* one transfer at a time: places for takers are few */
    uint32_t rounds;                 /* with faults; one without follows */
    uint32_t faults;                 /* in each */
    uint64_t fault_gap_ns;           /* on average */
    uint32_t ill_percent;            /* of depots */
    uint64_t late_ns; /* movers are started so long after an order, at most; 0: they run */
};

void files_plan_draw(struct files_plan *p, uint64_t seed);

/* One transfer; `storage` of so many bytes is for its set, and the switches of all nodes. */
size_t files_plan_storage(const struct files_plan *p);
void files_plan_shipment(const struct files_plan *p, struct stock *f, struct random *r,
                         void *storage, struct shipment *ret);

/* What ails a depot that is not well. */
void files_plan_ills(struct random *r, bool source, uint32_t pieces, struct sim_depot_ills *ret);

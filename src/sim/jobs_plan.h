/* SPDX-License-Identifier: MIT */
/* Everything about one run of a campaign of jobs that is drawn from its seed: sizes, speeds, how much is
 * asked for and how much goes wrong; and what customers want. */
#pragma once

#include "base/random.h"
#include "sim/book.h"
#include "sim/hall.h"

struct jobs_plan {
    struct hall_config hall;
    uint32_t orders;  /* in all */
    uint32_t errands; /* of a customer at a time */
    uint64_t pause_ns;
    uint32_t faults;
    uint64_t fault_gap_ns; /* on average */
    uint32_t ambushes;     /* of launches */
};

void jobs_plan_draw(struct jobs_plan *p, uint64_t seed);

/* What a customer asks for next. */
void jobs_plan_order(const struct jobs_plan *p, uint32_t customer, struct random *r,
                     struct order *ret);

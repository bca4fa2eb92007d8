/* SPDX-License-Identifier: MIT */
/* Everything about one run of a campaign of jobs that is drawn from its seed: sizes, speeds, how much is
 * asked for and how much goes wrong; and what customers want. */
#pragma once

#include "base/random.h"
#include "sim/book.h"
#include "sim/hall.h"
#include "sim/jobs_trial.h"

struct jobs_plan {
    struct hall_config hall;
    uint32_t orders;  /* in all */
    uint32_t errands; /* of a customer at a time */
    uint64_t pause_ns;
    uint32_t faults;
    uint64_t fault_gap_ns;  /* on average */
    uint32_t ambushes;      /* of launches */
    bool shared;            /* time is, or may be */
    uint32_t changes;       /* of the policy, on the way */
    uint64_t change_gap_ns; /* on average */
};

void jobs_plan_draw(struct jobs_plan *p, uint64_t seed, const struct jobs_terms *terms);

/* Another policy and its slots and quantum; where some were asked for, these. */
void jobs_plan_policy(const struct jobs_plan *p, const struct jobs_terms *terms, struct random *r,
                      struct hall_config *ret);

/* What a customer asks for next. */
void jobs_plan_order(const struct jobs_plan *p, uint32_t customer, struct random *r,
                     struct order *ret);

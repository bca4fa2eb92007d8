/* SPDX-License-Identifier: MIT */
/* One run of a campaign of jobs: one seed, a whole cluster with customers, from power-on to the verdict.
 *
 * Stages: jobs and faults; then no more of either, everything is powered on, what was drained or suspended
 * goes on, and all must be over within a bound; then the auditor judges. He also looks on after every
 * step. */
#pragma once

#include "sim/trial.h"
#include "storm/policy.h"

/* Under which policy, with how many slots and which quantum. What is 0 is drawn from the seed. */
struct jobs_terms {
    const struct storm_policy *policy; /* NULL: first come, first served */
    bool any;                          /* any of them, and another now and then */
    uint32_t slots;
    uint64_t quantum_ns;
};

/* `asked` are jobs, `done` those that ended so. `trace`: where to print what happened, or NULL. */
void jobs_trial_run(uint64_t seed, const struct jobs_terms *terms, struct trial_result *ret,
                    FILE *trace);

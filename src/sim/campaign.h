/* SPDX-License-Identifier: MIT */
/* Many seeds, shared among processes; results in the order of the seeds.
 *
 * A process that dies takes only its current seed with it: that seed has failed, another process
 * goes on behind it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/jobs_trial.h"

/* What is simulated: the primitives alone; whole clusters that run jobs; movers of files. */
enum campaign_kind { CAMPAIGN_PRIMITIVES, CAMPAIGN_JOBS, CAMPAIGN_FILES };

struct campaign_config {
    uint64_t seed_first;
    uint64_t seed_count;
    uint32_t processes; /* 0: as many as there are processors; 1: this one alone */
    enum campaign_kind kind;
    struct jobs_terms terms; /* of jobs */
    bool verbose;            /* a line for every seed */
    bool cover;              /* an empty field of the coverage table is a failure */
};

/* Returns how many seeds failed; one more if coverage is demanded and incomplete. */
int campaign_run(const struct campaign_config *config, FILE *out);

/* One seed of that kind, with its whole history if `trace`. Returns 0 or 1. */
int campaign_seed(const struct campaign_config *config, uint64_t seed, bool trace, FILE *out);

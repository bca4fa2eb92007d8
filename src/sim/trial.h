/* SPDX-License-Identifier: MIT */
/* One run of a campaign: one seed, from power-on to the verdict.
 *
 * Stages: requests and faults; then no more of either, everything is powered on and must settle
 * within a bound; then the root's closing requests, which must be done; then the checker judges the
 * history. Virtual time and the number of events are bounded in every stage: what exceeds them is a
 * violation. */
#pragma once

#include <stdio.h>

#include "sim/coverage.h"
#include "sim/verdict.h"

struct trial_result {
    uint64_t seed;
    uint64_t hash;
    uint32_t nodes;
    uint32_t asked;   /* operations */
    uint32_t done;    /* of them, with that outcome */
    uint32_t faults;  /* injected as planned */
    uint32_t lives;   /* incarnations */
    uint64_t steps;   /* of machines */
    uint64_t time_ns; /* virtual */
    struct coverage coverage;
    struct verdict verdict;
};

/* `trace`: where to print the history, or NULL. */
void trial_run(uint64_t seed, struct trial_result *ret, FILE *trace);

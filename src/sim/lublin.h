/* SPDX-License-Identifier: MIT */
/* A workload drawn from the model of Lublin and Feitelson ("The workload on parallel supercomputers", 2003), with
 * the parameters that they found for batch jobs.
 *
 * Sizes are serial, powers of two or neither, two-stage uniform in their logarithm; the logarithm of run times is
 * hyper-gamma, and longer for larger jobs; gaps between arrivals are gamma in their logarithm and follow the cycle
 * of the day. The model has no estimates: a job's is its run time. At last arrivals are stretched so that the load
 * (processors times run time, over processors of the machine times the span of arrivals) is the one wanted.
 *
 * The same seed gives the same jobs. Floating point: another C library may round a job differently. */
#pragma once

#include <stdint.h>

#include "sim/workload.h"

struct lublin_config {
    uint64_t jobs;
    uint32_t pes;
    uint64_t seed;
    uint32_t load_permille; /* 900: 0.9; 0: as the model has it */
};

/* -ENOMEM. */
int lublin_draw(const struct lublin_config *c, struct workload *w);

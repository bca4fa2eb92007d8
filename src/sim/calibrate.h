/* SPDX-License-Identifier: MIT */
/* Fits the cost model to the real protocol.
 *
 * Small clusters are simulated under the links with the machines that run on real nodes; what they
 * take and the arithmetic does not explain becomes a constant and a term for every level. The
 * residuals say how well the model then describes what it was fitted to. */
#pragma once

#include <stdint.h>

#include "sim/cost.h"

struct calibration {
    uint32_t residual_permille[COST_KINDS]; /* the worst of the sizes */
    uint64_t steps;                         /* of machines, spent on it */
};

/* The node counts that are simulated. */
enum { CALIBRATION_SIZES = 3 };
extern const uint32_t calibration_sizes[CALIBRATION_SIZES];

/* Sets the cost's fits; `ret` may be NULL. -ENOMEM or -ETIME: see measure_run(). */
int cost_calibrate(struct cost *c, uint64_t seed, struct calibration *ret);

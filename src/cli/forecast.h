/* SPDX-License-Identifier: MIT */
/* What the simulator expects of clusters of real processes on this machine.
 *
 * Calibrated once: from figures of the machine (os/gauge.h) and real runs of 8 and of 32 nodes. */
#pragma once

#include "os/crew.h"
#include "sim/driver.h"

struct forecast;

/* Measures; NULL, with the reason on stderr, if that is not possible here. */
struct forecast *forecast_new(enum transport links);
void forecast_free(struct forecast *f); /* NULL is fine */

/* The median latency of such operations; 0 if there is no forecast. */
uint64_t forecast_latency(const struct forecast *f, const struct tree *tree,
                          const struct driver_task *task);

/* A bare fan-out to so many processes, likewise. If it is not what is measured now, then the
 * machine has other things to do than when its measure was taken, or has no longer. */
uint64_t forecast_fanout(const struct forecast *f, uint32_t nodes);

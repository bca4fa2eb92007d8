/* SPDX-License-Identifier: MIT */
/* Says what an operation takes on a cluster whose nodes are processes of this machine.
 *
 * It simulates them on a link model made from figures that os/gauge.h took of the machine, once:
 * the same for every operation and shape. What a gauge cannot see from outside, the work of our
 * own loop and machines, is fitted to one or two small clusters that really ran; what is then said
 * about others is a prediction. */
#pragma once

#include <stdint.h>

#include "os/gauge.h" /* its figures only: the simulator measures nothing */
#include "sim/driver.h"
#include "sim/world.h"

struct predictor {
    struct link_model model;
    /* Waking costs more where more processes push each other out of the caches. */
    uint64_t wake_few_ns, wake_many_ns;
};

/* System calls cost what they were seen to cost. Waking a process, after which everything runs
 * slowly for a while, costs what makes the predicted fan-outs the measured ones. Processors that
 * others keep busy do not count. -EINVAL if a figure is missing; -ENOMEM. */
int predictor_init(struct predictor *p, const struct gauge *gauge);

/* For a cluster of that many processes. */
struct link_model predictor_model(const struct predictor *p, uint32_t nodes);

/* The median latency of a task's operations. -ENOMEM or -ETIME: see measure_run(). */
int predictor_latency(const struct predictor *p, const struct tree *tree,
                      const struct driver_task *task, uint64_t *ret_ns);

/* A bare fan-out, no primitives: one small message from one process to each of `nodes` others, an
 * answer from each. -ENOMEM. */
int predictor_fanout(const struct predictor *p, uint32_t nodes, uint64_t *ret_ns);

/* One operation that was measured on a real cluster. */
struct predictor_point {
    struct driver_task task;
    uint64_t measured_ns;
};

/* Sets what a step costs so that the predictions for this tree come as close as can be to what was
 * measured: their sums agree. If even steps that cost nothing are too slow, all costs of the
 * processor are scaled down. -EINVAL if nothing was measured; -ENOMEM, -ETIME. */
int predictor_fit(struct predictor *p, const struct tree *tree,
                  const struct predictor_point *points, uint32_t count);

/* After that, with another cluster, several times as large: sets what waking costs among many
 * processes. Ours fill the caches more than those of a bare fan-out do. Fails alike. */
int predictor_fit_growth(struct predictor *p, const struct tree *tree,
                         const struct predictor_point *points, uint32_t count);

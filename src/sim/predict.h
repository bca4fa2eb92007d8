/* SPDX-License-Identifier: MIT */
/* What the simulator expects a cluster to take whose nodes are processes of this machine.
 *
 * The link model comes from figures that os/gauge.h took of the machine, once: the same model for
 * every operation, size and shape. What a gauge cannot see from outside, the work of our own loop
 * and machines, is fitted to one small cluster that really ran; what is then said about others is a
 * prediction. */
#pragma once

#include <stdint.h>

#include "sim/driver.h"
#include "sim/world.h"

/* The median latency of a task's operations. -ENOMEM or -ETIME: see measure_run(). */
int predict_latency(const struct link_model *model, const struct tree *tree,
                    const struct driver_task *task, uint64_t *ret_ns);

/* A bare fan-out, no primitives: one small message from one process to each of `nodes` others, an
 * answer from each. -ENOMEM. */
int predict_fanout(const struct link_model *model, uint32_t nodes, uint64_t *ret_ns);

/* One operation that was measured on a real cluster. */
struct predict_point {
    struct driver_task task;
    uint64_t measured_ns;
};

/* Sets cpu_step_ns so that the predictions for this tree come as close as can be to what was
 * measured: their sums agree. If even a step that costs nothing is too much, all costs of the
 * processor are scaled down instead. -EINVAL if nothing was measured. */
int predict_fit(struct link_model *model, const struct tree *tree,
                const struct predict_point *points, uint32_t count);

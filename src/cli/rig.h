/* SPDX-License-Identifier: MIT */
/* Runs a driver's tasks on real processes of this machine: the counterpart of sim/measure.h.
 *
 * The driver sits at the root as it does in the simulator and takes the time with the root's own
 * clock: from the turn of its loop in which it asks to the turn in which it hears. */
#pragma once

#include <stdint.h>

#include "os/crew.h"
#include "sim/measure.h"

struct rig_config {
    struct tree tree;
    enum transport links;
    uint64_t period_ns; /* of the heartbeat */
    const struct driver_task *tasks;
    uint32_t task_count;
    uint64_t idle_ns; /* after the tasks: how long to watch the idle cluster; 0: not at all */
};

/* What the idle cluster costs. */
struct rig_idle {
    uint64_t cpu_ns; /* of all node processes, the root's included, in ... */
    uint64_t span_ns;
    uint64_t memory_median, memory_max; /* private bytes of a node's process */
    uint64_t memory_root;
};

/* -errno, with the reason on stderr; -ETIME if it does not come to an end. `ret_idle` may be NULL.
 */
int rig_run(const struct rig_config *config, struct measure *ret, struct rig_idle *ret_idle);

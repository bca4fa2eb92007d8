/* SPDX-License-Identifier: MIT */
/* The driver: a daemon at the root that runs a list of tasks and takes the time.
 *
 * When all nodes are up and it has been let go, it does one task after the other: so many
 * operations of a kind, each asked for when the one before it is finished (that measures latency),
 * or several at once (that measures bandwidth). A task may also wait for heartbeat waves. Everybody
 * else is idle. The driver does not know at which depth it is simulated. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/limits.h"
#include "machine/machine.h"

struct driver_task {
    struct primitive request; /* its tag does not matter; if the set is NULL: all compute nodes */
    uint32_t runs;            /* at least 1 */
    uint32_t in_flight;       /* operations at once; 0 and 1 are the same */
    bool wave;                /* no request: `runs` complete heartbeat waves */
};

struct driver_result {
    uint64_t begin_ns; /* when the task began and ended, in virtual time */
    uint64_t end_ns;
    uint64_t *latency_ns; /* one for each run */
    uint32_t finished;
    uint32_t outcomes[OUTCOMES];
};

struct driver_config {
    struct limits limits;
    uint32_t root;      /* the seat that the driver sits on */
    uint64_t period_ns; /* of the heartbeat */
    const struct driver_task *tasks;
    uint32_t task_count;
};

struct driver;

/* NULL if there is no memory. The tasks must stay where they are. */
struct driver *driver_new(const struct driver_config *config);
void driver_free(struct driver *d);

/* Makes the daemon of any node, as the worlds' configurations want it; the context is the driver.
 */
struct machine driver_daemon(void *context, uint32_t node, struct globals globals);

/* The task it is at; the number of tasks when all are finished, NO_TASK before the first. */
#define NO_TASK UINT32_MAX
uint32_t driver_task(const struct driver *d);
bool driver_finished(const struct driver *d);
const struct driver_result *driver_result(const struct driver *d, uint32_t task);

/* When all nodes were up for the first time; 0 before. */
uint64_t driver_up_ns(const struct driver *d);

/* It may begin. */
void driver_let_go(struct driver *d);

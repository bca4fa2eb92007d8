/* SPDX-License-Identifier: MIT */
/* Runs a driver's tasks on a cluster of some size, shape and network, at one of two depths.
 *
 * Under the links the real primitives run over simulated links; under the primitives a cost model
 * answers the requests. The times are virtual, so the same configuration always measures the same.
 */
#pragma once

#include <stdint.h>

#include "sim/cost.h"
#include "sim/driver.h"

enum depth { DEPTH_LINKS, DEPTH_PRIMITIVES, DEPTHS };

struct measure_config {
    enum depth depth;
    struct tree tree;
    struct link_model link;
    const struct cost *cost; /* under the primitives */
    uint64_t seed;
    const struct driver_task *tasks;
    uint32_t task_count;
};

struct measure_task {
    uint64_t *latency_ns; /* `runs` of them, ascending */
    uint32_t runs;
    uint32_t done;     /* with the outcome DONE */
    uint64_t span_ns;  /* from the first request to the last completion */
    uint64_t messages; /* of all nodes, in that time */
    uint64_t steps;    /* of machines */
};

struct measure {
    struct measure_task *tasks;
    uint32_t task_count;
    uint64_t up_ns; /* until all nodes had joined */
    uint64_t end_ns;
    uint64_t steps;
    uint64_t messages;
};

/* -ENOMEM; -ETIME if it does not come to an end, which is a bug in the protocol. */
int measure_run(const struct measure_config *config, struct measure *ret);
void measure_fini(struct measure *m);

uint64_t measure_median(const struct measure_task *t);

const char *depth_name(enum depth depth);

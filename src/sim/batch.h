/* SPDX-License-Identifier: MIT */
/* A workload under a policy, in virtual time: the trace simulator.
 *
 * The machine has processors of one kind, each a node of its own to the court. Events of the same second are taken
 * in this order: submissions, ends (as the jobs started), times the policy has asked for; the policy is asked after
 * each. A job that ends exactly when its estimate does counts as ended for a submission in the same second.
 *
 * Where time is sliced, jobs run at a rate: the share of the turns that they have, less what switching costs. That
 * is exact but for the last round of a job, and needs no event for a turn. Without coordination a job runs at the
 * pace of its most crowded processor. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nodeset.h"
#include "sim/workload.h"
#include "storm/policy.h"

#define BATCH_TICKS ((uint64_t)1000000) /* in a second */

/* Processors that are reserved, for nobody; seconds, from then until before then. */
struct batch_window {
    uint32_t first, last;
    uint64_t from, to;
};

struct batch_config {
    uint32_t pes;
    const struct storm_policy *policy;
    uint32_t slots;          /* for policies that slice time */
    uint64_t quantum_ns;     /* and the length of a slice, */
    uint64_t switch_cost_ns; /* of which so much is lost */
    const struct batch_window *windows;
    uint32_t window_count;
    /* Somebody who wants to know; NULL: nobody. Jobs are named by their place in the workload. */
    void *context;
    void (*started)(void *context, size_t job, uint64_t tick, const struct nodeset *pes);
    void (*ended)(void *context, size_t job, uint64_t tick);
};

/* In ticks. */
struct batch_times {
    uint64_t start, end;
};

struct batch_result {
    struct batch_times *times; /* by job, to be freed */
    uint64_t decisions;        /* how often the policy was asked */
    uint32_t queue_most, running_most;
    char fault[200]; /* what the policy did wrong; empty: nothing */
};

/* -ENOMEM; -EINVAL, -EEXIST, -ENOSPC: of a window, as court_window_add(). */
int batch_run(const struct workload *w, const struct batch_config *c, struct batch_result *ret);

/* SPDX-License-Identifier: MIT */
/* Jobs of a trace: read from the Standard Workload Format (SWF), or drawn from a model (lublin.h).
 *
 * Times are whole seconds. How a line becomes a job (the last two rules are those of the simulator pyss, which
 * results that we compare with need):
 *   size      the processors requested (field 8), else those allocated (5)
 *   estimate  the time requested (9); none: the run time
 *   run       cut at the time requested, as a machine that holds to it would; a job that was cut has its run time as
 *             estimate: that is what its user would have had to ask for
 *   never ran (no run time, or no size at all): a second, as estimate too, on what was allocated, at least on
 *             one processor. It waited in the queue, so it counts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct workload_job {
    uint64_t id;
    uint64_t submit, run, estimate;
    uint32_t pes;
    uint32_t user;
    int32_t status; /* field 11 */
    bool cut;       /* it ran longer than requested */
};

struct workload {
    struct workload_job *jobs;
    size_t count, cap;
    uint64_t lines;
    uint64_t never_ran;
    uint64_t cut;       /* ran longer than requested */
    uint64_t malformed; /* lines that are no jobs */
    uint32_t pes;       /* of the machine, as the header has it; 0: it does not say */
    bool unsorted;
};

enum { WORKLOAD_WHY_MAX = 120 };

void workload_init(struct workload *w);
void workload_fini(struct workload *w);

/* The next line of an SWF file, without its end. -EINVAL: it is malformed, and `why` says in words how; it is
 * passed over. -ENOMEM. */
int workload_line(struct workload *w, struct bytes line, char why[WORKLOAD_WHY_MAX]);

/* -ENOMEM. */
int workload_add(struct workload *w, const struct workload_job *j);

/* By submission, and as they came. -ENOMEM. */
int workload_sort(struct workload *w);

/* Jobs that want more than the machine has want all of it; how many those are. */
size_t workload_fit(struct workload *w, uint32_t pes);

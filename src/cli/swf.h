/* SPDX-License-Identifier: MIT */
/* Jobs that have run, as the Standard Workload Format has them: storm ps --swf, and the summary of storm replay.
 *
 * A job arrives when it was submitted, or when it might begin if that was later. Times are whole seconds since the first
 * arrival, each moment rounded for itself; with a scale they are so many times as long, which is how a trace that was
 * replayed faster gets its own time again.
 *
 * Used memory is to be a mean over processors. What is known is that of the largest process: it counts for all of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/contact.h"
#include "cli/jobs.h"

#define SWF_SCALE_ONE ((uint64_t)1000)

struct swf_job {
    uint32_t job;
    uint64_t arrival_ns; /* of the calendar */
    uint64_t submit, start, end;
    bool ran;
    bool interactive;
    uint32_t pes;
    uint64_t limit;     /* 0: none */
    int status;         /* field 11 */
    bool measured;      /* what follows is known */
    uint64_t cpu;       /* of a processor that it held */
    uint64_t memory_kb; /* 0: that is not */
};

struct swf {
    struct swf_job *jobs; /* by arrival */
    size_t count;
    uint64_t origin_ns; /* the first arrival */
    uint64_t open;      /* jobs that are not over are left out */
};

struct swf_config {
    const struct joblist *only; /* NULL: all */
    uint32_t nodes, node_pes;   /* of the cluster; 0: not known */
    uint64_t scale_x1000;
};

/* "60", "0.5". */
bool swf_scale(const char *text, uint64_t *ret_x1000);

/* -ENOMEM, -EBADMSG. */
int swf_collect(struct swf *s, struct bytes rows, const struct swf_config *c);
void swf_fini(struct swf *s);

void swf_print(const struct swf *s, const char *cluster, const struct swf_config *c, FILE *out);

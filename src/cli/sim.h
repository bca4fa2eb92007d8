/* SPDX-License-Identifier: MIT */
/* storm sim: a trace of jobs under scheduling policies, in virtual time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/batch.h"
#include "sim/workload.h"

enum { SIM_PERCENTILES = 4, SIM_PATH_MAX = 4096 };

extern const unsigned sim_percentiles[SIM_PERCENTILES]; /* 50, 90, 95, 99 */

/* Of one quantity over all jobs. */
struct sim_spread {
    double mean, most;
    double at[SIM_PERCENTILES];
};

/* What a schedule is like; times in seconds. */
struct sim_stats {
    struct sim_spread wait, response,
        slowdown; /* bounded: no run time counts as less than ten seconds */
    double plain_slowdown, plain_slowdown_most; /* not bounded */
    double utilisation; /* of all processors, from the first submission to the last end */
    double makespan;    /* that time */
};

/* What was asked for. */
struct sim_request {
    const char *trace; /* a file, "-": standard input, NULL: a model */
    const char *name;  /* of the workload */
    bool strict, json;
    uint64_t lublin, seed;
    uint32_t load_permille;
    const char *out;
    struct batch_config batch;
};

/* sim_trace.c: reads an SWF file, plain or compressed. 0, or the exit status after complaining. */
int sim_read(const struct sim_request *q, struct workload *w);

/* sim_stats.c: -ENOMEM. */
int sim_reckon(const struct workload *w, const struct batch_result *r, uint32_t pes,
               struct sim_stats *ret);
void sim_print_head(FILE *out);
void sim_print_row(const char *policy, const struct sim_stats *s, FILE *out);
void sim_print_json(const struct sim_request *q, const struct workload *w,
                    const struct batch_result *r, const struct sim_stats *s, double seconds,
                    FILE *out);

/* sim_out.c: runs it again and writes jobs.csv, schedule.json and schedule.svg into the folder. 0, or the exit
 * status after complaining. */
int sim_write(const struct sim_request *q, const struct workload *w, const struct batch_result *r,
              const struct sim_stats *s, double seconds);

/* Is one of the policies in the arguments a file? The first such. */
bool sim_policy_file(int argc, char **argv, char path[SIM_PATH_MAX]);

/* With a policy that was loaded: the one whose name has a slash. NULL: there is none. */
int sim_main_with(int argc, char **argv, const struct storm_policy *guest);

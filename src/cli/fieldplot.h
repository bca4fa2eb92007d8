/* SPDX-License-Identifier: MIT */
/* The figures of the CARMI paper's section 4, of runs in virtual time: SVG files in a folder. */
#pragma once

#include "sim/fieldwork.h"

enum { FIELDPLOT_RUNS_MAX = 1000, FIELDPLOT_LEVELS = 24 };

struct fieldplot_step {
    uint64_t mean_ns, deviation_ns;
};

struct fieldplot_level {
    uint64_t bound_ns, run_ns;             /* a cycle, by theory and in runs */
    uint32_t bound_permille, run_permille; /* efficiency */
};

struct fieldplot_run {
    uint64_t ns, workers_x1000; /* on average */
};

struct fieldplot {
    struct fieldwork_plan plan; /* of the run of figure 9 */
    struct fieldplot_step steps[FIELDWORK_STEPS_MAX];
    struct fieldplot_level levels[FIELDPLOT_LEVELS + 1]; /* by workers */
    struct fieldplot_run runs[FIELDPLOT_RUNS_MAX];
    uint32_t run_count;
};

/* wodi-steps.svg (figure 6), wodi-time.svg (7), wodi-efficiency.svg (8), wodi-run.svg (9), wodi-runs.svg (10). 0 or -errno. */
int fieldplot_write(const struct fieldplot *p, const char *folder);

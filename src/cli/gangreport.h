/* SPDX-License-Identifier: MIT */
/* What `storm bench gang` has measured, and how it is shown: tables, JSON lines, a plot. */
#pragma once

#include <stdio.h>

#include "cli/gangwork.h"

enum gangexperiment {
    EXPERIMENT_QUANTUM, /* figure 3 of the STORM paper */
    EXPERIMENT_SHARING, /* gangs against plain time sharing */
    EXPERIMENT_MPL,     /* figure 5 */
    EXPERIMENT_NODES,   /* figure 4 */
    EXPERIMENTS
};

const char *gangexperiment_name(enum gangexperiment e);
bool gangexperiment_find(const char *name, enum gangexperiment *ret);

enum { GANGROW_RUNS = 100 };

/* Times are medians; all jobs of a row did the same work. */
struct gangrow {
    enum gangexperiment experiment;
    enum gangkernel kernel;
    uint32_t nodes, pes, jobs, runs;
    uint64_t quantum_ns;
    bool simulated;                        /* by the cost model: only `slower` says something */
    uint64_t alone_ns, turns_ns, plain_ns; /* of all jobs; plain: 0 if not measured */
    int64_t slower;             /* in turns, than one after the other: thousandths of a percent */
    int64_t each[GANGROW_RUNS]; /* the same of each run */
    int64_t clean_slower;       /* the same from what jobs did a second while nothing was stolen */
    uint32_t clean_looks;       /* at those times, of whichever had fewer; 0: there were none */
    uint64_t
        away_ns; /* of a processor in a switch, from the one process until the other runs; 0: not known */
    int64_t
        cpu_more; /* processor time of the work in turns, than alone: thousandths of a percent */
    uint32_t share_least, share_most; /* of processes, in thousandths of the mean; 0: not known */
    uint64_t switch_median_ns, switch_99_ns; /* 0: not known */
    uint64_t floor_median_ns, floor_99_ns;   /* of the bare program (gangfloor.h); 0: not known */
    int64_t floor_slower;                    /* the same; as `slower` */
    uint32_t stolen; /* of our processors' time, by other guests: in thousandths */
};

/* The slowdown, from its parts: what a switch takes from each processor, and by how much the work itself takes longer because
 * caches are cold. Who else uses the machine is in neither. Thousandths of a percent; only if away_ns is known. */
int64_t gangreport_parts(const struct gangrow *r);

/* What a switch costs: lost in each turn, in nanoseconds; 0: no row says so. Of the rows with this kernel. */
uint64_t gangreport_switch_cost(const struct gangrow *rows, uint32_t count, enum gangkernel k);

/* The smallest quantum whose rows with this kernel, and all with longer ones, are slowed down by 2 % at most; NULL: none. */
const struct gangrow *gangreport_smallest(const struct gangrow *rows, uint32_t count,
                                          enum gangkernel k);

void gangreport_table(const struct gangrow *rows, uint32_t count, FILE *out);
void gangreport_json(const struct gangrow *rows, uint32_t count, FILE *out);

/* Average run times by quantum. 0 or -errno; -ENODATA if there is nothing to plot. */
int gangreport_plot(const struct gangrow *rows, uint32_t count, const char *path);

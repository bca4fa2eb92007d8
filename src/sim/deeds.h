/* SPDX-License-Identifier: MIT */
/* What really became of the processes of each run: the truth that managers are judged by.
 *
 * Model kernels tell it (sim/kernel.h) when it happens, whoever knows of it. */
#pragma once

#include "sim/kernel.h"

enum fate { FATE_NONE, FATE_ALIVE, FATE_FAILED, FATE_EXITED, FATE_KILLED, FATE_CRASHED };

struct process_deed {
    uint8_t fate; /* enum fate */
    uint32_t value;
    uint64_t wrote;
};

struct run_deeds {
    uint64_t run;
    uint32_t size;
    uint32_t alive;
    bool again; /* a process was started twice */
    struct process_deed *ranks;
};

struct deeds {
    struct run_deeds *runs;
    uint32_t count, cap;
    uint64_t changes;
};

void deeds_fini(struct deeds *d); /* a zeroed one is fine */

/* For sim_kernel_config.watch; the context is the struct deeds. */
void deeds_watch(void *context, const struct sim_deed *deed);

/* NULL if nothing was ever started. */
const struct run_deeds *deeds_find(const struct deeds *d, uint64_t run);

/* Processes of any run of this job that are alive. */
uint32_t deeds_alive(const struct deeds *d, uint32_t job);

/* How many of a run have this fate; with that value, unless it is UINT32_MAX. */
uint32_t deeds_count(const struct run_deeds *r, enum fate fate, uint32_t value);
uint64_t deeds_wrote(const struct run_deeds *r);

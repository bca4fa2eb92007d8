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
    struct process_deed *ranks;
};

/* Processes of a run that live on a node, and with their offspring. */
struct living {
    uint64_t run;
    uint32_t node;
    uint32_t own, all;
};

struct deeds {
    struct run_deeds *runs;
    uint32_t count, cap;
    struct living *living; /* whose `all` is not 0, in no order */
    uint32_t living_count, living_cap;
    uint64_t births; /* of processes, ever */
    uint64_t agains; /* processes that were started twice */
    uint64_t again;  /* the last run of which one was */
};

void deeds_fini(struct deeds *d); /* a zeroed one is fine */

/* For sim_kernel_config.watch and .lives; the context is the struct deeds. */
void deeds_watch(void *context, const struct sim_deed *deed);
void deeds_lives(void *context, const struct sim_life *life);

/* NULL if nothing was ever started. */
const struct run_deeds *deeds_find(const struct deeds *d, uint64_t run);

/* Processes of any run of this job that are alive, without offspring. */
uint32_t deeds_alive(const struct deeds *d, uint32_t job);

/* How many of a run have this fate; with that value, unless it is UINT32_MAX. */
uint32_t deeds_count(const struct run_deeds *r, enum fate fate, uint32_t value);
uint64_t deeds_wrote(const struct run_deeds *r);

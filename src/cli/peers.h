/* SPDX-License-Identifier: MIT */
/* Other launchers that run on this machine, to be measured beside ours. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs a command silently and says whether its status was 0. What it prints is kept if there is room. */
bool peers_runs_well(const char *const *argv, char *output, size_t cap);

/* Nodes of SLURM that have nothing to do; 0 if none runs here. */
uint64_t peers_slurm_nodes(void);

/* srun returns before SLURM is done with the job. What it still does is neither to disturb the next in turn,
 * nor to keep its own next job waiting. */
void peers_slurm_settle(uint64_t nodes);

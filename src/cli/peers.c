/* SPDX-License-Identifier: MIT */
/* Other launchers: see peers.h. */
#include "cli/peers.h"

#include <stdlib.h>

#include "cli/tempcluster.h"

enum { SETTLE_TRIES = 500 };

bool peers_runs_well(const char *const *argv, char *output, size_t cap) {
    struct errand e = {.argv = argv, .output = output, .output_cap = cap, .silent = true};
    return errand_run(&e) == 0 && e.status == 0;
}

uint64_t peers_slurm_nodes(void) {
    const char *idle[] = {"sinfo", "-h", "-t", "idle", "-o", "%D", NULL};
    char text[32];
    return peers_runs_well(idle, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
}

void peers_slurm_settle(uint64_t nodes) {
    for (int i = 0; i < SETTLE_TRIES && peers_slurm_nodes() < nodes; i++)
        if (tempcluster_interrupted())
            return;
}

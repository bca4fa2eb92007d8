/* SPDX-License-Identifier: MIT */
/* Everything about one run of a campaign, drawn from its seed: sizes, shapes, speeds, rates.
 *
 * Times hang together: the wave period is some multiple of what a wave through this tree over these
 * links takes, and all else is measured in periods; otherwise healthy nodes would look silent. */
#pragma once

#include <stdio.h>

#include "sim/layout.h"
#include "sim/world.h"

struct scenario {
    uint64_t seed;
    struct prim_config prim;
    struct link_model link;
    struct layout layout;
    uint64_t wave_ns;   /* estimate of a wave, down and up */
    uint64_t gap_ns;    /* mean time between two actions of one tester */
    uint32_t faults;    /* to inject */
    uint32_t asked_min; /* operations to be asked for before the run may end */
    uint32_t asked_max; /* then testers rest */
    uint64_t fault_gap_ns;
    uint64_t boot_spread_ns; /* nodes power on within that time */
    bool late_nodes;         /* some much later */
};

void scenario_draw(struct scenario *s, uint64_t seed);
void scenario_print(const struct scenario *s, FILE *out);

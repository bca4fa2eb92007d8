/* SPDX-License-Identifier: MIT */
/* storm bench launch, with a program that is sent to the nodes first. */
#pragma once

#include "cli/options.h"

struct image_settings {
    struct number_list nodes, sizes;
    uint64_t runs;
    const char *tree, *launchers, *command, *nop;
    const char *load; /* NULL: none */
    uint64_t
        quantum_ns; /* with load: it has all processors, and shares them in turns of so long; 0: it has one of two */
    const char *self, *svg;
    const char *timeline; /* NULL: none */
    bool peers, json;
    bool links;           /* also over TCP, open and sealed */
    uint64_t slurm_nodes; /* found out */
};

/* 0, or -errno after complaining. */
int bench_image(struct image_settings *s);
int bench_loaded(const struct image_settings *s);
int bench_timeline(const struct image_settings *s);

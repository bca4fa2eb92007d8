/* SPDX-License-Identifier: MIT */
/* Jobs of a bench on temporary clusters: one after the other, in turns as gangs, or shared by the system as it likes. */
#pragma once

#include "cli/gangnotes.h"
#include "cli/tempcluster.h"

enum { GANGRIG_JOBS = 16 };

enum gangway {
    GANGWAY_ALONE, /* one after the other */
    GANGWAY_TURNS, /* all at once, under the policy gang */
    GANGWAY_PLAIN, /* all at once, under the policy local: nobody coordinates */
    GANGWAYS
};

struct gangrig_config {
    const char *command; /* the storm command that is measured */
    const char *self;    /* whose `bench gang-work` the jobs run */
    uint32_t nodes, pes; /* processors of each */
    uint32_t jobs;       /* at once, at most */
    uint64_t quantum_ns;
    bool plain; /* GANGWAY_PLAIN is wanted, too */
};

struct gangrig {
    struct gangrig_config config;
    struct tempcluster gang, local;
    bool gang_up, local_up;
    struct gangnotes notes[GANGRIG_JOBS];
};

/* -errno after complaining; then there is nothing to take down. */
int gangrig_up(struct gangrig *g, const struct gangrig_config *c);
void gangrig_down(struct gangrig *g);

/* So many jobs, each with a process for every processor of the cluster. 0 and the time from the first process that began to the
 * last that was done, summed over the jobs if they run alone; else -errno after complaining, -EINTR after Ctrl-C. */
int gangrig_run(struct gangrig *g, enum gangway way, enum gangkernel kernel, uint64_t units,
                uint32_t jobs, uint64_t *ret_ns);

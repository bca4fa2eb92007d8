/* SPDX-License-Identifier: MIT */
/* A master-workers program in virtual time: the real desk of a work distributor (wodi/desk.h), a master that works in cycles,
 * workers that come and go.
 *
 * The workload is that of the CARMI paper, section 4: 31 steps a cycle, 35 cycles, 91 minutes of processor time a cycle, the
 * longest step 1/15.5 of that; each step varies little from cycle to cycle. A message takes no time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { FIELDWORK_STEPS_MAX = 256, FIELDWORK_WORKERS_MAX = 64 };

struct fieldwork_plan {
    uint32_t steps, cycles;
    uint64_t ns[FIELDWORK_STEPS_MAX]; /* of each step, about */
    uint32_t vary;    /* ten thousandths of its length that a step varies by, up or down */
    uint32_t workers; /* at the beginning */
    uint32_t workers_max;
    uint64_t add_ns,
        lose_ns; /* from one worker that comes, or is lost, to the next, on average; 0: never */
    uint64_t seed;
    bool in_order; /* as the master sends them, not longest first */
    bool no_copies;
};

/* What happens, for whoever draws it. */
enum fieldwork_event { FIELDWORK_COMES, FIELDWORK_LOST, FIELDWORK_DONE };
/* `step`: that was done, or lost; 0: none. */
typedef void fieldwork_seen(void *context, enum fieldwork_event event, uint32_t worker,
                            uint64_t step, uint64_t from_ns, uint64_t to_ns);

struct fieldwork_outcome {
    uint64_t ns;           /* from beginning to end */
    uint64_t occupancy_ns; /* workers that were there, for how long */
    uint64_t cpu_ns;       /* of steps that counted */
    uint32_t adds, losses;
    uint32_t wanted;    /* workers, by the heuristic for the fewest that are of use */
    uint64_t delivered; /* results */
};

/* The paper's, with `workers` that stay. */
void fieldwork_paper(struct fieldwork_plan *p, uint32_t workers);

/* How long all its cycles take on workers that stay, by the greedy order and with steps of constant length; scaled to a
 * thousandth of a worker: between two whole numbers it is in between. */
uint64_t fieldwork_bound(const struct fieldwork_plan *p, uint64_t workers_x1000);

/* False: there is no memory. */
bool fieldwork_run(const struct fieldwork_plan *p, fieldwork_seen *seen, void *context,
                   struct fieldwork_outcome *ret);

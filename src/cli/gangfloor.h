/* SPDX-License-Identifier: MIT */
/* What turns of gangs cost at least on this machine: a bare program that does nothing but switch.
 *
 * Two groups of processes that work, one for each processor and bound to it, and a thread with a real-time priority
 * that sleeps until the next turn, holds the one group and lets the other go: the two writes of a launcher, and no
 * cluster. Of several nodes each has its own groups and its own thread, and all switch at the same times. The processes note what they see as those of a benched job do, so both are measured alike. What the host takes
 * from our processors it takes from both. */
#pragma once

#include "cli/gangnotes.h"

enum { GANGFLOOR_GANGS = 2 };

struct gangfloor_plan {
    enum gangkernel kernel;
    uint32_t nodes;                   /* that share the processes of a gang */
    uint64_t quantum_ns, duration_ns; /* of a turn, and of all */
};

/* Takes about so long, half of it in turns; what was noted before is cleared. 0, the notes tell of the switches, and
 * `ret_slower` by how much less is done in turns than by one gang alone, in thousandths of a percent; -EINTR
 * after Ctrl-C, where the caller holds it (tempcluster.h); else -errno: not here, because there are no control groups
 * (version 2) for us, no such priority, fewer processors than processes, or
 * nodes that would not have equally many. Nothing is left in any case, not even if this
 * process is killed. */
int gangfloor_run(struct gangnotes gangs[GANGFLOOR_GANGS], const struct gangfloor_plan *plan,
                  int64_t *ret_slower);

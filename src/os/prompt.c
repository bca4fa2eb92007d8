/* SPDX-License-Identifier: MIT */
/* To be served at once: see prompt.h. */
#include "os/prompt.h"

#include <sched.h>

/* The lowest: threads of the system that are real-time themselves go first. */
enum { PRIORITY = 1 };

static bool become(int policy, int priority) {
    struct sched_param p = {.sched_priority = priority};
    return sched_setscheduler(0, policy | SCHED_RESET_ON_FORK, &p) == 0;
}

bool prompt_allowed(void) {
    int before = sched_getscheduler(0);
    if (before < 0 || !become(SCHED_FIFO, PRIORITY))
        return false;
    struct sched_param none = {.sched_priority = 0};
    sched_setscheduler(0, before & ~SCHED_RESET_ON_FORK, &none);
    return true;
}

void prompt_set(bool on) {
    become(on ? SCHED_FIFO : SCHED_OTHER, on ? PRIORITY : 0);
}

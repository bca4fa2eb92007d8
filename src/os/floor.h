/* SPDX-License-Identifier: MIT */
/* The floor of a launch: what the kernel takes to start and reap processes, with nothing of ours.
 *
 * A few threads of this process each start their share one after the other and then reap it. No
 * launcher on this machine can be faster; a measured launch is compared with that, taken in
 * the same minute. */
#pragma once

#include <stdint.h>

enum { FLOOR_PROCESSES_MAX = 1000000, FLOOR_THREADS_MAX = 16, FLOOR_THREADS = 2 };

struct floor_config {
    const char *program; /* path; it gets no arguments and must exit with 0 */
    uint32_t processes;
    uint32_t threads; /* 0: FLOOR_THREADS */
    uint32_t at_once; /* processes not yet reaped, of all threads; 0: any number */
};

/* The time it took. Nothing that was started is left over. -EINVAL; -EPROTO: a process did not exit
 * with 0; or what the kernel says. */
int floor_run(const struct floor_config *config, uint64_t *ret_ns);

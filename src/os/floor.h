/* SPDX-License-Identifier: MIT */
/* The floor of a launch: what the kernel takes to start and reap processes, with nothing of ours. And that of
 * a transfer: what it takes to write as many files, from memory.
 *
 * A few threads of this process each start their share one after the other and then reap it. No
 * launcher on this machine can be faster; a measured launch is compared with that, taken in
 * the same minute. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

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

struct floor_files {
    const char *folder; /* where they are written, and removed when the time is taken */
    struct bytes contents;
    uint32_t files;
    uint32_t threads; /* 0: FLOOR_THREADS; each takes the next file when it is done with one */
    bool execute;     /* each as soon as it is written; all are reaped */
};

/* The time it took; errors as above. Nothing is left in the folder. */
int floor_write(const struct floor_files *config, uint64_t *ret_ns);

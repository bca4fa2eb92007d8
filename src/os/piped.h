/* SPDX-License-Identifier: MIT */
/* A process with a pipe to each of its standard descriptors; none of them blocks us.
 *
 * It ends with us, even if we are killed. Its end is to be waited for by whoever started it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct piped {
    pid_t pid;
    int in, out, err; /* our ends: to write to, to read from. in: -1 if it reads nothing */
};

struct piped_order {
    const char *const *argv; /* argv[0] is looked for in PATH */
    const char *folder;      /* NULL: ours */
    bool session;            /* its own, so that all of it can be signalled at once */
    bool deaf;               /* reads nothing */
    uint64_t files;          /* that it may have open; 0: as many as we */
};

/* 0 or -errno, as of its start or of the execution. */
int piped_start(const struct piped_order *o, struct piped *ret);

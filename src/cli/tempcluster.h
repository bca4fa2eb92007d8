/* SPDX-License-Identifier: MIT */
/* A cluster of its own for a bench: up in a temporary STORM_HOME, gone without a trace afterwards.
 *
 * Commands are run as a user would run them. From `up` to `down` Ctrl-C does not end this process:
 * it ends the command that runs, and the bench asks tempcluster_interrupted() and takes its cluster
 * down before it gives in. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/errand.h"

enum { TEMPCLUSTER_ARGS_MAX = 24 };

struct tempcluster {
    const char *command; /* the storm command */
    char home[80];
    char setting[96]; /* STORM_HOME=... */
    const char **environment;
    sigset_t mask; /* as it was before */
};

/* `storm up --local N` and `more` (NULL at its end; may be NULL). -errno after complaining. */
int tempcluster_up(struct tempcluster *t, const char *command, uint32_t nodes,
                   const char *const *more);
void tempcluster_down(struct tempcluster *t);

/* Runs the command with these arguments; the output is kept if there is room for it. 0 and the time
 * it took if its status was 0; else -errno after complaining, -EINTR after Ctrl-C. */
int tempcluster_run(const struct tempcluster *t, const char *const *args, char *output, size_t cap,
                    uint64_t *ret_ns);

bool tempcluster_interrupted(void);

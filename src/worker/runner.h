/* SPDX-License-Identifier: MIT */
/* One command line of a work step: run to its end, with what it writes.
 *
 * A line that a shell would take word for word is executed without one. The command has a process group of its own, which is
 * ended with it as far as it still holds its output. It reads nothing. */
#pragma once

#include "wodi/chore.h"

struct runner_output {
    uint8_t *at;
    size_t len, cap;
};

struct runner {
    uint64_t limit_ns;           /* 0: as long as it likes */
    int watched;                 /* while it runs: when there is something at this descriptor, */
    bool (*look)(void *context); /* this is called; false: the command is to end at once */
    void *context;
    size_t most;                   /* bytes of output that are kept, both streams together */
    struct runner_output out, err; /* used again for the next */
};

/* 0 and how it ended; -ECANCELED: as it had to end at once; or -errno: it could not be begun. */
int runner_run(struct runner *c, const char *line, struct chore_result *ret);
void runner_fini(struct runner *c);

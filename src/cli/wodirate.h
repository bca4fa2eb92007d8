/* SPDX-License-Identifier: MIT */
/* Work steps that do nothing, by the second, through master, server and workers, each a process of its own; and, for
 * comparison, the same bytes sent to and fro through three processes, one message at a time, which is what a distributor
 * without batches could reach at best. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { WODIRATE_WORKERS_MAX = 64 };

struct wodirate {
    uint64_t steps;
    uint32_t workers;
    bool sync; /* what is promised survives the machine */
    /* afterwards */
    uint64_t ns, bare_ns;       /* of a step, of a message to and fro */
    uint64_t early_kb, late_kb; /* memory of the server, after a tenth of the steps and after all */
};

/* 0 or -errno. */
int wodirate_run(struct wodirate *r);

/* SPDX-License-Identifier: MIT */
/* What a process of a benched gang does, and what it notes: when it did not run. */
#pragma once

#include <stdint.h>

enum { GANGWORK_GAPS = 1 << 16 };

/* It ran until `from`, and again from `to` on. */
struct gangwork_gap {
    uint64_t from, to;
};

/* Of one process, in memory that the bench sees. */
struct gangwork {
    uint64_t begun, done;
    _Atomic uint64_t units; /* done so far */
    uint64_t gaps;
    struct gangwork_gap gap[GANGWORK_GAPS];
};

/* storm bench gang-work FILE UNITS BYTES: computes, and goes through so many bytes as it does. The rank says whose notes in the
 * file are ours. */
int bench_gang_work(int argc, char **argv);

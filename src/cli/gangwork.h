/* SPDX-License-Identifier: MIT */
/* What a process of a benched gang does, and what it notes: when it did not run. */
#pragma once

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { GANGWORK_GAPS = 1 << 16 };

/* Kernels. A unit is a small part of the work: from 1 to some 10 us. */
enum gangkernel {
    KERNEL_COMPUTE, /* registers only */
    KERNEL_CACHE,   /* goes through a working set of 1 MiB, reading and writing */
    KERNEL_PAIR,    /* ranks 2i and 2i+1 exchange a word after each unit, and spin for it */
    KERNEL_WAVE, /* ranks are a grid; sweeps go through it from each corner in turn, in blocks, as a pipeline */
    KERNELS
};

const char *gangkernel_name(enum gangkernel k);
bool gangkernel_find(const char *name, enum gangkernel *ret);

/* It ran until `from`, and again from `to` on. */
struct gangwork_gap {
    uint64_t from, to;
};

/* Of one process, in memory that the bench and the others of its gang see. */
struct gangwork {
    uint64_t begun, done;
    uint64_t cpu_ns; /* that the work took of a processor */
    uint64_t gaps;
    alignas(64) _Atomic uint64_t units; /* done so far; others spin on it */
    alignas(64) struct gangwork_gap gap[GANGWORK_GAPS];
};

/* Whom a rank of so many waits for, before it may do this unit: NO_PEER if for nobody. At most two. */
enum { PEERS = 2 };
#define NO_PEER UINT32_MAX
void gangwork_peers(enum gangkernel k, uint32_t rank, uint32_t size, uint64_t unit,
                    uint32_t ret[PEERS]);

/* So many units of a rank, which notes what it sees. 0 or -errno. */
struct gangnotes;
int gangwork_do(const struct gangnotes *notes, uint32_t rank, enum gangkernel k, uint64_t units);

/* storm bench gang-work FILE KERNEL UNITS: the rank says whose notes in the file are ours. */
int bench_gang_work(int argc, char **argv);

/* SPDX-License-Identifier: MIT */
/* The node manager: the daemon's machine on a compute node.
 *
 * It hands launches to the node's launcher and starts them when they are decided, combines the ends of runs
 * on their way to the machine manager, and carries streams between launcher and tree. It keeps nothing that
 * cannot be learnt again from the launcher, but for a launch that it has agreed to: docs/jobs.md. */
#pragma once

#include "base/arena.h"
#include "base/roster.h"
#include "machine/limits.h"
#include "machine/machine.h"

struct nm_config {
    struct limits limits;
    uint32_t self;
    uint32_t runs; /* on this node at once, those that are over and not forgotten included */
    const struct roster *roster; /* names of nodes. Borrowed */
    struct bytes report;         /* what this node is like: for HAVE. Borrowed */
    uint64_t lease_ns; /* a launcher that has heard nothing of us for so long ends everything */
};

struct nm;

size_t nm_bytes(const struct nm_config *c);
struct nm *nm_new(const struct nm_config *c, struct arena *a);
struct machine nm_machine(struct nm *n);

/* S10: is the table of runs in order and within its limits? NULL, or what is wrong. For checkers. */
const char *nm_wrong(const struct nm *n);

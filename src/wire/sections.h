/* SPDX-License-Identifier: MIT */
/* Sections of a job: some of its nodes, with a size and a need of their own.
 *
 * In SUBMIT they follow each other. Ranks of the first come first. */
#pragma once

#include "wire/codec.h"

struct section {
    uint32_t nodes, ppn, procs; /* whole, as sched/size.h has it */
    struct bytes need;          /* as sched/need.h reads it; empty: nothing */
};

/* The one at *at, which moves on; 1, 0 at the end, or -EBADMSG. Views borrow. */
int section_next(struct bytes list, size_t *at, struct section *ret);

/* Length written, or -ENOBUFS. */
long section_store(const struct section *s, struct room out);

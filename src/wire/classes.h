/* SPDX-License-Identifier: MIT */
/* Classes of hosts that come with a job: how many of what kind.
 *
 * In SUBMIT they follow each other. */
#pragma once

#include "wire/codec.h"

enum { CLASS_NAME_MAX = 32 };

struct host_class {
    uint32_t least,
        most; /* hosts: without the first it does not start, more than the last it does not get by itself */
    uint32_t ppn; /* processors of each */
    struct bytes name;
    struct bytes need; /* as sched/need.h reads it; empty: nothing */
};

/* The one at *at, which moves on; 1, 0 at the end, or -EBADMSG. Views borrow. */
int class_next(struct bytes list, size_t *at, struct host_class *ret);

/* Length written, or -ENOBUFS. */
long class_store(const struct host_class *h, struct room out);

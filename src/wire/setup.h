/* SPDX-License-Identifier: MIT */
/* What a launcher must know of a run to make its processes ready: which ranks, and what to run.
 *
 * Made by the node's manager from a LAUNCH; handed by the launcher's logic to the world, which
 * starts processes. */
#pragma once

#include "wire/codec.h"

struct setup {
    uint64_t run;
    uint32_t first;  /* rank of the first process here */
    uint32_t count;  /* of processes here, at least 1 */
    uint32_t size;   /* of the whole run */
    uint32_t window; /* bytes of each stream kept until they are taken */
    uint32_t node;   /* place of this node among those of the run */
    uint32_t array;  /* index of an array's job, 0 if it is none */
    struct bytes node_name;
    struct bytes node_list; /* of the run, folded */
    struct bytes spec;
};

/* Length written, or -ENOBUFS. */
long setup_encode(const struct setup *s, struct room out);

/* 0, or -EBADMSG. Views borrow. */
int setup_decode(struct bytes in, struct setup *ret);

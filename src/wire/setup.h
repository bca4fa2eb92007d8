/* SPDX-License-Identifier: MIT */
/* What a launcher must know of a run to make its processes ready: which ranks, and what to run.
 *
 * Made by the node's manager from a LAUNCH; handed by the launcher's logic to the world, which
 * starts processes. */
#pragma once

#include "wire/codec.h"

struct setup {
    uint64_t run;
    uint32_t first; /* rank of the first process here */
    struct bytes
        ranks;       /* of all, SETUP_RANK_BYTES each, ascending; empty: they follow each other */
    uint32_t count;  /* of processes here, at least 1 */
    uint32_t size;   /* of the whole run */
    uint32_t window; /* bytes of each stream kept until they are taken */
    uint32_t node;   /* place of this node among those of the run */
    uint32_t array;  /* index of an array's job, 0 if it is none */
    struct bytes node_name;
    struct bytes node_list; /* of the run, folded */
    struct bytes spec;
};

enum { SETUP_RANK_BYTES = 4 };

/* Of a process here; and is that of this rank here? */
uint32_t setup_rank(const struct setup *s, uint32_t index);
bool setup_has(const struct setup *s, uint32_t rank);

/* Length written, or -ENOBUFS. */
long setup_encode(const struct setup *s, struct room out);

/* 0, or -EBADMSG. Views borrow. */
int setup_decode(struct bytes in, struct setup *ret);

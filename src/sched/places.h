/* SPDX-License-Identifier: MIT */
/* Free processors of the nodes: what a job takes, and gives back.
 *
 * A node has so many processors (PEs), of which jobs hold some; it is usable or not. A job gets the
 * same number of PEs on each of its nodes, on the lowest nodes that have them. A node that becomes
 * unusable keeps what is held there until that is given back; nothing new is put on it.
 *
 * Two trees of maxima, over the free PEs of usable nodes and over the nodes that are wholly free,
 * lead to the next fitting node in steps of the logarithm of the nodes; counters by free PEs tell
 * at once if there are enough. So the work of a take is in proportion to what it takes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/nodeset.h"

#define PLACES_PES_MAX 4096 /* of a node */
#define PLACES_WHOLE   0    /* instead of a number of PEs: all of the node */

struct places_config {
    uint32_t nodes;    /* numbers 0 .. nodes-1 */
    uint32_t universe; /* of the node sets, at least `nodes`; numbers above have no PEs */
    uint32_t pes;      /* of every node at first */
    uint32_t pes_max;  /* of any node ever */
};

struct places {
    struct places_config config;
    uint32_t leaves;       /* of a tree: a power of two */
    uint16_t *pes, *used;  /* by node */
    uint16_t *free_tree;   /* free PEs of a node that is usable, else 0 */
    uint16_t *whole_tree;  /* PEs of a node that is usable and not used at all, else 0 */
    uint32_t *free_count;  /* by free PEs: usable nodes */
    uint32_t *whole_count; /* by PEs: usable nodes that are not used at all */
    uint32_t *pes_count;   /* by PEs: nodes */
    struct nodeset usable;
    uint64_t pes_all, used_all, free_all; /* free: of usable nodes */
};

/* What a job wants. */
struct places_want {
    uint32_t nodes;                /* at least 1 */
    uint32_t ppn;                  /* PEs on each, at least 1 */
    bool exclusive;                /* shares no node: takes all PEs of it */
    const struct nodeset *only;    /* NULL: any */
    const struct nodeset *exclude; /* NULL: none */
};

size_t places_bytes(const struct places_config *c);

/* No node is usable yet. */
void places_init(struct places *p, const struct places_config *c, struct arena *a);

/* This node has another number of PEs; nothing is held there. */
void places_set_pes(struct places *p, uint32_t node, uint32_t pes);

void places_set_usable(struct places *p, const struct nodeset *set, bool usable);

/* Takes the lowest nodes that fit and makes *ret that set. -EAGAIN: not now. -ENOSPC: never, not even
 * if all nodes were usable and free. Then *ret is empty. */
int places_take(struct places *p, const struct places_want *want, struct nodeset *ret);

/* Could it be taken if all nodes were usable and free? */
bool places_fits(const struct places *p, const struct places_want *want);

/* Takes exactly these nodes, usable or not, as after a restart. -EBUSY: too little is free there;
 * -EINVAL: a number without PEs. Then nothing is taken. */
int places_hold(struct places *p, const struct nodeset *set, uint32_t ppn);

/* Gives back what was taken: `ppn` PEs on each, PLACES_WHOLE for an exclusive job. More than is
 * held is a bug. */
void places_give(struct places *p, const struct nodeset *set, uint32_t ppn);

/* What to give back for what was wanted. */
static inline uint32_t places_each(const struct places_want *want) {
    return want->exclusive ? PLACES_WHOLE : want->ppn;
}

/* PEs of all nodes; held ones; those that could be taken now (of usable nodes). */
uint64_t places_pes(const struct places *p);
uint64_t places_used(const struct places *p);
uint64_t places_free(const struct places *p);

uint32_t places_node_pes(const struct places *p, uint32_t node);
uint32_t places_node_used(const struct places *p, uint32_t node);
const struct nodeset *places_usable(const struct places *p);

/* S9: reckons every sum, counter and tree anew and compares. For tests and the simulator. */
bool places_conserved(const struct places *p);

/* SPDX-License-Identifier: MIT */
/* How large a job is: nodes, processes on each (ppn), processes in all.
 *
 * The triple `nodes:ppn:procs` of the Cplant papers: any part may be left out, and -N and -n say one
 * part each. What was asked for has zeros in it; size_resolve makes it whole, once. A whole size has
 *
 *     nodes <= procs <= nodes * ppn,    ppn = procs / nodes, rounded up
 *
 * and its processes are shared out evenly: each node has its processes in a row, no node has none,
 * and no two differ by more than one. Who gives all three parts means nodes * ppn = procs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most nodes, processes on a node, and processes in all. */
#define SIZE_PART_MAX ((uint32_t)1 << 30)

/* Room that every reason fits in, NUL included. */
#define SIZE_WHY_MAX 160

struct size {
    uint32_t nodes, ppn, procs; /* 0: left out */
};

enum size_part { SIZE_NODES, SIZE_PPN, SIZE_PROCS, SIZE_PARTS };

/* "32:4:128", "::32", "32:1", "32". -EINVAL or -ERANGE: then `why` says in words what is wrong with
 * the text and where; `cap` may be 0. */
int size_parse(const char *text, struct size *ret, char *why, size_t cap);

/* One part alone, the argument of -N or -n: the others are left out. */
int size_parse_part(const char *text, enum size_part part, struct size *ret, char *why, size_t cap);

/* Takes the parts of `more` into `s`; -EINVAL if both say the same part differently. */
int size_merge(struct size *s, const struct size *more, char *why, size_t cap);

/* Makes what was asked for whole, for a cluster of so many nodes with so many processors each, `most` where they differ
 * (0: nobody knows, and nothing is refused that some node might have). Only nodes: one process on each. Only procs: as few nodes as will do. Nothing: one process. -EINVAL: it
 * contradicts itself; -E2BIG: the cluster is too small. Then `s` is unchanged. */
int size_resolve(struct size *s, uint32_t cluster_nodes, uint32_t pes_per_node, uint32_t most,
                 char *why, size_t cap);

/* Is it what size_resolve can have made? For sizes that come from others. */
bool size_is_whole(const struct size *s);

/* Processes of one node of a job. */
struct size_share {
    uint32_t first; /* rank */
    uint32_t count;
};

/* Of the k'th node of a job, counted from 0; k < nodes <= procs. */
struct size_share size_share(uint32_t nodes, uint32_t procs, uint32_t k);

/* On which node of the job this rank is. */
uint32_t size_node_of(uint32_t nodes, uint32_t procs, uint32_t rank);

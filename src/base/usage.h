/* SPDX-License-Identifier: MIT */
/* What processes have used: of one, of a node's, of a whole job's.
 *
 * Two usages make one: times and bytes are summed up, of memory the largest stays, with the node that had
 * it. The order does not matter, and one of zeros adds nothing; so ends can be combined anywhere on their
 * way. What must be seen to by whoever combines is that nothing is counted twice. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct usage {
    uint64_t user_ns, system_ns; /* of processors */
    /* To and from storage: what a cache or a file system in memory has served is not counted. */
    uint64_t read_bytes, written_bytes;
    uint64_t peak_bytes; /* resident in one process at most */
    uint64_t node_bytes; /* of all its processes on a node at once; 0: no node's kernel has told */
    uint32_t peak_node, node_node; /* where that was; of lower numbers if there were several */
};

void usage_add(struct usage *to, const struct usage *u);

/* What is measured on a node is that node's. */
void usage_place(struct usage *u, uint32_t node);

bool usage_same(const struct usage *a, const struct usage *b);

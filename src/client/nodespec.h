/* SPDX-License-Identifier: MIT */
/* The node file: what the administrator says of nodes.
 *
 *     # a comment
 *     n[0-31]      switch=s1
 *     n[32-63,70]  switch=s2
 *
 * A line names nodes and says what holds for each of them, in words KEY=VALUE. The only key so far is `switch`. What is
 * said of a node twice must be the same. */
#pragma once

#include "client/cluster.h"

enum { NODESPEC_WORD_MAX = 32 };

struct nodespec {
    uint32_t nodes;
    uint32_t *switches; /* of each node: 0, or one more than the place of its name */
    char (*names)[NODESPEC_WORD_MAX];
    uint32_t switch_count;
};

/* -EBADMSG: `trouble` says in which line what is wrong. nodespec_free is needed in any case. */
int nodespec_parse(const struct cluster *c, const char *text, struct nodespec *ret,
                   struct cluster_trouble *trouble);
/* Of a file; -ENOENT if there is none. */
int nodespec_load(const struct cluster *c, const char *path, struct nodespec *ret,
                  struct cluster_trouble *trouble);
/* Where a cluster that runs keeps its own. */
int nodespec_path(const struct cluster *c, char *out, size_t cap);
/* One more node of a cluster of so many hangs there, unless the file has said where. -ENOMEM. */
int nodespec_add(struct nodespec *n, uint32_t nodes, uint32_t node, const char *on_switch);
void nodespec_free(struct nodespec *n);

/* Of a node; NULL if it is not known. */
const char *nodespec_switch(const struct nodespec *n, uint32_t node);

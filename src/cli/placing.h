/* SPDX-License-Identifier: MIT */
/* --map: which process of a job is on which node; and how that is shown. */
#pragma once

#include "cli/programs.h"
#include "cli/sections.h"
#include "client/cluster.h"
#include "sched/map.h"
#include "sched/size.h"

struct placing {
    enum map_kind kind;
    uint32_t procs, nodes, most; /* of a list: processes, nodes, the most on one */
    uint32_t crowded;            /* the node with the most */
    uint8_t *places;             /* as sched/map.h has them */
};

/* "block", "cyclic", or a list of nodes, one for each rank: n0,n1*3,n[2-3]. NULL: block. The nodes of a list are added to `on`.
 * 0, or the exit status after a complaint. placing_fini is needed in any case. */
int placing_read(struct placing *p, const char *text, const struct cluster *c, struct nodeset *on,
                 const char *command);
void placing_fini(struct placing *p);

/* The size that a list comes to, which must be what was said of it. */
int placing_size(const struct placing *p, const struct cluster *c, struct size *size,
                 const char *command);

/* Ranks of each node, a line each. `on`: the nodes, if they are known; `programs`: what they run, if there are several. */
void placing_print(const struct placing *p, const struct cluster *c, const struct size *size,
                   const struct nodeset *on, const struct programs *programs,
                   const struct sections *sections);

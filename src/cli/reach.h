/* SPDX-License-Identifier: MIT */
/* How hosts are reached through a tree of remote shells: what all commands that do so have in common. */
#pragma once

#include "cli/roll.h"
#include "os/limb.h"

enum { REACH_CONNECTOR_MAX = 4096, REACH_CHILDREN_MAX = 4096 };

struct reach {
    char words[REACH_CONNECTOR_MAX];
    struct bytes connector; /* those words, as spread/greeting.h has them */
    struct shell_helper helper;
};

/* By which command: as `given`, as STORM_CONNECTOR says, or ssh (as `user`, NULL: as it likes). 0, or the exit status after a
 * complaint by `who`. */
int reach_connector(struct reach *r, const char *who, const char *given, const char *user);
/* What runs on each host. */
int reach_helper(struct reach *r, const char *who);

/* What may be said of the tree; 0: as usual. */
struct reach_wish {
    uint32_t hosts;
    enum hop_shape shape;
    uint32_t fanout, at_once;
    uint64_t connect_ns;
};

/* The tree of a task whose files are known. */
void reach_plan(struct task *t, const struct reach_wish *w);

/* All hosts of the roll are to be reached. 0 or -errno. */
int reach_begin(struct limb *l, const struct roll *roll);

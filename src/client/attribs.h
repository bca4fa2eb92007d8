/* SPDX-License-Identifier: MIT */
/* The attribute file: what the administrator wants nodes to be told apart by.
 *
 *     # name  operators   values, in their order
 *     CPU     =, >=, <=   500MHZ 1GHZ 2GHZ
 *     NIC     =           FAST SLOW
 *
 * Operators are those that expressions may compare the attribute by (sched/need.h). Nodes of which nothing is said
 * (nodespec.h) have the first value. */
#pragma once

#include "base/mistake.h"
#include "sched/traits.h"

/* Defines them in a table that has none of the administrator's. -EBADMSG: `m` says in which line what is wrong. */
int attribs_parse(struct traits *t, const char *text, struct mistake *m);

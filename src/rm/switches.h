/* SPDX-License-Identifier: MIT */
/* Switches of a transfer's receivers, as its order tells them: runs of receivers, in order of their numbers, who share
 * one. 0 is one that is not known. */
#pragma once

#include "base/bytes.h"
#include "base/nodeset.h"
#include "rm/spread.h"

enum { SWITCH_RUN_BYTES = 8 };

/* `of_node` has the switch of each of so many nodes. Returns the length; 0 if none is known, or there is no room: then the
 * plan has no groups. */
size_t switches_encode(const struct nodeset *receivers, const uint32_t *of_node, uint32_t nodes,
                       struct room out);
/* The switch of each receiver. False if the runs are not of just so many. */
bool switches_decode(struct bytes runs, uint32_t *ret, uint32_t receivers);

/* Edges of the plan, in both trees of a pair, that lead from one switch to another; `order` is spread_arrange's. */
uint32_t switches_crossed(const struct spread *s, const uint32_t *of_receiver,
                          uint32_t source_switch, const uint32_t *order);

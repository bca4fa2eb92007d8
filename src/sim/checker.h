/* SPDX-License-Identifier: MIT */
/* The independent checker: does a history keep the primitives' promises?
 *
 * It knows the history and nothing else: not the protocol, not its logs. Promises S7 (all or
 * nothing, sequential consistency), S8 (epochs never go back) and L1 (it converges), as rules with
 * names:
 *
 *  claim     every finished operation has a place in the order of its own; a refused one has none
 *  program   what one node asks for after an answer comes later in the order
 *  former    what a life asked for comes before its node's next life
 *  order     each life applies operations in ascending order, and only those after its join
 *  cycle     there is one order that all lives agree with
 *  atomic    done: applied in every life of the set that counts, when the answer comes
 *  twice     applied once
 *  outside   not applied outside the set, nor before it was asked for
 *  ghost     not done: applied nowhere that lasts
 *  half      outcome not known: everywhere or nowhere, among the lives that last
 *  compare   the answer is right for that place in the order
 *  signal    notices, counters and applied operations agree
 *  memory    what is in memory was written by somebody, whole
 *  join      a life begins with the root's variables at that place, all else empty
 *  strobe    numbers ascend, and somebody sent it
 *  gather    what is gathered was stored by that node and not yet replaced when it was asked for, and
 *            who is not missing was a member meanwhile
 *  answer    one final answer for every request
 *  epoch     never goes back
 *  limits    (trial.c) no table and no queue beyond its limit, at any moment
 *  converge  after the faults all nodes live and agree */
#pragma once

#include "sim/history.h"
#include "sim/verdict.h"

/* `closed`: the run had a final phase, so convergence is demanded. */
void checker_run(const struct history *h, bool closed, struct verdict *verdict);

/* SPDX-License-Identifier: MIT */
/* Steps of a node's machines, and carrying out the effects.
 *
 * Effects are carried out in their order; each frame sent takes its turn on the node's processor,
 * so what comes later in the list leaves later. Nothing here steps another machine: whatever others
 * are to notice goes through the clock. */
#pragma once

#include "sim/node.h"

/* Feeds one input to a node that has the time for it; the step itself takes cpu_ns. */
void carry_input(struct world *w, struct node *n, enum layer layer, const struct input *in,
                 uint64_t cpu_ns);

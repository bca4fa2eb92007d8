/* SPDX-License-Identifier: MIT */
/* Joins a daemon's machine (above) with the primitives' machine (below).
 *
 * A daemon emits requests and hears completions; it does not know whether a real primitives'
 * machine or a cost model answers. The stack is pure: it hands requests down and notices up until
 * neither has anything more to say, and leaves every other effect to the world. */
#pragma once

#include "machine/machine.h"

/* Which machine of the stack a timer, ticket or link belongs to. */
enum layer { LAYER_PRIM, LAYER_DAEMON };

struct stack {
    struct machine daemon;
    struct machine prim;
};

/* Feeds one input to the machine of `layer`, then lets both react to each other. */
void stack_step(struct stack *s, enum layer layer, const struct input *in, struct effects *out);

/* Boots both: the primitives first, so that the daemon can make requests at once. */
void stack_boot(struct stack *s, const struct input *in, struct effects *out);

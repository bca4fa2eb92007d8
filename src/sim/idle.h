/* SPDX-License-Identifier: MIT */
/* A daemon that hears everything and does nothing.
 *
 * One serves any number of nodes. The world under the primitives does not even step it: that is how
 * it gets by with a hundred thousand nodes. */
#pragma once

#include "machine/machine.h"

struct machine idle_machine(void);
bool idle_is(const struct machine *m);

/* SPDX-License-Identifier: MIT */
/* How special nodes are: jobs that would do with any get those first that nobody else is likely to want.
 *
 * A node is special as far as few others have what it has: of ordered values at least as much, of labels the same one. Each
 * time that only half as many have it counts one. */
#pragma once

#include "sched/traits.h"

/* Of these nodes; others are not changed. `scratch` has room for as many numbers as there are nodes. */
void special_reckon(const struct traits *t, const struct nodeset *nodes, uint64_t *scratch,
                    uint8_t *ret);

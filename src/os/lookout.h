/* SPDX-License-Identifier: MIT */
/* Could a run begin on this node? Looked at before it begins on any. */
#pragma once

#include "machine/machine.h"

/* `folder` is the node's own. Of several programs those are looked at that have ranks here. 0, or -errno and what it is
 * that is not here. */
int lookout(const char *folder, struct bytes setup, enum spawn_step *ret_step);

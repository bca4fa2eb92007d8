/* SPDX-License-Identifier: MIT */
/* Could a run begin on this node? Looked at before it begins on any. */
#pragma once

#include "machine/machine.h"

/* `folder` is the node's own. 0, or -errno and what it is that is not here. */
int lookout(const char *folder, uint64_t run, struct bytes spec, enum spawn_step *ret_step);

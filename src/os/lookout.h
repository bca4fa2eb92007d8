/* SPDX-License-Identifier: MIT */
/* Could a run begin on this node? Looked at before it begins on any. */
#pragma once

#include "machine/machine.h"

/* `folder` is the node's own. Of several programs those are looked at that have ranks here. All but the ticket is told. */
void lookout(const char *folder, struct bytes setup, struct input_looked *ret);

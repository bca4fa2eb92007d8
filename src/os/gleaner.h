/* SPDX-License-Identifier: MIT */
/* Files of a host that go up a tree of remote shells, after the command.
 *
 * A path may be a pattern; a folder goes with all that is in it, but for what is neither file nor folder. */
#pragma once

#include "spread/frame.h"
#include "spread/task.h"

struct gleaner;

/* NULL: no memory. */
struct gleaner *gleaner_new(const struct task *t);
void gleaner_free(struct gleaner *g);

/* The next frame FETCHED, its body in `room` (at least 4 KiB); false: that was all. */
bool gleaner_next(struct gleaner *g, struct room room, struct frame *ret);

/* SPDX-License-Identifier: MIT */
/* Files of a host that go up a tree of remote shells, after the command.
 *
 * A path may be a pattern; a folder goes with all that is in it, but for what is neither file nor folder. At home a file has the last
 * part of its path, and of a pattern all from the first part on that matches several: so it is one of its own. */
#pragma once

#include "spread/frame.h"
#include "spread/task.h"

struct gleaner;

/* NULL: no memory. */
struct gleaner *gleaner_new(const struct task *t);
void gleaner_free(struct gleaner *g);

enum gleaned {
    GLEANED_FRAME,   /* the next frame FETCHED, its body in `room` (at least 4 KiB) */
    GLEANED_NOT_YET, /* there is much to look at: others may have waited meanwhile */
    GLEANED_ALL
};
enum gleaned gleaner_next(struct gleaner *g, struct room room, struct frame *ret);

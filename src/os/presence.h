/* SPDX-License-Identifier: MIT */
/* Whether the owner of this machine works there, as far as the system tells (wire/owner.h). */
#pragma once

#include "machine/machine.h"

/* Fills in `owner`, and `busy_ns` if anybody wants to know of the load. What cannot be read tells nothing. */
void presence_look(struct bytes watch, struct input_gauged *ret);

/* When somebody has typed at a terminal of this /dev last; of the calendar, 0: nobody has. */
uint64_t presence_typed(const char *dev);
/* When a file, or one in a folder, was read or changed last. */
uint64_t presence_used(const char *path);
/* Of processors, since the machine was started: out of the text of /proc/stat. */
uint64_t presence_busy(const char *stat);

/* SPDX-License-Identifier: MIT */
/* The file of a program, found as a shell would find it, and what is wrong with it.
 *
 * Nodes see the same files as we do, so mistakes are told before anything is started. */
#pragma once

#include <stddef.h>

/* The absolute path of `name`, looked for in `path` (of the form of PATH) or, if it has a slash,
 * from `folder` on. 0, or the exit status after a complaint, which begins with
 * `shown`. */
int program_find(const char *shown, const char *name, const char *folder, const char *path,
                 char *out, size_t cap);

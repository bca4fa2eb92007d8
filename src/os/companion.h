/* SPDX-License-Identifier: MIT */
/* Where the programs are that belong to this storm command. */
#pragma once

#include <stddef.h>

/* The path of the storm command that runs. 0 or -errno. */
int companion_self(char *buf, size_t cap);

/* Of a program beside it (as built), or in ../libexec/storm (as installed). -ENOENT if it is in
 * neither place. */
int companion_find(const char *name, char *buf, size_t cap);

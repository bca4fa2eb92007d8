/* SPDX-License-Identifier: MIT */
/* Files that a tree of remote shells keeps open here. */
#pragma once

#include "spread/hop.h"

/* Raises the limit as far as it goes; *ret_before is what it was, for what is started. 0, or the exit status after a complaint: it is not
 * enough for such a tree. */
int openfiles_raise(const char *command, const struct hop_config *tree, uint64_t *ret_before);

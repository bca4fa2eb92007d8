/* SPDX-License-Identifier: MIT */
/* Which file is executed under a name, as a shell would find it. */
#pragma once

#include <limits.h>

/* The first place of `path` (of the form of PATH; NULL: the usual ones) that has something of that name which can be executed; a place
 * that is not absolute is meant from `folder`. A name with a slash is looked at as it is. 0, or -errno: that
 * one is there but cannot be executed says more than that there is none. */
int which(const char *name, const char *path, const char *folder, char out[PATH_MAX]);

/* SPDX-License-Identifier: MIT */
/* Policies from shared objects (include/storm/policy.h, docs/policies.md).
 *
 * Only for programs that are linked dynamically: the manager and storm-sim. What is loaded stays until the program
 * ends. Its code runs as ours: what it does to memory is its own risk and ours. */
#pragma once

#include "storm/policy.h"

enum { PLUGIN_WHY_MAX = 300 };

/* 0, or -errno and why: it cannot be loaded (-ENOENT), is no policy (-EINVAL), or one for another host (-EPROTO). */
int plugin_load(const char *path, const struct storm_policy **ret, char why[PLUGIN_WHY_MAX]);

/* SPDX-License-Identifier: MIT */
/* The policies that are built in. */
#pragma once

#include "storm/policy.h"

extern const struct storm_policy policy_fcfs, policy_easy, policy_easy_sjbf, policy_conservative,
    policy_gang, policy_gang_backfill, policy_local;

const struct storm_policy *policies_at(uint32_t index); /* NULL behind the last */
const struct storm_policy *policies_find(const char *name);

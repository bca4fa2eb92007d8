/* SPDX-License-Identifier: MIT */
/* The policy that the manager begins with, one from a shared object among them.
 *
 * Its code runs in the manager. If the manager dies again and again soon after it was begun with such a policy, it goes on
 * without: jobs are worth more than the order they come in. */
#pragma once

#include "storm/policy.h"

enum { GUEST_WHY_MAX = 400 };

/* By name, or from that file, which is then the guest too; "": fcfs. If that cannot be, it is fcfs, and why says why;
 * else why is empty. In the cluster's folder. */
const struct storm_policy *guest_policy(const char *name, const struct storm_policy **ret_guest,
                                        char why[GUEST_WHY_MAX]);

/* The manager has ended in good order. */
void guest_left(void);

/* Loads it, and says what is wrong. The exit status. */
int guest_try(const char *path);

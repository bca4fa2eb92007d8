/* SPDX-License-Identifier: MIT */
/* What users type for a scheduling policy. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "storm/policy.h"

/* Is there a policy of that name, or is it a file that holds one? Into `out`: the name, or the whole path. 0, or the
 * exit status after a complaint. */
int policy_name(const char *command, const char *typed, char *out, size_t cap);

/* Options that were not given. */
#define POLICY_UNSAID UINT64_MAX

/* Checks what was given of them, and makes 0 of what was not. 0, or the exit status after a complaint. */
int policy_turns(const char *command, uint64_t *mpl, uint64_t *quantum_ns);

/* SPDX-License-Identifier: MIT */
/* What users type for a scheduling policy. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "storm/policy.h"

/* Is there a policy of that name, or is it a file that holds one? Into `out`: the name, or the whole path. 0, or the
 * exit status after a complaint. */
int policy_name(const char *command, const char *typed, char *out, size_t cap);

/* Can turns be so long? */
bool policy_quantum_fits(uint64_t ns);

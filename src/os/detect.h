/* SPDX-License-Identifier: MIT */
/* What a machine is, found out by looking: the attributes that nodes report of themselves. */
#pragma once

#include "sched/traits.h"

/* Everything but SPEED. What cannot be found stays unknown. */
struct traits_report detect_machine(void);

/* Those that can be seen, or as many as STORM_GPUS says, for those that cannot. */
uint32_t detect_gpus(void);

/* How fast a processor is: steps of a chain of multiplications that it takes in a microsecond. Takes some milliseconds. */
uint64_t detect_speed(void);

/* The memory that was built in, as far as that can be guessed from what the system says it has, which keeps some for itself. */
uint64_t detect_built_in(uint64_t bytes);

/* "6.1.0-18-amd64" as sched/traits.h has versions; TRAITS_UNKNOWN if it begins with no number. */
uint64_t detect_version(const char *release);

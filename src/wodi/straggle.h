/* SPDX-License-Identifier: MIT */
/* When a step takes suspiciously long: a distribution of how long steps take against what was expected.
 *
 * For each class of workers the ratio of real to expected time is counted in buckets, four for each doubling; old counts
 * fade. A step is a straggler only if its ratio lies well above nearly all that were seen. The clock of a step starts when
 * it is executed, not when it is sent. While little is known it must take many times as long. Being a straggler costs nobody anything: it gets one copy elsewhere, and what ends
 * first counts; no worker is ever ended for being slow. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { STRAGGLE_BUCKETS = 96, STRAGGLE_ONE = 32 /* bucket of ratio 1 */ };

struct straggle {
    uint32_t counts[STRAGGLE_BUCKETS];
    uint32_t total;
};

void straggle_add(struct straggle *s, uint64_t took_ns, uint64_t expected_ns);

/* Is one that was expected to take so long, and has run so long already, a straggler? */
bool straggle_late(const struct straggle *s, uint64_t ran_ns, uint64_t expected_ns);

/* SPDX-License-Identifier: MIT */
/* When jobs have ended, out of what `storm ps --json` prints. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The values of all keys "end_time" that are numbers, seconds with a fraction, as nanoseconds, in the
 * order of the text. At most `cap` are stored; how many there are. */
size_t ends_scan(const char *json, uint64_t *ret_ns, size_t cap);

/* Ends in a second among `count` sorted ones, times 1000; 0 if they are too close to tell. */
uint64_t ends_rate_x1000(const uint64_t *sorted_ns, size_t count);

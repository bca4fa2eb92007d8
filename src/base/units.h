/* SPDX-License-Identifier: MIT */
/*
 * Time and sizes as whole numbers, and their texts.
 *
 * Time is uint64_t nanoseconds (584 years), sizes are uint64_t bytes. Parsing is exact: decimal
 * fractions are scaled as integers, what lies below one nanosecond or byte is dropped, and
 * overflow is -ERANGE. Size units are powers of 1024 whether written K, KB or KiB.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NS_PER_US ((uint64_t)1000)
#define NS_PER_MS ((uint64_t)1000 * NS_PER_US)
#define NS_PER_S  ((uint64_t)1000 * NS_PER_MS)

/* A moment so much later; one that cannot be reckoned is never. */
static inline uint64_t units_after(uint64_t now, uint64_t ns) {
    return ns > UINT64_MAX - now ? UINT64_MAX : now + ns;
}

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define TIB ((uint64_t)1 << 40)

#define UNITS_TEXT_MAX 32 /* every formatted duration and size fits, NUL included */

/*
 * "300us", "1.5ms", "2s", "30m", "12h", "2d", "90" and "1.5" (seconds), "1:30" (minutes, seconds),
 * "1:30:00" (hours, minutes, seconds). -EINVAL or -ERANGE.
 */
int units_parse_duration(const char *text, uint64_t *ret_ns);

/* "4096", "512K", "12MB", "1.5GiB". -EINVAL or -ERANGE. */
int units_parse_size(const char *text, uint64_t *ret_bytes);

/* How fast a link is: "10Gbit", "1Gbit/s", "2.5Gbps", "100Mbit"; thousands, as networks have them. */
int units_parse_rate(const char *text, uint64_t *ret_bytes_per_s);

/*
 * Three significant digits: "340 us", "1.25 ms", "59.9 s"; from a minute on the two largest units:
 * "1m 30s", "2h 5m", "3d". Return the length stored, always below `cap` (which is not 0).
 */
size_t units_format_duration(uint64_t ns, char *buf, size_t cap);

/* "512 B", "1.5 KiB", "12 MiB". */
size_t units_format_size(uint64_t bytes, char *buf, size_t cap);

/* SPDX-License-Identifier: MIT */
/*
 * Views of bytes, and little-endian numbers in them.
 *
 * A `struct bytes` borrows memory for reading, a `struct room` for writing; neither owns anything.
 * Loads and stores go byte by byte, so they need no alignment and mean the same on every machine
 * (compilers turn them into single instructions where the byte order allows).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"

struct bytes {
    const uint8_t *at;
    size_t len;
};

struct room {
    uint8_t *at;
    size_t len;
};

static inline struct bytes bytes_of(const void *at, size_t len) {
    return (struct bytes){.at = at, .len = len};
}

static inline struct room room_of(void *at, size_t len) {
    return (struct room){.at = at, .len = len};
}

static inline struct bytes room_bytes(struct room room) {
    return (struct bytes){.at = room.at, .len = room.len};
}

/* The text without its terminating NUL. */
struct bytes bytes_from_str(const char *text);

bool bytes_equal(struct bytes a, struct bytes b);

/* The part [from, from + len) of `whole`; -ERANGE if it does not lie inside. */
int bytes_sub(struct bytes whole, size_t from, size_t len, struct bytes *ret_part);
int room_sub(struct room whole, size_t from, size_t len, struct room *ret_part);

static inline uint16_t load_le16(const void *from) {
    const uint8_t *p = from;
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t load_le32(const void *from) {
    const uint8_t *p = from;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t load_le64(const void *from) {
    const uint8_t *p = from;
    return (uint64_t)load_le32(p) | (uint64_t)load_le32(p + 4) << 32;
}

static inline void store_le16(void *to, uint16_t v) {
    uint8_t *p = to;
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline void store_le32(void *to, uint32_t v) {
    uint8_t *p = to;
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
    p[3] = (uint8_t)(v >> 24);
}

static inline void store_le64(void *to, uint64_t v) {
    uint8_t *p = to;
    store_le32(p, (uint32_t)v);
    store_le32(p + 4, (uint32_t)(v >> 32));
}

static inline bool is_power_of_two(size_t a) {
    return a != 0 && (a & (a - 1)) == 0;
}

/* The smallest multiple of `a` (a power of two) that is at least `n`. */
static inline size_t align_up(size_t n, size_t a) {
    ASSERT(is_power_of_two(a));
    ASSERT(n <= SIZE_MAX - (a - 1));
    return (n + (a - 1)) & ~(a - 1);
}

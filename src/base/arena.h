/* SPDX-License-Identifier: MIT */
/*
 * Bump arena over the caller's memory; nothing is ever given back.
 *
 * With mem NULL the arena only measures: the same carving code first computes how much memory it
 * needs, then takes it. Offsets are aligned, not addresses, so both runs agree; the memory must
 * therefore be aligned to the largest alignment asked for (checked).
 */
#pragma once

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena {
    uint8_t *mem; /* NULL: measuring */
    size_t len;
    size_t used;
};

/* mem NULL: measure; len is then ignored. The memory is not touched. */
void arena_init(struct arena *a, void *mem, size_t len);

/* `size` bytes, not cleared; NULL when measuring. Asking for more than there is is a bug. */
void *arena_take(struct arena *a, size_t size, size_t align);
void *arena_take_array(struct arena *a, size_t count, size_t size, size_t align);

/* Bytes taken so far, padding included. */
size_t arena_used(const struct arena *a);

static inline bool arena_measuring(const struct arena *a) {
    return a->mem == NULL;
}

#define ARENA_TAKE(a, type, count) \
    ((type *)arena_take_array((a), (count), sizeof(type), alignof(type)))

/* SPDX-License-Identifier: MIT */
/*
 * Bump arena: measure first, then carve with the same code.
 *
 * Every sum is checked, so a measurement can not wrap around and promise too little.
 */
#include "base/arena.h"

#include "base/assert.h"
#include "base/bytes.h"

void arena_init(struct arena *a, void *mem, size_t len) {
    *a = (struct arena){.mem = mem, .len = mem ? len : 0};
}

void *arena_take(struct arena *a, size_t size, size_t align) {
    size_t from = align_up(a->used, align);
    ASSERT(size <= SIZE_MAX - from);
    a->used = from + size;
    if (arena_measuring(a))
        return NULL;
    ASSERT(a->used <= a->len);
    ASSERT(((uintptr_t)a->mem & (align - 1)) == 0);
    return a->mem + from;
}

void *arena_take_array(struct arena *a, size_t count, size_t size, size_t align) {
    size_t bytes;
    bool overflow = __builtin_mul_overflow(count, size, &bytes);
    ASSERT(!overflow);
    return arena_take(a, bytes, align);
}

size_t arena_used(const struct arena *a) {
    return a->used;
}

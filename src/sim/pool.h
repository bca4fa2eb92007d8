/* SPDX-License-Identifier: MIT */
/* Small blocks of memory, given and taken millions of times a second.
 *
 * One free list for every 64 bytes of size, refilled from slabs that are only returned at the end.
 * Large blocks, and all of them under the address sanitizer, come from malloc: so the sanitizer
 * sees a machine that keeps a view of a message beyond its step. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { POOL_UNIT = 64, POOL_CLASSES = 17 };

struct pool {
    void *
        spare[POOL_CLASSES]; /* the first free block of so many units; its first word is the next */
    uint8_t *slab;           /* what is left of the newest slab */
    size_t slab_left;
    void *slabs; /* all of them, linked by their first word */
};

void pool_init(struct pool *p);
void pool_fini(struct pool *p);

/* Not cleared, aligned to 16. */
void *pool_take(struct pool *p, size_t size);

/* `size` as it was asked for; NULL is fine. */
void pool_give(struct pool *p, void *block, size_t size);

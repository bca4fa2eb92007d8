/* SPDX-License-Identifier: MIT */
/* Free lists over slabs: see pool.h. A block of class c is c units of a slab. */
#include "sim/pool.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/units.h"

/* A large page. */
#define SLAB_BYTES (2 * MIB)

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static size_t class_of(size_t size) {
    return size == 0 ? 1 : (size + POOL_UNIT - 1) / POOL_UNIT;
}

static bool pooled(size_t size) {
    return !SANITIZED && class_of(size) < POOL_CLASSES;
}

void pool_init(struct pool *p) {
    *p = (struct pool){0};
}

void pool_fini(struct pool *p) {
    while (p->slabs) {
        void *slab = p->slabs;
        memcpy(&p->slabs, slab, sizeof p->slabs);
        free(slab);
    }
}

static void *carve(struct pool *p, size_t size) {
    if (p->slab_left < size) {
        uint8_t *slab = aligned_alloc(SLAB_BYTES, SLAB_BYTES);
        ASSERT(slab != NULL);
        madvise(slab, SLAB_BYTES, MADV_HUGEPAGE);
        memcpy(slab, &p->slabs, sizeof p->slabs);
        p->slabs = slab;
        p->slab = slab + POOL_UNIT;
        p->slab_left = SLAB_BYTES - POOL_UNIT;
    }
    void *block = p->slab;
    p->slab += size;
    p->slab_left -= size;
    return block;
}

void *pool_take(struct pool *p, size_t size) {
    if (!pooled(size)) {
        void *block = malloc(size ? size : 1);
        ASSERT(block != NULL);
        return block;
    }
    size_t class = class_of(size);
    void *block = p->spare[class];
    if (block == NULL)
        return carve(p, class * POOL_UNIT);
    memcpy(&p->spare[class], block, sizeof block);
    return block;
}

void pool_give(struct pool *p, void *block, size_t size) {
    if (!pooled(size)) {
        free(block);
        return;
    }
    if (block == NULL)
        return;
    size_t class = class_of(size);
    memcpy(block, &p->spare[class], sizeof block);
    p->spare[class] = block;
}

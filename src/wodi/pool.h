/* SPDX-License-Identifier: MIT */
/* Bytes of any length in blocks of one size, out of memory that is reserved at the start.
 *
 * A body is a chain of blocks. Blocks beyond the highest ever used are not touched, so a pool that is large and stays
 * empty costs nothing. Who uses how many is the owner's to count: pool_blocks(). */
#pragma once

#include "base/arena.h"
#include "base/bytes.h"

enum { POOL_BLOCK = 256, POOL_DATA = POOL_BLOCK - 4 };

struct pool_block {
    uint32_t next; /* as `first` below */
    uint8_t data[POOL_DATA];
};

struct pool {
    struct pool_block *at;
    uint32_t cap;
    uint32_t touched; /* blocks below were used */
    uint32_t free;    /* chain of free ones among them */
    uint32_t used;
};

/* Bytes that are kept. All zero: none. */
struct body {
    uint32_t first; /* its index plus one */
    uint32_t len;
};

void pool_init(struct pool *p, uint32_t cap, struct arena *a);

static inline uint32_t pool_blocks(size_t len) {
    return (uint32_t)((len + POOL_DATA - 1) / POOL_DATA);
}

/* There must be room. */
struct body pool_keep(struct pool *p, struct bytes bytes);
void pool_drop(struct pool *p, struct body *body);
/* `out` has room for all of it. */
struct bytes pool_copy(const struct pool *p, struct body body, uint8_t *out);

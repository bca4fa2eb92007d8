/* SPDX-License-Identifier: MIT */
/* Bytes of any length in blocks of one size, out of memory that is reserved at the start.
 *
 * A body is a chain of blocks. Blocks beyond the highest ever used are not touched, so a pool that is large and stays
 * empty costs nothing. Who uses how many is the owner's to count: blocks_for(). */
#pragma once

#include "base/arena.h"
#include "base/bytes.h"

enum { BLOCK_BYTES = 256, BLOCK_DATA = BLOCK_BYTES - 4 };

struct block {
    uint32_t next; /* as `first` below */
    uint8_t data[BLOCK_DATA];
};

struct blocks {
    struct block *at;
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

void blocks_init(struct blocks *p, uint32_t cap, struct arena *a);

static inline uint32_t blocks_for(size_t len) {
    return (uint32_t)((len + BLOCK_DATA - 1) / BLOCK_DATA);
}

/* There must be room. */
struct body blocks_keep(struct blocks *p, struct bytes bytes);
void blocks_drop(struct blocks *p, struct body *body);
/* `out` has room for all of it. */
struct bytes blocks_copy(const struct blocks *p, struct body body, uint8_t *out);

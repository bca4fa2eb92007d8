/* SPDX-License-Identifier: MIT */
/*
 * Bounded first-in-first-out queue of fixed-size items in the caller's storage.
 *
 * Items are copied in and out. Item i (0 is the oldest) lies at slot (head + i) mod cap; nothing
 * is touched before it is used, so a large ring that stays short costs little memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
    uint8_t *at;
    uint32_t item_bytes;
    uint32_t cap;
    uint32_t head;
    uint32_t count;
};

size_t ring_bytes(uint32_t item_bytes, uint32_t cap);

/* `storage` holds ring_bytes(item_bytes, cap), aligned as the items need it. */
void ring_init(struct ring *r, void *storage, uint32_t item_bytes, uint32_t cap);

/* -ENOSPC if full. */
int ring_push(struct ring *r, const void *item);

/* -ENOENT if empty; `ret_item` may be NULL to drop the item. */
int ring_pop(struct ring *r, void *ret_item);

/* The item `i` places behind the oldest, for reading or changing in place; NULL if there is none.
 */
void *ring_at(const struct ring *r, uint32_t i);

void ring_clear(struct ring *r);

static inline bool ring_empty(const struct ring *r) {
    return r->count == 0;
}

static inline bool ring_full(const struct ring *r) {
    return r->count == r->cap;
}

static inline uint32_t ring_count(const struct ring *r) {
    return r->count;
}

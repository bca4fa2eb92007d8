/* SPDX-License-Identifier: MIT */
/*
 * Bounded queue: slot arithmetic without division, as the capacity need not be a power of two.
 *
 * Invariant: count <= cap, and head < cap unless cap is 0.
 */
#include "base/ring.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"

static uint8_t *slot(const struct ring *r, uint32_t i) {
    uint32_t to_end = r->cap - r->head;
    uint32_t place = i < to_end ? r->head + i : i - to_end;
    return r->at + (size_t)place * r->item_bytes;
}

size_t ring_bytes(uint32_t item_bytes, uint32_t cap) {
    size_t bytes;
    bool overflow = __builtin_mul_overflow((size_t)item_bytes, (size_t)cap, &bytes);
    ASSERT(!overflow);
    return bytes;
}

void ring_init(struct ring *r, void *storage, uint32_t item_bytes, uint32_t cap) {
    ASSERT(item_bytes > 0);
    *r = (struct ring){.at = storage, .item_bytes = item_bytes, .cap = cap};
}

int ring_push(struct ring *r, const void *item) {
    if (ring_full(r))
        return -ENOSPC;
    memcpy(slot(r, r->count), item, r->item_bytes);
    r->count++;
    return 0;
}

int ring_pop(struct ring *r, void *ret_item) {
    if (ring_empty(r))
        return -ENOENT;
    if (ret_item)
        memcpy(ret_item, slot(r, 0), r->item_bytes);
    r->head = r->head + 1 == r->cap ? 0 : r->head + 1;
    r->count--;
    return 0;
}

void *ring_at(const struct ring *r, uint32_t i) {
    return i < r->count ? slot(r, i) : NULL;
}

void ring_clear(struct ring *r) {
    r->head = 0;
    r->count = 0;
}

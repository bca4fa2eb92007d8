/* SPDX-License-Identifier: MIT */
/*
 * Min-heap of items that live in their owners (timers, simulated events).
 *
 * The smallest (key, tie) comes first; give each item a tie of its own (a sequence number) and the
 * order is total, hence the same on every machine. An item remembers its place, so it can be
 * removed or moved in O(log n). A zeroed item is in no heap. The array of pointers is the caller's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct heap_item {
    uint64_t key;
    uint64_t tie;
    uint32_t index; /* place in the array plus one; 0: in no heap */
};

struct heap {
    struct heap_item **at;
    uint32_t cap;
    uint32_t count;
};

/* Does not touch the array. */
void heap_init(struct heap *h, struct heap_item **array, uint32_t cap);

/* -ENOSPC if the heap is full. */
int heap_push(struct heap *h, struct heap_item *item);

/* NULL if the heap is empty. */
struct heap_item *heap_peek(const struct heap *h);
struct heap_item *heap_pop(struct heap *h);

/* The item must be in this heap. */
void heap_remove(struct heap *h, struct heap_item *item);
void heap_move(struct heap *h, struct heap_item *item, uint64_t key, uint64_t tie);

static inline bool heap_item_queued(const struct heap_item *item) {
    return item->index != 0;
}

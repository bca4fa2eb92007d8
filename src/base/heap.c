/* SPDX-License-Identifier: MIT */
/*
 * Min-heap with four children a node: half the depth of a binary one, children share a cache line.
 *
 * Invariant: at[i]->index == i + 1, and no item is smaller than its parent at (i - 1) / 4.
 */
#include "base/heap.h"

#include <errno.h>
#include <stddef.h>

#include "base/assert.h"

static bool less(const struct heap_item *a, const struct heap_item *b) {
    return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

static void put(struct heap *h, uint32_t i, struct heap_item *item) {
    h->at[i] = item;
    item->index = i + 1;
}

/* Place `item` at i or above. */
static void rise(struct heap *h, uint32_t i, struct heap_item *item) {
    while (i > 0) {
        uint32_t parent = (i - 1) / 4;
        if (!less(item, h->at[parent]))
            break;
        put(h, i, h->at[parent]);
        i = parent;
    }
    put(h, i, item);
}

static uint32_t smallest_child(const struct heap *h, uint32_t first) {
    uint32_t best = first;
    uint32_t end = h->count - first < 4 ? h->count : first + 4;
    for (uint32_t i = first + 1; i < end; i++)
        if (less(h->at[i], h->at[best]))
            best = i;
    return best;
}

/* Place `item` at i or below. */
static void sink(struct heap *h, uint32_t i, struct heap_item *item) {
    /* i has a child exactly if 4 i + 1 < count, written so that it cannot overflow */
    while (h->count > 1 && i <= (h->count - 2) / 4) {
        uint32_t child = smallest_child(h, 4 * i + 1);
        if (!less(h->at[child], item))
            break;
        put(h, i, h->at[child]);
        i = child;
    }
    put(h, i, item);
}

static void place(struct heap *h, uint32_t i, struct heap_item *item) {
    if (i > 0 && less(item, h->at[(i - 1) / 4]))
        rise(h, i, item);
    else
        sink(h, i, item);
}

void heap_init(struct heap *h, struct heap_item **array, uint32_t cap) {
    *h = (struct heap){.at = array, .cap = cap};
}

int heap_push(struct heap *h, struct heap_item *item) {
    ASSERT(!heap_item_queued(item));
    if (h->count == h->cap)
        return -ENOSPC;
    rise(h, h->count++, item);
    return 0;
}

struct heap_item *heap_peek(const struct heap *h) {
    return h->count ? h->at[0] : NULL;
}

struct heap_item *heap_pop(struct heap *h) {
    struct heap_item *top = heap_peek(h);
    if (top)
        heap_remove(h, top);
    return top;
}

void heap_remove(struct heap *h, struct heap_item *item) {
    ASSERT(heap_item_queued(item));
    uint32_t i = item->index - 1;
    ASSERT(i < h->count && h->at[i] == item);
    struct heap_item *tail = h->at[--h->count];
    item->index = 0;
    if (tail != item)
        place(h, i, tail);
}

void heap_move(struct heap *h, struct heap_item *item, uint64_t key, uint64_t tie) {
    ASSERT(heap_item_queued(item));
    uint32_t i = item->index - 1;
    ASSERT(i < h->count && h->at[i] == item);
    item->key = key;
    item->tie = tie;
    place(h, i, item);
}

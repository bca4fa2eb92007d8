/* SPDX-License-Identifier: MIT */
/*
 * Table of numbered slots whose ids go stale when a slot is freed.
 *
 * An id is a 12-bit generation (1..4095) above a 20-bit slot index; 0 is never an id. Each slot is
 * one word: the id itself while live, else its last generation above the index of the next free
 * slot. As no slot follows itself in the free list, a word equal to an id proves that the id is
 * live. Freed slots are reused last in, first out; an id comes back only after its slot was reused
 * 4095 times. Slots beyond the highest ever used are not touched.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define IDTABLE_INDEX_BITS 20
#define IDTABLE_NONE       ((uint32_t)0xFFFFF) /* no slot has this index */
#define IDTABLE_CAP_MAX    IDTABLE_NONE

struct idtable {
    uint32_t *slots;
    uint32_t cap;
    uint32_t used;      /* slots [0, used) have been touched */
    uint32_t free_head; /* index or IDTABLE_NONE */
    uint32_t count;     /* live ids */
};

size_t idtable_bytes(uint32_t cap);

/* `storage` holds idtable_bytes(cap), aligned to 4; it is not touched. */
void idtable_init(struct idtable *t, uint32_t cap, void *storage);

/* Makes an id; `ret_index` is the slot behind it, below cap. -ENOSPC if all slots are live. */
int idtable_alloc(struct idtable *t, uint32_t *ret_id, uint32_t *ret_index);

/* -ENOENT if the id is stale or was never given out. */
int idtable_get(const struct idtable *t, uint32_t id, uint32_t *ret_index);

/* -ENOENT as above; then nothing changes. */
int idtable_free(struct idtable *t, uint32_t id);

/* The id of a live slot, 0 if the slot is free. */
uint32_t idtable_id(const struct idtable *t, uint32_t index);

/* The lowest live slot whose index is at least `from`; IDTABLE_NONE if there is none. */
uint32_t idtable_next(const struct idtable *t, uint32_t from);

static inline uint32_t idtable_count(const struct idtable *t) {
    return t->count;
}

static inline uint32_t idtable_index_of(uint32_t id) {
    return id & IDTABLE_NONE;
}

/* Live slots in index order; the current one may be freed inside the loop. */
#define IDTABLE_EACH(index, t)                                         \
    for (uint32_t index = idtable_next((t), 0); index != IDTABLE_NONE; \
         index = idtable_next((t), index + 1))

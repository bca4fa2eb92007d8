/* SPDX-License-Identifier: MIT */
/*
 * Ids that go stale: one word a slot, see idtable.h for its meaning.
 *
 * A slot is live exactly if the low bits of its word are its own index. IDTABLE_NONE ends the free
 * list and is no slot's index, so it can never make a free slot look live.
 */
#include "base/idtable.h"

#include <errno.h>
#include <stdbool.h>

#include "base/assert.h"

static uint32_t generation(uint32_t word) {
    return word >> IDTABLE_INDEX_BITS;
}

static uint32_t word_of(uint32_t gen, uint32_t index) {
    return gen << IDTABLE_INDEX_BITS | index;
}

static uint32_t next_generation(uint32_t gen) {
    uint32_t max = UINT32_MAX >> IDTABLE_INDEX_BITS;
    return gen == max ? 1 : gen + 1;
}

static bool is_live(const struct idtable *t, uint32_t index) {
    return index < t->used && idtable_index_of(t->slots[index]) == index;
}

size_t idtable_bytes(uint32_t cap) {
    ASSERT(cap <= IDTABLE_CAP_MAX);
    return (size_t)cap * sizeof(uint32_t);
}

void idtable_init(struct idtable *t, uint32_t cap, void *storage) {
    ASSERT(cap <= IDTABLE_CAP_MAX);
    *t = (struct idtable){.slots = storage, .cap = cap, .free_head = IDTABLE_NONE};
}

int idtable_alloc(struct idtable *t, uint32_t *ret_id, uint32_t *ret_index) {
    uint32_t index, gen;
    if (t->free_head != IDTABLE_NONE) {
        index = t->free_head;
        gen = next_generation(generation(t->slots[index]));
        t->free_head = idtable_index_of(t->slots[index]);
    } else if (t->used < t->cap) {
        index = t->used++;
        gen = 1;
    } else {
        return -ENOSPC;
    }
    t->slots[index] = word_of(gen, index);
    t->count++;
    *ret_id = t->slots[index];
    *ret_index = index;
    return 0;
}

int idtable_get(const struct idtable *t, uint32_t id, uint32_t *ret_index) {
    uint32_t index = idtable_index_of(id);
    if (index >= t->used || t->slots[index] != id)
        return -ENOENT;
    *ret_index = index;
    return 0;
}

int idtable_free(struct idtable *t, uint32_t id) {
    uint32_t index;
    int r = idtable_get(t, id, &index);
    if (r < 0)
        return r;
    t->slots[index] = word_of(generation(id), t->free_head);
    t->free_head = index;
    t->count--;
    return 0;
}

uint32_t idtable_id(const struct idtable *t, uint32_t index) {
    return is_live(t, index) ? t->slots[index] : 0;
}

uint32_t idtable_next(const struct idtable *t, uint32_t from) {
    for (uint32_t i = from; i < t->used; i++)
        if (is_live(t, i))
            return i;
    return IDTABLE_NONE;
}

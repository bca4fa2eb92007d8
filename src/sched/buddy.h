/* SPDX-License-Identifier: MIT */
/* The buddy tree: which block of neighbouring nodes has the least to do.
 *
 * Level l has blocks of 2^l nodes; the last block of a level has fewer where the nodes are no multiple of that. A
 * job of n nodes belongs to the lowest level whose blocks have n, and goes to the least loaded block there. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { BUDDY_LEVELS_MAX = 31 };

#define BUDDY_NONE UINT32_MAX

struct buddy {
    uint32_t nodes;
    uint32_t levels;
    uint64_t *loads[BUDDY_LEVELS_MAX]; /* by block: PEs in use, over all slots */
};

/* Words of memory it needs. */
size_t buddy_words(uint32_t nodes);
void buddy_init(struct buddy *b, uint32_t nodes, uint64_t *words);
void buddy_clear(struct buddy *b);

/* So many PEs more are used on each of these nodes, or fewer. */
void buddy_add(struct buddy *b, uint32_t first, uint32_t last, uint64_t pes);
void buddy_remove(struct buddy *b, uint32_t first, uint32_t last, uint64_t pes);

/* The same for many at once: after buddy_clear() note them all, then reckon; in between nothing else can be asked. */
void buddy_note(struct buddy *b, uint32_t first, uint32_t last, uint64_t pes);
void buddy_reckon(struct buddy *b);

/* Where a job of so many nodes belongs: 1 <= count <= nodes. */
uint32_t buddy_level(const struct buddy *b, uint32_t count);
uint32_t buddy_blocks(const struct buddy *b, uint32_t level);
uint64_t buddy_load(const struct buddy *b, uint32_t level, uint32_t block);

/* The first block of the level, from this on, that has less to do than that; BUDDY_NONE: none has. */
uint32_t buddy_below(const struct buddy *b, uint32_t level, uint32_t from, uint64_t load);

/* The nodes of a block. */
uint32_t buddy_first(uint32_t level, uint32_t block);
uint32_t buddy_last(const struct buddy *b, uint32_t level, uint32_t block);

/* SPDX-License-Identifier: MIT */
/* The buddy tree; see buddy.h. */
#include "sched/buddy.h"

#include <string.h>

#include "base/assert.h"

static uint32_t levels_of(uint32_t nodes) {
    uint32_t level = 0;
    while (((uint64_t)1 << level) < nodes)
        level++;
    return level + 1;
}

static uint32_t blocks_of(uint32_t nodes, uint32_t level) {
    return (uint32_t)(((uint64_t)nodes + ((uint64_t)1 << level) - 1) >> level);
}

size_t buddy_words(uint32_t nodes) {
    size_t words = 0;
    for (uint32_t l = 0; l < levels_of(nodes); l++)
        words += blocks_of(nodes, l);
    return words;
}

void buddy_init(struct buddy *b, uint32_t nodes, uint64_t *words) {
    *b = (struct buddy){.nodes = nodes, .levels = levels_of(nodes)};
    ASSERT(b->levels <= BUDDY_LEVELS_MAX);
    for (uint32_t l = 0; l < b->levels; l++) {
        b->loads[l] = words;
        words += blocks_of(nodes, l);
    }
    buddy_clear(b);
}

void buddy_clear(struct buddy *b) {
    memset(b->loads[0], 0, sizeof(uint64_t) * buddy_words(b->nodes));
}

void buddy_add(struct buddy *b, uint32_t first, uint32_t last, uint64_t pes) {
    for (uint32_t l = 0; l < b->levels; l++)
        for (uint32_t block = first >> l; block <= last >> l; block++) {
            uint32_t low = buddy_first(l, block), high = buddy_last(b, l, block);
            low = low > first ? low : first;
            high = high < last ? high : last;
            b->loads[l][block] += (uint64_t)(high - low + 1) * pes;
        }
}

/* Sums are modulo a power of two: what was added goes away again. */
void buddy_remove(struct buddy *b, uint32_t first, uint32_t last, uint64_t pes) {
    buddy_add(b, first, last, -pes);
}

/* Until it is reckoned the lowest level has differences to the node before. */
void buddy_note(struct buddy *b, uint32_t first, uint32_t last, uint64_t pes) {
    b->loads[0][first] += pes;
    if (last + 1 < b->nodes)
        b->loads[0][last + 1] -= pes;
}

void buddy_reckon(struct buddy *b) {
    for (uint32_t n = 1; n < b->nodes; n++)
        b->loads[0][n] += b->loads[0][n - 1];
    for (uint32_t l = 1; l < b->levels; l++) {
        uint32_t below = blocks_of(b->nodes, l - 1);
        for (uint32_t i = 0; i < blocks_of(b->nodes, l); i++)
            b->loads[l][i] =
                b->loads[l - 1][2 * i] + (2 * i + 1 < below ? b->loads[l - 1][2 * i + 1] : 0);
    }
}

uint32_t buddy_level(const struct buddy *b, uint32_t count) {
    ASSERT(count >= 1 && count <= b->nodes);
    return levels_of(count) - 1;
}

uint32_t buddy_blocks(const struct buddy *b, uint32_t level) {
    return blocks_of(b->nodes, level);
}

uint64_t buddy_load(const struct buddy *b, uint32_t level, uint32_t block) {
    return b->loads[level][block];
}

uint32_t buddy_below(const struct buddy *b, uint32_t level, uint32_t from, uint64_t load) {
    const uint64_t *loads = b->loads[level];
    uint32_t blocks = blocks_of(b->nodes, level);
    for (uint32_t i = from; i < blocks && load > 0; i++)
        if (loads[i] < load)
            return i;
    return BUDDY_NONE;
}

uint32_t buddy_first(uint32_t level, uint32_t block) {
    return block << level;
}

uint32_t buddy_last(const struct buddy *b, uint32_t level, uint32_t block) {
    uint64_t end = ((uint64_t)block + 1) << level;
    return (uint32_t)((end < b->nodes ? end : b->nodes) - 1);
}

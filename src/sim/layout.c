/* SPDX-License-Identifier: MIT */
/* What the test machine uses global memory for: see layout.h.
 *
 * Offsets only ever grow, so cells never overlap. */
#include "sim/layout.h"

#include "base/assert.h"
#include "machine/primitive.h"

void layout_init(struct layout *l, const struct limits *limits, uint32_t cells,
                 uint32_t cell_bytes) {
    ASSERT(limits->variables >= 2 && limits->events >= 2 && cells > 0);
    ASSERT(cell_bytes >= 8 && cell_bytes % 8 == 0);
    *l = (struct layout){.universe = limits_universe(limits),
                         .root = limits->nodes,
                         .variables = limits->variables,
                         .counters = limits->variables / 2,
                         .events = limits->events,
                         .cells = cells,
                         .cell_bytes = cell_bytes,
                         .heap_bytes = cells * cell_bytes};
}

void layout_add_bulk(struct layout *l, uint32_t bytes) {
    ASSERT(l->bulks < LAYOUT_BULKS_MAX);
    ASSERT(bytes >= 8 && bytes % 8 == 0);
    l->bulk_offset[l->bulks] = l->heap_bytes;
    l->bulk_bytes[l->bulks] = bytes;
    l->bulks++;
    l->heap_bytes += bytes;
}

uint32_t layout_local_event(const struct layout *l) {
    return l->events >= 3 ? l->events - 1 : NO_EVENT;
}

uint32_t layout_data_events(const struct layout *l, uint32_t *ret_first) {
    *ret_first = 1;
    return l->events >= 3 ? l->events - 2 : l->events - 1;
}

uint32_t layout_cell_offset(const struct layout *l, uint32_t cell) {
    if (cell < l->cells)
        return cell * l->cell_bytes;
    ASSERT(cell - l->cells < l->bulks);
    return l->bulk_offset[cell - l->cells];
}

uint32_t layout_cell_len(const struct layout *l, uint32_t cell) {
    if (cell < l->cells)
        return l->cell_bytes;
    ASSERT(cell - l->cells < l->bulks);
    return l->bulk_bytes[cell - l->cells];
}

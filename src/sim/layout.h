/* SPDX-License-Identifier: MIT */
/* What the test machine uses global memory for, so that every change names its author.
 *
 * Variables: the first ones are counters, stored into only by their own node; the others hold the
 * tag of the compare that wrote them. Heap: small cells, each filled with the tag of the XFER that
 * wrote it, then bulk cells, each filled with the tag of a BULK. Event 0 counts XFERs without a
 * body; the last event, where there are three, is signalled only locally. All of it has one
 * numbering, the place: variables, then events, then cells. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/limits.h"

enum { LAYOUT_BULKS_MAX = 3 };

struct layout {
    uint32_t universe; /* nodes and manager seats */
    uint32_t root;     /* the seat whose daemon hears who is up */
    uint32_t variables;
    uint32_t counters;
    uint32_t events;
    uint32_t cells;
    uint32_t cell_bytes;
    uint32_t bulks;
    uint32_t bulk_offset[LAYOUT_BULKS_MAX];
    uint32_t bulk_bytes[LAYOUT_BULKS_MAX];
    uint32_t heap_bytes;
};

/* Needs at least 2 variables, 2 events and a cell; the root is the first seat. */
void layout_init(struct layout *l, const struct limits *limits, uint32_t cells,
                 uint32_t cell_bytes);

/* Appends a bulk cell; lengths are multiples of 8. */
void layout_add_bulk(struct layout *l, uint32_t bytes);

/* The event that is only signalled locally, NO_EVENT if there are too few. */
uint32_t layout_local_event(const struct layout *l);

/* How many events XFERs with a body may use, and the first of them. */
uint32_t layout_data_events(const struct layout *l, uint32_t *ret_first);

static inline uint32_t layout_places(const struct layout *l) {
    return l->variables + l->events + l->cells + l->bulks;
}

static inline uint32_t layout_event_place(const struct layout *l, uint32_t event) {
    return l->variables + event;
}

static inline uint32_t layout_cell_place(const struct layout *l, uint32_t cell) {
    return l->variables + l->events + cell;
}

static inline bool layout_is_counter(const struct layout *l, uint32_t place) {
    return place < l->counters;
}

static inline bool layout_is_variable(const struct layout *l, uint32_t place) {
    return place < l->variables;
}

static inline bool layout_is_event(const struct layout *l, uint32_t place) {
    return place >= l->variables && place < l->variables + l->events;
}

/* Where a cell, small or bulk, lies in the heap. */
uint32_t layout_cell_offset(const struct layout *l, uint32_t cell);
uint32_t layout_cell_len(const struct layout *l, uint32_t cell);

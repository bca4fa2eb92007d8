/* SPDX-License-Identifier: MIT */
/* Everything has a limit, fixed at start.
 *
 * A daemon reserves one arena from these numbers and never allocates again; pages it does not touch
 * cost nothing. A simulated node gets small limits, a real manager large ones. Whatever would
 * exceed a limit is refused with a status, it never grows anything. */
#pragma once

#include <stdint.h>

/* Most managers (roots) a cluster may have, the acting one and its standbys. */
enum { ROOTS_MAX = 4 };

/* Most bytes of a record that is gathered. */
enum { RECORD_BYTES_MAX = 1024 };

struct limits {
    uint32_t nodes;           /* compute nodes: numbers 0 .. nodes-1 */
    uint32_t roots;           /* manager seats: numbers nodes .. nodes+roots-1 */
    uint32_t variables;       /* 64-bit words of global memory */
    uint32_t events;          /* counters of signals */
    uint32_t heap_bytes;      /* symmetric heap; its bytes belong to the world */
    uint32_t children;        /* tree links a node accepts; the root accepts any number */
    uint32_t window;          /* ordered operations in flight at once */
    uint32_t queue;           /* operations the root holds beyond the window */
    uint32_t outstanding;     /* requests one node may have unanswered, at most 64 */
    uint32_t body_bytes;      /* largest body of an ordered operation */
    uint32_t standing;        /* standing compares at once */
    uint32_t transfers;       /* bulk transfers a node takes part in at once */
    uint32_t chunk_bytes;     /* size of a bulk chunk */
    uint32_t slots;           /* chunks a receiver grants ahead */
    uint32_t record_channels; /* records a node keeps for gathers; 0: no gathers */
    uint32_t record_bytes;    /* the largest record */
};

/* How many numbers a node set ranges over: compute nodes and manager seats. */
static inline uint32_t limits_universe(const struct limits *l) {
    return l->nodes + l->roots;
}

/* SPDX-License-Identifier: MIT */
/* The timers of one node, by layer and id.
 *
 * A timer is in the clock, or due and in the node's inbox, or in neither: so one that is cancelled
 * or moved at the last moment does not fire. A timer once named keeps its entry for the node's
 * life. */
#pragma once

#include <stdint.h>

#include "sim/event.h"

struct timer {
    struct event event;
    uint32_t id;
    uint8_t layer;
};

struct timers {
    struct timer **slots; /* hashed, linear probing; at most half full */
    uint32_t cap;         /* a power of two, or 0 */
    uint32_t count;
};

/* Sets, moves or (at 0) cancels. */
void timers_set(struct world *w, uint32_t node, uint8_t layer, uint32_t id, uint64_t at);

/* Takes them all out. */
void timers_fini(struct world *w, struct timers *t);

/* SPDX-License-Identifier: MIT */
/* The timers of a node's machines, by layer and id.
 *
 * A machine has a handful of timers that it sets again and again, so a small table that is searched
 * from end to end does. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Set at the same time. */
enum { ALARMS_MAX = 64 };

struct alarm {
    uint64_t at; /* 0: not set */
    uint32_t id;
    uint8_t layer;
};

struct alarms {
    struct alarm list[ALARMS_MAX];
    uint32_t count;
};

/* Sets, moves or (at 0) cancels. */
void alarms_set(struct alarms *a, uint8_t layer, uint32_t id, uint64_t at);

/* When the next is due, 0 if there is none. */
uint64_t alarms_next(const struct alarms *a);

/* Takes out the one that is due first; false if none is due. */
bool alarms_due(struct alarms *a, uint64_t now, struct alarm *ret);

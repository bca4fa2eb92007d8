/* SPDX-License-Identifier: MIT */
/* The world's clock: events in the order of their times, those of one time as they were put in.
 *
 * Two heaps: one of events that may be taken out again (timers, wake-ups), which know their place;
 * one of all others, which do not, and which is smaller as timers are mostly far ahead. Both hold
 * times beside pointers, so finding the next event touches no event but that one: with a hundred
 * thousand frames under way this is what the speed of a simulation hangs on. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/event.h"

struct clock_entry {
    uint64_t at;
    uint64_t order; /* of insertion */
    struct event *event;
};

struct clock_heap {
    struct clock_entry *entries;
    uint32_t count;
    uint32_t cap;
    bool placed; /* events know their place */
};

struct clock {
    struct clock_heap timers;
    struct clock_heap others;
    uint64_t inserted;
};

void clock_init(struct clock *c);
void clock_fini(struct clock *c);

void clock_push(struct clock *c, struct event *e, uint64_t at);

/* The time of the next event; false if there is none. */
bool clock_peek(const struct clock *c, uint64_t *ret_at);

/* NULL if there is none. */
struct event *clock_pop(struct clock *c);

/* Only timers and wake-ups; does nothing if it is not in the clock. */
void clock_remove(struct clock *c, struct event *e);

/* What will be popped next, and perhaps after that: hints for fetching memory ahead. May be NULL.
 */
const struct event *clock_hint(const struct clock *c, const struct event **ret_second);

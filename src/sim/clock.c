/* SPDX-License-Identifier: MIT */
/* Heaps with four children a node: see clock.h.
 *
 * Invariant: no entry is before its parent at (i - 1) / 4; in the heap of timers event->index is
 * i + 1, and 0 for a timer that is not in it. */
#include "sim/clock.h"

#include <stdlib.h>

#include "base/assert.h"

static bool can_leave(const struct event *e) {
    return e->kind == EVENT_TIMER || e->kind == EVENT_WAKE;
}

static bool before(const struct clock_entry *a, const struct clock_entry *b) {
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put(struct clock_heap *h, uint32_t i, const struct clock_entry *entry) {
    h->entries[i] = *entry;
    if (h->placed)
        entry->event->index = i + 1;
}

static void rise(struct clock_heap *h, uint32_t i, struct clock_entry entry) {
    while (i > 0) {
        uint32_t parent = (i - 1) / 4;
        if (!before(&entry, &h->entries[parent]))
            break;
        put(h, i, &h->entries[parent]);
        i = parent;
    }
    put(h, i, &entry);
}

/* The first of up to four entries from `from` on, which must exist. */
static uint32_t first_of(const struct clock_heap *h, uint32_t from) {
    uint32_t best = from;
    uint32_t end = h->count - from < 4 ? h->count : from + 4;
    for (uint32_t i = from + 1; i < end; i++)
        best = before(&h->entries[i], &h->entries[best]) ? i : best;
    return best;
}

static void sink(struct clock_heap *h, uint32_t i, struct clock_entry entry) {
    while ((uint64_t)i * 4 + 1 < h->count) {
        uint32_t child = first_of(h, i * 4 + 1);
        if (!before(&h->entries[child], &entry))
            break;
        put(h, i, &h->entries[child]);
        i = child;
    }
    put(h, i, &entry);
}

void clock_init(struct clock *c) {
    *c = (struct clock){.timers.placed = true};
}

void clock_fini(struct clock *c) {
    free(c->timers.entries);
    free(c->others.entries);
}

static void grow(struct clock_heap *h) {
    ASSERT(h->cap <= UINT32_MAX / 2);
    h->cap = h->cap ? h->cap * 2 : 1024;
    h->entries = realloc(h->entries, (size_t)h->cap * sizeof *h->entries);
    ASSERT(h->entries != NULL);
}

void clock_push(struct clock *c, struct event *e, uint64_t at) {
    struct clock_heap *h = can_leave(e) ? &c->timers : &c->others;
    if (h->count == h->cap)
        grow(h);
    rise(h, h->count++, (struct clock_entry){.at = at, .order = c->inserted++, .event = e});
}

/* The heap with the next event; NULL if there is none. */
static const struct clock_heap *next_heap(const struct clock *c) {
    if (c->timers.count == 0)
        return c->others.count ? &c->others : NULL;
    if (c->others.count == 0)
        return &c->timers;
    return before(&c->timers.entries[0], &c->others.entries[0]) ? &c->timers : &c->others;
}

bool clock_peek(const struct clock *c, uint64_t *ret_at) {
    const struct clock_heap *h = next_heap(c);
    if (h == NULL)
        return false;
    *ret_at = h->entries[0].at;
    return true;
}

/* Fills the hole at `i` with the last entry. */
static void fill(struct clock_heap *h, uint32_t i) {
    struct clock_entry last = h->entries[--h->count];
    if (i == h->count)
        return;
    if (i > 0 && before(&last, &h->entries[(i - 1) / 4]))
        rise(h, i, last);
    else
        sink(h, i, last);
}

struct event *clock_pop(struct clock *c) {
    if (next_heap(c) == NULL)
        return NULL;
    struct clock_heap *h = next_heap(c) == &c->timers ? &c->timers : &c->others;
    struct event *e = h->entries[0].event;
    if (h->placed)
        e->index = 0;
    fill(h, 0);
    return e;
}

void clock_remove(struct clock *c, struct event *e) {
    ASSERT(can_leave(e));
    if (e->index == 0)
        return;
    uint32_t i = e->index - 1;
    ASSERT(i < c->timers.count && c->timers.entries[i].event == e);
    e->index = 0;
    fill(&c->timers, i);
}

const struct event *clock_hint(const struct clock *c, const struct event **ret_second) {
    const struct clock_heap *h = next_heap(c);
    *ret_second = NULL;
    if (h == NULL)
        return NULL;
    for (uint32_t i = 1; i < h->count && i < 5; i++)
        __builtin_prefetch(h->entries[i].event);
    if (h->count > 1)
        *ret_second = h->entries[first_of(h, 1)].event;
    return h->entries[0].event;
}

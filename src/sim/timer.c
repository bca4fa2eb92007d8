/* SPDX-License-Identifier: MIT */
/* Timers of one node: see timer.h. */
#include "sim/timer.h"

#include <stdlib.h>
#include <string.h>

#include "sim/inside.h"

static uint32_t home(const struct timers *t, uint8_t layer, uint32_t id) {
    uint64_t key = (uint64_t)id << 1 | layer;
    return (uint32_t)((key * 0x9E3779B97F4A7C15) >> 32) & (t->cap - 1);
}

/* The slot where the timer is or would be. */
static struct timer **find(const struct timers *t, uint8_t layer, uint32_t id) {
    uint32_t i = home(t, layer, id);
    while (t->slots[i] && (t->slots[i]->id != id || t->slots[i]->layer != layer))
        i = (i + 1) & (t->cap - 1);
    return &t->slots[i];
}

static void grow(struct timers *t) {
    struct timers old = *t;
    t->cap = old.cap ? old.cap * 2 : 8;
    t->slots = calloc(t->cap, sizeof(struct timer *));
    ASSERT(t->slots != NULL);
    for (uint32_t i = 0; i < old.cap; i++)
        if (old.slots[i])
            *find(t, old.slots[i]->layer, old.slots[i]->id) = old.slots[i];
    free(old.slots);
}

static struct timer *lookup(struct world *w, struct node *n, uint8_t layer, uint32_t id) {
    struct timers *t = &n->timers;
    if (t->count * 2 >= t->cap)
        grow(t);
    struct timer **slot = find(t, layer, id);
    if (*slot == NULL) {
        struct timer *timer = pool_take(&w->pool, sizeof *timer);
        memset(timer, 0, sizeof *timer);
        timer->id = id;
        timer->layer = layer;
        timer->event.kind = EVENT_TIMER;
        timer->event.node = n->number;
        timer->event.life = n->boots;
        list_init(&timer->event.place);
        *slot = timer;
        t->count++;
    }
    return *slot;
}

static void stop(struct world *w, struct timer *t) {
    clock_remove(&w->clock, &t->event);
    list_remove(&t->event.place);
}

void timers_set(struct world *w, uint32_t node, uint8_t layer, uint32_t id, uint64_t at) {
    struct timer *t = lookup(w, &w->nodes[node], layer, id);
    stop(w, t);
    if (at != 0)
        clock_push(&w->clock, &t->event, at > w->now ? at : w->now);
}

void timers_fini(struct world *w, struct timers *t) {
    for (uint32_t i = 0; i < t->cap; i++) {
        if (t->slots[i] == NULL)
            continue;
        stop(w, t->slots[i]);
        pool_give(&w->pool, t->slots[i], sizeof *t->slots[i]);
    }
    free(t->slots);
    *t = (struct timers){0};
}

/* SPDX-License-Identifier: MIT */
/* Timers of machines: see alarms.h. */
#include "os/alarms.h"

#include <stddef.h>

#include "base/assert.h"

void alarms_set(struct alarms *a, uint8_t layer, uint32_t id, uint64_t at) {
    struct alarm *slot = NULL; /* its own, else one that is free */
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->list[i].at != 0 && a->list[i].id == id && a->list[i].layer == layer) {
            slot = &a->list[i];
            break;
        }
        if (a->list[i].at == 0 && slot == NULL)
            slot = &a->list[i];
    }
    if (slot == NULL) {
        if (at == 0)
            return;
        ASSERT(a->count < ALARMS_MAX);
        slot = &a->list[a->count++];
    }
    *slot = (struct alarm){.at = at, .id = id, .layer = layer};
}

static const struct alarm *first(const struct alarms *a) {
    const struct alarm *best = NULL;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->list[i].at != 0 && (best == NULL || a->list[i].at < best->at))
            best = &a->list[i];
    return best;
}

uint64_t alarms_next(const struct alarms *a) {
    const struct alarm *next = first(a);
    return next == NULL ? 0 : next->at;
}

bool alarms_due(struct alarms *a, uint64_t now, struct alarm *ret) {
    const struct alarm *next = first(a);
    if (next == NULL || next->at > now)
        return false;
    *ret = *next;
    alarms_set(a, ret->layer, ret->id, 0);
    return true;
}

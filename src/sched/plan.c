/* SPDX-License-Identifier: MIT */
/* Reservations; see plan.h. Neighbours that are equal become one step where a reservation begins or ends, so there
 * are at most two steps for each, and one. */
#include "sched/plan.h"

#include <string.h>

#include "base/assert.h"
#include "base/units.h"

size_t plan_steps(uint32_t reservations) {
    return 2 * (size_t)reservations + 8;
}

void plan_begin(struct plan *p, struct plan_step *steps, uint32_t cap, uint64_t now, int64_t pes) {
    *p = (struct plan){.steps = steps, .end = 1, .cap = cap};
    steps[0] = (struct plan_step){now, pes};
}

void plan_append(struct plan *p, uint64_t at, uint64_t pes) {
    struct plan_step *last = &p->steps[p->end - 1];
    ASSERT(last->at <= at && p->end < p->cap);
    if (last->at == at)
        last->free += (int64_t)pes;
    else
        p->steps[p->end++] = (struct plan_step){at, last->free + (int64_t)pes};
}

void plan_pass(struct plan *p, uint64_t now) {
    while (p->first + 1 < p->end && p->steps[p->first + 1].at <= now)
        p->first++;
    if (p->steps[p->first].at < now)
        p->steps[p->first].at = now;
    if (p->first > p->cap / 2) {
        memmove(p->steps, p->steps + p->first, sizeof p->steps[0] * (p->end - p->first));
        p->end -= p->first;
        p->first = 0;
    }
}

uint64_t plan_earliest(const struct plan *p, uint64_t from, uint64_t ticks, uint64_t pes) {
    uint64_t start = from > p->steps[p->first].at ? from : p->steps[p->first].at;
    const struct plan_step *end = p->steps + p->end;
    for (const struct plan_step *s = p->steps + p->first; s < end; s++) {
        uint64_t until = s + 1 < end ? s[1].at : STORM_NEVER;
        if (until <= start)
            continue;
        if (s->free < (int64_t)pes)
            start = until;
        else if (until >= units_after(start, ticks))
            return start;
    }
    return STORM_NEVER;
}

/* The step that begins at this time, made if need be. */
static uint32_t cut(struct plan *p, uint64_t at) {
    uint32_t low = p->first, high = p->end; /* the first step that is not earlier */
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (p->steps[mid].at < at)
            low = mid + 1;
        else
            high = mid;
    }
    if (low < p->end && p->steps[low].at == at)
        return low;
    ASSERT(low > p->first);
    if (p->end == p->cap) {
        ASSERT(p->first > 0);
        memmove(p->steps, p->steps + p->first, sizeof p->steps[0] * (p->end - p->first));
        low -= p->first;
        p->end -= p->first;
        p->first = 0;
    }
    memmove(&p->steps[low + 1], &p->steps[low], sizeof p->steps[0] * (p->end - low));
    p->steps[low] = (struct plan_step){at, p->steps[low - 1].free};
    p->end++;
    return low;
}

/* Nothing changes here any more? Then it is no step. */
static void join(struct plan *p, uint32_t i) {
    if (i <= p->first || i >= p->end || p->steps[i].free != p->steps[i - 1].free)
        return;
    memmove(&p->steps[i], &p->steps[i + 1], sizeof p->steps[0] * (p->end - i - 1));
    p->end--;
}

static void change(struct plan *p, uint64_t from, uint64_t to, int64_t pes) {
    uint64_t begin = p->steps[p->first].at;
    if (from < begin)
        from = begin;
    if (to <= from)
        return;
    uint32_t a = cut(p, from), first = p->first;
    uint32_t b = to == STORM_NEVER ? p->end : cut(p, to);
    a -= first - p->first; /* room may have been made before them */
    for (uint32_t i = a; i < b; i++)
        p->steps[i].free += pes;
    join(p, b);
    join(p, a);
}

void plan_take(struct plan *p, uint64_t from, uint64_t to, uint64_t pes) {
    change(p, from, to, -(int64_t)pes);
}

void plan_give(struct plan *p, uint64_t from, uint64_t to, uint64_t pes) {
    change(p, from, to, (int64_t)pes);
}

/* SPDX-License-Identifier: MIT */
/* What really became of the processes of each run: see deeds.h. */
#include "sim/deeds.h"

#include <stdlib.h>

#include "base/assert.h"
#include "wire/message.h"

void deeds_fini(struct deeds *d) {
    for (uint32_t i = 0; i < d->count; i++)
        free(d->runs[i].ranks);
    free(d->runs);
    free(d->living);
    *d = (struct deeds){0};
}

static struct run_deeds *find(const struct deeds *d, uint64_t run) {
    for (uint32_t i = d->count; i-- > 0;)
        if (d->runs[i].run == run)
            return &d->runs[i];
    return NULL;
}

static struct run_deeds *add(struct deeds *d, const struct sim_deed *deed) {
    if (d->count == d->cap) {
        d->cap = d->cap ? 2 * d->cap : 64;
        d->runs = realloc(d->runs, d->cap * sizeof *d->runs);
        ASSERT(d->runs != NULL);
    }
    struct process_deed *ranks = calloc(deed->size, sizeof *ranks);
    ASSERT(ranks != NULL);
    d->runs[d->count] = (struct run_deeds){.run = deed->run, .size = deed->size, .ranks = ranks};
    return &d->runs[d->count++];
}

static enum fate fate_of(const struct sim_deed *deed) {
    switch (deed->event) {
    case CHILD_STARTED:
        return FATE_ALIVE;
    case CHILD_FAILED:
        return FATE_FAILED;
    case CHILD_EXITED:
        return FATE_EXITED;
    default:
        return deed->crash ? FATE_CRASHED : FATE_KILLED;
    }
}

void deeds_watch(void *context, const struct sim_deed *deed) {
    struct deeds *d = context;
    struct run_deeds *r = find(d, deed->run);
    if (r == NULL)
        r = add(d, deed);
    ASSERT(deed->rank < r->size);
    struct process_deed *p = &r->ranks[deed->rank];
    bool begins = deed->event == CHILD_STARTED || deed->event == CHILD_FAILED;
    if (begins && p->fate != FATE_NONE) {
        d->agains++;
        d->again = r->run;
    }
    r->alive -= p->fate == FATE_ALIVE;
    *p = (struct process_deed){
        .fate = (uint8_t)fate_of(deed), .value = deed->value, .wrote = deed->wrote};
    r->alive += p->fate == FATE_ALIVE;
}

static struct living *living_of(struct deeds *d, const struct sim_life *life) {
    for (uint32_t i = 0; i < d->living_count; i++)
        if (d->living[i].run == life->run && d->living[i].node == life->node)
            return &d->living[i];
    ASSERT(life->begins);
    if (d->living_count == d->living_cap) {
        d->living_cap = d->living_cap ? 2 * d->living_cap : 64;
        d->living = realloc(d->living, d->living_cap * sizeof *d->living);
        ASSERT(d->living != NULL);
    }
    d->living[d->living_count] = (struct living){.run = life->run, .node = life->node};
    return &d->living[d->living_count++];
}

void deeds_lives(void *context, const struct sim_life *life) {
    struct deeds *d = context;
    struct living *l = living_of(d, life);
    if (life->begins) {
        l->own += life->own;
        l->all++;
        d->births++;
        return;
    }
    ASSERT(l->all > 0 && l->own >= life->own);
    l->own -= life->own;
    if (--l->all == 0)
        *l = d->living[--d->living_count];
}

const struct run_deeds *deeds_find(const struct deeds *d, uint64_t run) {
    return find(d, run);
}

uint32_t deeds_alive(const struct deeds *d, uint32_t job) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->count; i++)
        n += run_job(d->runs[i].run) == job ? d->runs[i].alive : 0;
    return n;
}

uint32_t deeds_count(const struct run_deeds *r, enum fate fate, uint32_t value) {
    uint32_t n = 0;
    for (uint32_t i = 0; r != NULL && i < r->size; i++)
        n += r->ranks[i].fate == fate && (value == UINT32_MAX || r->ranks[i].value == value);
    return n;
}

uint64_t deeds_wrote(const struct run_deeds *r) {
    uint64_t sum = 0;
    for (uint32_t i = 0; r != NULL && i < r->size; i++)
        sum += r->ranks[i].wrote;
    return sum;
}

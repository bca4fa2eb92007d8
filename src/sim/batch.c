/* SPDX-License-Identifier: MIT */
/* A workload under a policy, in virtual time; see batch.h. */
#include "sim/batch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/heap.h"
#include "base/list.h"
#include "sched/court.h"

/* A job that runs. */
struct actor {
    struct heap_item end;
    size_t job;
    uint64_t left;     /* ticks of work, */
    uint64_t since;    /* as of this time */
    uint32_t num, den; /* its pace since then */
    uint32_t court;    /* its number there */
    uint32_t place;    /* in the cast */
};

struct batch {
    const struct workload *w;
    const struct batch_config *c;
    struct batch_result *result;
    void *memory;
    size_t memory_bytes;
    struct court *court;
    struct actor *actors; /* by number in the court */
    uint32_t *cast;       /* who runs, in no order */
    uint32_t cast_count;
    struct heap ends;
    struct heap_item **ends_array;
    uint32_t *crowd; /* by processor: how many jobs, where nothing is coordinated */
    uint64_t now, ties;
    uint64_t pace_num, pace_den; /* of a slice: what is left of it */
    bool sliced, local;
};

/* ---- start and end ---- */

static struct court_config court_of(const struct batch *b) {
    uint32_t jobs = b->w->count > 0 ? (uint32_t)b->w->count : 1;
    return (struct court_config){
        .limits = {.nodes = b->c->pes,
                   .pes_max = 1,
                   .jobs = jobs,
                   .slots = b->sliced && b->c->slots > 0 ? b->c->slots : 1},
        .ends_hold = !b->sliced,
        .guest = b->c->policy,
    };
}

static int build(struct batch *b) {
    struct court_config config = court_of(b);
    struct arena a;
    b->memory_bytes = court_bytes(&config);
    /* Most of it is never touched. */
    b->memory = mmap(NULL, b->memory_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->memory == MAP_FAILED)
        return -ENOMEM;
    b->actors = calloc(config.limits.jobs, sizeof b->actors[0]);
    b->cast = calloc(config.limits.jobs, sizeof b->cast[0]);
    b->ends_array = calloc(config.limits.jobs, sizeof b->ends_array[0]);
    b->crowd = calloc(b->c->pes, sizeof b->crowd[0]);
    b->result->times = calloc(config.limits.jobs, sizeof b->result->times[0]);
    if (!b->actors || !b->cast || !b->ends_array || !b->crowd || !b->result->times)
        return -ENOMEM;
    arena_init(&a, b->memory, b->memory_bytes);
    b->court = court_new(&config, b->c->policy, &a);
    heap_init(&b->ends, b->ends_array, config.limits.jobs);
    return 0;
}

/* All processors can be used, but for those that are reserved at times. */
static int switch_on(struct batch *b) {
    struct nodeset all;
    void *storage = malloc(nodeset_bytes(b->c->pes));
    if (storage == NULL)
        return -ENOMEM;
    nodeset_init(&all, b->c->pes, storage);
    nodeset_add_range(&all, 0, b->c->pes - 1);
    court_set_usable(b->court, 0, &all, true);
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < b->c->window_count; i++) {
        const struct batch_window *w = &b->c->windows[i];
        nodeset_clear(&all);
        if (w->last >= b->c->pes || w->first > w->last || w->to > STORM_NEVER / BATCH_TICKS)
            r = -EINVAL;
        if (r == 0) {
            nodeset_add_range(&all, w->first, w->last);
            r = court_window_add(b->court, 0, i + 1, w->from * BATCH_TICKS, w->to * BATCH_TICKS,
                                 &all);
        }
    }
    free(storage);
    return r;
}

static void tear_down(struct batch *b) {
    if (b->memory != NULL && b->memory != MAP_FAILED)
        munmap(b->memory, b->memory_bytes);
    free(b->actors);
    free(b->cast);
    free(b->ends_array);
    free(b->crowd);
}

/* ---- how fast jobs run ---- */

/* Work that a job has done since it was last looked at. */
static void account(struct batch *b, struct actor *a) {
    uint64_t done = (uint64_t)((unsigned __int128)(b->now - a->since) * a->num / a->den);
    a->left -= done < a->left ? done : a->left;
    a->since = b->now;
}

static void expect_end(struct batch *b, struct actor *a) {
    unsigned __int128 ticks = ((unsigned __int128)a->left * a->den + a->num - 1) / a->num;
    heap_move(&b->ends, &a->end, b->now + (uint64_t)ticks, a->end.tie);
}

static void pace_of(struct batch *b, const struct actor *a, uint32_t rows, uint32_t *ret_num,
                    uint32_t *ret_den) {
    const struct storm_job *j = court_job(b->court, a->court);
    *ret_num = *ret_den = 1;
    if (b->local) {
        NODESET_EACH (n, court_nodes(b->court, a->court))
            if (b->crowd[n] > *ret_den)
                *ret_den = b->crowd[n];
    } else if (rows > 1) {
        *ret_num = (uint32_t)(bits_popcount(j->slots) * b->pace_num);
        *ret_den = (uint32_t)(rows * b->pace_den);
    }
}

static void crowd(struct batch *b) {
    memset(b->crowd, 0, sizeof b->crowd[0] * b->c->pes);
    for (uint32_t i = 0; i < b->cast_count; i++) {
        const struct actor *a = &b->actors[b->cast[i]];
        NODESET_EACH (n, court_nodes(b->court, a->court))
            b->crowd[n]++;
    }
}

/* Somebody came or went: everybody's pace may be another. */
static void reckon_pace(struct batch *b) {
    uint32_t rows = court_rows(b->court);
    if (b->local)
        crowd(b);
    for (uint32_t i = 0; i < b->cast_count; i++) {
        struct actor *a = &b->actors[b->cast[i]];
        uint32_t num, den;
        pace_of(b, a, rows, &num, &den);
        if (num == a->num && den == a->den)
            continue;
        account(b, a);
        a->num = num;
        a->den = den;
        expect_end(b, a);
    }
}

/* ---- what the court decides ---- */

static void start(struct batch *b, uint32_t number) {
    struct actor *a = &b->actors[number];
    const struct workload_job *j = &b->w->jobs[a->job];
    a->left = j->run * BATCH_TICKS;
    a->since = b->now;
    a->num = a->den = 1;
    a->place = b->cast_count;
    b->cast[b->cast_count++] = number;
    a->end = (struct heap_item){.key = b->now + a->left, .tie = b->ties++};
    int r = heap_push(&b->ends, &a->end);
    ASSERT(r == 0);
    b->result->times[a->job].start = b->now;
    if (b->c->started)
        b->c->started(b->c->context, a->job, b->now, court_nodes(b->court, number));
}

static void obey(struct batch *b) {
    struct court_effect e;
    bool changed = false;
    b->result->decisions++;
    while (court_next(b->court, &e)) {
        changed = true;
        if (e.kind == COURT_START)
            start(b, e.job);
        else if (e.kind == COURT_FAULT && b->result->fault[0] == '\0')
            snprintf(b->result->fault, sizeof b->result->fault, "%s", e.words);
    }
    if (b->sliced && changed)
        reckon_pace(b);
    if (court_queued(b->court) > b->result->queue_most)
        b->result->queue_most = court_queued(b->court);
    if (b->ends.count > b->result->running_most)
        b->result->running_most = b->ends.count;
}

/* ---- what happens ---- */

static void submit(struct batch *b, size_t job) {
    const struct workload_job *j = &b->w->jobs[job];
    struct court_order o = {
        .id = j->id, .nodes = j->pes, .ppn = 1, .estimate = j->estimate * BATCH_TICKS};
    uint32_t number;
    b->now = j->submit * BATCH_TICKS;
    int r = court_arrive(b->court, b->now, &o, &number);
    ASSERT(r == 0);
    b->actors[number] = (struct actor){.job = job, .court = number};
    obey(b);
}

static void end(struct batch *b) {
    struct actor *a = CONTAINER_OF(heap_pop(&b->ends), struct actor, end);
    b->now = a->end.key;
    b->cast[a->place] = b->cast[--b->cast_count];
    b->actors[b->cast[a->place]].place = a->place;
    b->result->times[a->job].end = b->now;
    if (b->c->ended)
        b->c->ended(b->c->context, a->job, b->now);
    court_end(b->court, b->now, a->court);
    obey(b);
    if (b->sliced)
        reckon_pace(b); /* even if nobody has started */
}

static void play(struct batch *b) {
    size_t next = 0;
    for (;;) {
        const struct heap_item *first = heap_peek(&b->ends);
        uint64_t arrival = next < b->w->count ? b->w->jobs[next].submit * BATCH_TICKS : STORM_NEVER;
        uint64_t over = first ? first->key : STORM_NEVER, due = court_due(b->court);
        if (arrival != STORM_NEVER && arrival <= over && arrival <= due) {
            submit(b, next++);
        } else if (over != STORM_NEVER && over <= due) {
            end(b);
        } else if (due != STORM_NEVER) {
            b->now = due;
            court_tick(b->court, due);
            obey(b);
        } else {
            return;
        }
    }
}

int batch_run(const struct workload *w, const struct batch_config *c, struct batch_result *ret) {
    struct batch b = {.w = w,
                      .c = c,
                      .result = ret,
                      .sliced = (c->policy->flags & STORM_SLICED) != 0,
                      .local = (c->policy->flags & STORM_UNCOORDINATED) != 0,
                      .pace_num = 1,
                      .pace_den = 1};
    *ret = (struct batch_result){0};
    if (c->quantum_ns > 0 &&
        c->switch_cost_ns < c->quantum_ns) { /* to a thousandth of a per cent */
        b.pace_den = 100000;
        b.pace_num = b.pace_den - c->switch_cost_ns * b.pace_den / c->quantum_ns;
    }
    int r = build(&b);
    if (r == 0)
        r = switch_on(&b);
    if (r == 0)
        play(&b);
    tear_down(&b);
    if (r < 0) {
        free(ret->times);
        ret->times = NULL;
    }
    return r;
}

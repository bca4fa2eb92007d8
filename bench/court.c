/* SPDX-License-Identifier: MIT */
/* How long the court takes to decide on nodes that are not alike: 20 needs, widths of 1 to 64, jobs that come and go; and
 * the same if nodes have memory, and jobs take of it.
 *
 *     build/bench-court [NODES [DECISIONS]]
 *
 * A decision is what court_arrive() or court_end() take with all that follows: who starts, and where. Times are of the
 * processor: others may run on this machine. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "base/sort.h"
#include "sched/court.h"
#include "sched/policies.h"

enum { NEEDS = 20, WIDTH = 64, JOBS = 4096 };

struct run {
    struct court *court;
    struct random random;
    uint32_t nodes;
    bool memory;
    struct nodeset needs[NEEDS];
    uint32_t jobs[JOBS]; /* that the court knows */
    uint32_t count;
    uint64_t now, starts;
};

static uint64_t clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The first need is met by most nodes, the last by few; who meets many, and rare ones, is special. */
static void make_nodes(struct run *r) {
    struct nodeset all;
    nodeset_init(&all, r->nodes, malloc(nodeset_bytes(r->nodes)));
    nodeset_add_range(&all, 0, r->nodes - 1);
    for (uint32_t k = 0; k < NEEDS; k++)
        nodeset_init(&r->needs[k], r->nodes, malloc(nodeset_bytes(r->nodes)));
    for (uint32_t n = 0; n < r->nodes; n++) {
        uint32_t rank = 0;
        for (uint32_t k = 0; k < NEEDS; k++)
            if (random_chance(&r->random, NEEDS - k, NEEDS + 2)) {
                nodeset_add(&r->needs[k], n);
                rank += k;
            }
        court_node_pes(r->court, n, (uint32_t)random_between(&r->random, 1, WIDTH));
        court_node_rank(r->court, n, (uint8_t)rank);
        if (r->memory)
            court_node_memory(r->court, n, (uint32_t)random_between(&r->random, 64, 4096));
    }
    court_set_usable(r->court, 0, &all, true);
    free(all.storage);
}

static void make(struct run *r, uint32_t nodes, const struct storm_policy *policy, bool memory) {
    struct court_config c = {
        .limits = {.nodes = nodes, .pes_max = WIDTH, .jobs = JOBS, .slots = 1}};
    struct arena a;
    size_t bytes = court_bytes(&c);
    void *block = aligned_alloc(64, bytes + 64 - bytes % 64);
    *r = (struct run){.nodes = nodes, .memory = memory};
    random_init(&r->random, 1);
    arena_init(&a, block, bytes);
    r->court = court_new(&c, policy, &a);
    make_nodes(r);
}

static void take(struct run *r) {
    struct court_effect e;
    while (court_next(r->court, &e))
        r->starts += e.kind == COURT_START;
}

static bool arrive(struct run *r) {
    struct random *x = &r->random;
    struct court_order o = {.id = 1};
    o.nodes = (uint32_t)random_between(x, 1, r->nodes / 100 + 1);
    o.ppn = (uint32_t)random_between(x, 1, WIDTH / 2);
    o.exclusive = random_chance(x, 1, 4);
    o.meets = random_chance(x, 3, 4) ? &r->needs[random_below(x, NEEDS)] : NULL;
    o.estimate = random_between(x, 1, 100000);
    if (r->memory && random_chance(x, 3, 4))
        o.memory = (uint32_t)random_between(x, 1, 1024);
    return court_arrive(r->court, r->now, &o, &r->jobs[r->count]) == 0 && ++r->count;
}

static void leave(struct run *r) {
    uint32_t i = (uint32_t)random_below(&r->random, r->count), job = r->jobs[i];
    r->jobs[i] = r->jobs[--r->count];
    court_end(r->court, r->now, job);
}

/* While more than so many wait jobs only end. */
static void measure(struct run *r, uint32_t waiting, uint64_t *ns, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bool full = court_queued(r->court) > waiting || r->count == JOBS - 1;
        bool end = r->count > 0 && (full || random_chance(&r->random, 1, 3));
        r->now++;
        uint64_t begin = clock_ns();
        if (end)
            leave(r);
        else
            arrive(r);
        ns[i] = clock_ns() - begin;
        take(r);
    }
}

static void one(const struct storm_policy *policy, uint32_t nodes, uint32_t waiting, size_t count,
                bool memory) {
    static struct run r;
    uint64_t *ns = calloc(count, sizeof *ns);
    make(&r, nodes, policy, memory);
    measure(&r, waiting, ns, count); /* until it is full */
    r.starts = 0;
    measure(&r, waiting, ns, count);
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += ns[i];
    sort_u64(ns, count);
    printf("%-5s %u nodes%s: %zu decisions, %" PRIu64
           " starts; us: mean %.1f, median %.1f, 99%% %.1f, "
           "longest %.1f; %u run, %u wait\n",
           policy->name, nodes, memory ? " with memory" : "", count, r.starts,
           (double)sum / 1e3 / (double)count, (double)ns[count / 2] / 1e3,
           (double)ns[count * 99 / 100] / 1e3, (double)ns[count - 1] / 1e3, court_running(r.court),
           court_queued(r.court));
    free(ns);
}

int main(int argc, char **argv) {
    uint32_t nodes = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000;
    size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 5000;
    one(&policy_fcfs, nodes, 0, count, false); /* each is for one job, or for few */
    one(&policy_easy, nodes, 200, count, false);
    one(&policy_easy, nodes, 200, count, true);
    return 0;
}

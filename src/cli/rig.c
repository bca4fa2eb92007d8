/* SPDX-License-Identifier: MIT */
/* Tasks on real processes: see rig.h.
 *
 * The driver lives in the root's process. When it is done that process copies the results into
 * memory that it shares with us. */
#include "cli/rig.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/assert.h"
#include "base/sort.h"
#include "base/units.h"
#include "cli/complain.h"
#include "os/process.h"

/* Tasks in which one operation follows the other are done in laps, in turn: what else the machine has
 * to do for a while then disturbs all of them alike. Some operations before those that count warm
 * caches and sockets, as the bare fan-out does. */
enum { LAPS = 5, WARM_RUNS = 10 };

/* Without news for so long the cluster is taken for stuck. */
enum { PATIENCE_MS = 60000 };

struct shared_task {
    uint64_t begin_ns, end_ns;
    uint64_t messages, steps; /* when it began, then while it ran */
    uint32_t done;
    uint64_t *latency_ns; /* shared too */
};

/* A part of a task. */
struct lap {
    uint32_t task;
    uint32_t runs; /* that count */
};

struct rig {
    const struct rig_config *config;
    struct crew *crew;
    struct driver *driver;
    struct driver_config driver_config;
    struct lap *laps;
    struct driver_task *tasks; /* of the laps */
    uint32_t lap_count;
    uint32_t task; /* that the driver was at when we last looked */
    struct shared {
        atomic_bool finished;
        atomic_uint progress;
        uint64_t up_ns;
        struct shared_task tasks[];
    } * shared;
    size_t shared_bytes;
};

/* ---- in the node's processes ---- */

static struct machine make_daemon(void *context, uint32_t node, struct globals globals) {
    struct rig *r = context;
    return driver_daemon(r->driver, node, globals);
}

static void sum_counts(const struct rig *r, uint64_t *messages, uint64_t *steps) {
    *messages = *steps = 0;
    for (uint32_t n = 0; n <= r->config->tree.nodes; n++) {
        *messages += crew_counts(r->crew, n)->links.messages;
        *steps += crew_counts(r->crew, n)->steps;
    }
}

static void take_task(struct rig *r, uint32_t task) {
    struct shared_task *t = &r->shared->tasks[task];
    const struct driver_result *from = driver_result(r->driver, task);
    uint64_t messages, steps;
    sum_counts(r, &messages, &steps);
    t->begin_ns = from->begin_ns;
    t->end_ns = from->end_ns;
    t->messages = messages - t->messages;
    t->steps = steps - t->steps;
    uint32_t runs = r->laps[task].runs, warm = r->tasks[task].runs - runs;
    uint32_t done = from->outcomes[OUTCOME_DONE];
    t->done = done > warm ? done - warm : 0;
    memcpy(t->latency_ns, from->latency_ns + warm, runs * sizeof *t->latency_ns);
}

/* After every turn; news only at the root. */
static void observe(void *context, struct life *l) {
    struct rig *r = context;
    if (life_node(l) != r->driver_config.root || driver_task(r->driver) == r->task)
        return;
    if (r->task != NO_TASK)
        take_task(r, r->task);
    r->task = driver_task(r->driver);
    if (r->task < r->lap_count)
        sum_counts(r, &r->shared->tasks[r->task].messages, &r->shared->tasks[r->task].steps);
    r->shared->up_ns = driver_up_ns(r->driver);
    atomic_fetch_add(&r->shared->progress, 1);
    if (driver_finished(r->driver))
        atomic_store(&r->shared->finished, true);
    crew_ring(r->crew);
}

/* ---- in ours ---- */

static struct limits choose_limits(const struct rig_config *c) {
    struct limits l = {.nodes = c->tree.nodes,
                       .roots = 1,
                       .variables = 16,
                       .events = 16,
                       .heap_bytes = 64 * KIB,
                       .children = 16 + (c->tree.shape == SHAPE_KARY ? c->tree.arity : 0),
                       .window = 16,
                       .queue = 64,
                       .outstanding = 16,
                       .body_bytes = 8 * KIB,
                       .standing = 4,
                       .transfers = 2,
                       .chunk_bytes = 64 * KIB,
                       .slots = 4};
    for (uint32_t i = 0; i < c->task_count; i++) {
        const struct primitive *p = &c->tasks[i].request;
        if (p->kind == PRIMITIVE_BULK && p->buffer_bytes > l.heap_bytes)
            l.heap_bytes = (uint32_t)p->buffer_bytes;
    }
    return l;
}

static int share(struct rig *r) {
    size_t head = sizeof *r->shared + r->lap_count * sizeof *r->shared->tasks;
    size_t bytes = head;
    for (uint32_t i = 0; i < r->lap_count; i++)
        bytes += r->laps[i].runs * sizeof(uint64_t);
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return -errno;
    r->shared = at;
    r->shared_bytes = bytes;
    uint64_t *next = (uint64_t *)(void *)((uint8_t *)at + head);
    for (uint32_t i = 0; i < r->lap_count; i++) {
        r->shared->tasks[i].latency_ns = next;
        next += r->laps[i].runs;
    }
    return 0;
}

static void add_lap(struct rig *r, uint32_t task, uint32_t runs, uint32_t warm) {
    if (runs == 0)
        return;
    r->laps[r->lap_count] = (struct lap){.task = task, .runs = runs};
    r->tasks[r->lap_count] = r->config->tasks[task];
    r->tasks[r->lap_count++].runs = warm + runs;
}

static bool plan_laps(struct rig *r) {
    const struct rig_config *c = r->config;
    r->laps = calloc((size_t)LAPS * c->task_count, sizeof *r->laps);
    r->tasks = calloc((size_t)LAPS * c->task_count, sizeof *r->tasks);
    if (r->laps == NULL || r->tasks == NULL)
        return false;
    for (uint32_t lap = 0; lap < LAPS; lap++)
        for (uint32_t i = 0; i < c->task_count; i++) {
            const struct driver_task *t = &c->tasks[i];
            bool in_turn = !t->wave && t->in_flight <= 1 && t->request.kind != PRIMITIVE_BULK;
            if (in_turn)
                add_lap(r, i, (t->runs + lap) / LAPS, WARM_RUNS);
            else if (lap == 0)
                add_lap(r, i, t->runs, 0);
        }
    return true;
}

static int begin(struct rig *r) {
    const struct rig_config *c = r->config;
    struct crew_config crew = {
        .links = c->links, .daemon = make_daemon, .observe = observe, .context = r};
    crew.prim.limits = choose_limits(c);
    crew.prim.tree = c->tree;
    prim_config_times(&crew.prim, c->period_ns);
    if (!plan_laps(r))
        return -ENOMEM;
    r->driver_config = (struct driver_config){.limits = crew.prim.limits,
                                              .root = c->tree.nodes,
                                              .period_ns = c->period_ns,
                                              .tasks = r->tasks,
                                              .task_count = r->lap_count};
    r->driver = driver_new(&r->driver_config);
    int error = share(r);
    if (r->driver == NULL || error < 0)
        return -ENOMEM;
    driver_let_go(r->driver);
    r->crew = crew_new(&crew, &error);
    return r->crew == NULL ? error : crew_start_all(r->crew);
}

static int await(struct rig *r) {
    unsigned seen = 0;
    uint64_t news = clock_ns();
    while (!atomic_load(&r->shared->finished)) {
        if (crew_wait(r->crew, 1000) > 0) {
            complain("bench", "a node's process has died; please report this");
            return -ECHILD;
        }
        unsigned progress = atomic_load(&r->shared->progress);
        if (progress != seen)
            news = clock_ns();
        seen = progress;
        if (clock_ns() - news > PATIENCE_MS * NS_PER_MS)
            return -ETIME;
    }
    return 0;
}

static void take_lap(const struct rig *r, uint32_t lap, struct measure *ret) {
    const struct shared_task *from = &r->shared->tasks[lap];
    struct measure_task *t = &ret->tasks[r->laps[lap].task];
    uint32_t runs = r->laps[lap].runs;
    memcpy(t->latency_ns + t->runs, from->latency_ns, runs * sizeof *t->latency_ns);
    t->runs += runs;
    t->done += from->done;
    t->span_ns += from->end_ns - from->begin_ns;
    t->messages += from->messages;
    t->steps += from->steps;
    ret->steps += from->steps;
    ret->messages += from->messages;
}

static int take_results(const struct rig *r, struct measure *ret) {
    const struct rig_config *c = r->config;
    *ret = (struct measure){.task_count = c->task_count, .up_ns = r->shared->up_ns};
    ret->tasks = calloc(c->task_count, sizeof *ret->tasks);
    for (uint32_t i = 0; i < c->task_count; i++) {
        if (ret->tasks != NULL)
            ret->tasks[i].latency_ns = malloc(c->tasks[i].runs * sizeof(uint64_t));
        if (ret->tasks == NULL || ret->tasks[i].latency_ns == NULL) {
            measure_fini(ret);
            return -ENOMEM;
        }
    }
    for (uint32_t lap = 0; lap < r->lap_count; lap++)
        take_lap(r, lap, ret);
    for (uint32_t i = 0; i < c->task_count; i++)
        sort_u64(ret->tasks[i].latency_ns, ret->tasks[i].runs);
    return 0;
}

/* ---- the idle cluster ---- */

static uint64_t cpu_of_all(const struct rig *r) {
    uint64_t ns = 0;
    for (uint32_t n = 0; n <= r->config->tree.nodes; n++)
        ns += process_cpu_ns(crew_pid(r->crew, n));
    return ns;
}

static int watch_idle(struct rig *r, struct rig_idle *ret) {
    uint32_t nodes = r->config->tree.nodes;
    uint64_t *memory = malloc(nodes * sizeof *memory);
    if (memory == NULL)
        return -ENOMEM;
    uint64_t begin_ns = clock_ns(), cpu = cpu_of_all(r);
    while (clock_ns() - begin_ns < r->config->idle_ns)
        crew_wait(r->crew, (int)((begin_ns + r->config->idle_ns - clock_ns()) / NS_PER_MS) + 1);
    *ret = (struct rig_idle){.cpu_ns = cpu_of_all(r) - cpu, .span_ns = clock_ns() - begin_ns};
    for (uint32_t n = 0; n < nodes; n++)
        memory[n] = process_private_bytes(crew_pid(r->crew, n));
    sort_u64(memory, nodes);
    ret->memory_median = memory[nodes / 2];
    ret->memory_max = memory[nodes - 1];
    ret->memory_root = process_private_bytes(crew_pid(r->crew, nodes));
    free(memory);
    return 0;
}

int rig_run(const struct rig_config *config, struct measure *ret, struct rig_idle *ret_idle) {
    struct rig r = {.config = config, .task = NO_TASK};
    int error = begin(&r);
    if (error == 0)
        error = await(&r);
    if (error == 0 && ret_idle != NULL && config->idle_ns > 0)
        error = watch_idle(&r, ret_idle);
    crew_free(r.crew);
    if (error == 0)
        error = take_results(&r, ret);
    driver_free(r.driver);
    free(r.tasks);
    free(r.laps);
    if (r.shared != NULL)
        munmap(r.shared, r.shared_bytes);
    return error;
}

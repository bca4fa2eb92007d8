/* SPDX-License-Identifier: MIT */
/* Runs a driver's tasks: see measure.h. */
#include "sim/measure.h"

#include <errno.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/sort.h"
#include "base/units.h"
#include "sim/model.h"

/* A heartbeat must not be under way all the time, nor be taken for lost. */
enum { PERIOD_WAVES = 20 };
#define PERIOD_MIN NS_PER_S

/* Levels of a tree that can be powered on all at once. */
enum { SHALLOW = 20 };

/* Far beyond the end of any healthy run. */
#define TIME_MAX (100000 * NS_PER_S)

/* A round's work at one node, at most: a turn for the message down and one for each answer up. The
 * cost model knows nothing of shared processors. */
static uint64_t visit_ns(const struct link_model *l) {
    uint64_t turn = l->cpu_wake_ns + l->cpu_receive_ns + l->cpu_step_ns + l->cpu_sleep_ns;
    return 2 * (turn + l->cpu_send_ns);
}

static uint64_t choose_period(const struct measure_config *c) {
    struct cost cost;
    cost_init(&cost, &c->tree, &c->link);
    uint64_t wave = cost_ns(&cost, COST_WAVE, 0, c->tree.nodes);
    if (c->link.cores > 0)
        wave += c->tree.nodes * visit_ns(&c->link) / c->link.cores;
    uint64_t period = PERIOD_WAVES * wave;
    return period > PERIOD_MIN ? period : PERIOD_MIN;
}

/* Small ones: a simulated node should be cheap. */
static struct limits choose_limits(const struct measure_config *c) {
    struct limits l = {.nodes = c->tree.nodes,
                       .roots = 1,
                       .variables = 4,
                       .events = 4,
                       .heap_bytes = 64,
                       .window = 8,
                       .queue = 8,
                       .outstanding = 8,
                       .body_bytes = 64,
                       .standing = 1,
                       .transfers = 1};
    struct cost cost;
    cost_init(&cost, &c->tree, &c->link);
    l.chunk_bytes = cost.chunk_bytes; /* what the model assumes */
    l.slots = cost.slots;
    uint32_t log2 = 1;
    while ((uint64_t)1 << log2 < c->tree.nodes)
        log2++;
    l.children = 8 + (c->tree.shape == SHAPE_BINOMIAL ? log2 : 0) +
                 (c->tree.shape == SHAPE_KARY ? c->tree.arity : 0);
    for (uint32_t i = 0; i < c->task_count; i++) {
        const struct primitive *r = &c->tasks[i].request;
        if (r->body.len > l.body_bytes)
            l.body_bytes = (uint32_t)r->body.len;
        uint64_t heap = r->kind == PRIMITIVE_BULK ? r->buffer_bytes : r->body.len;
        if (heap > l.heap_bytes)
            l.heap_bytes = (uint32_t)heap;
    }
    return l;
}

static int take_results(const struct measure_config *c, const struct driver *d,
                        struct measure *ret) {
    for (uint32_t i = 0; i < c->task_count; i++) {
        const struct driver_result *r = driver_result(d, i);
        struct measure_task *t = &ret->tasks[i];
        t->runs = c->tasks[i].runs;
        t->done = r->outcomes[OUTCOME_DONE];
        t->span_ns = r->end_ns - r->begin_ns;
        t->latency_ns = malloc(t->runs * sizeof *t->latency_ns);
        if (t->latency_ns == NULL)
            return -ENOMEM;
        memcpy(t->latency_ns, r->latency_ns, t->runs * sizeof *t->latency_ns);
        sort_u64(t->latency_ns, t->runs);
    }
    ret->up_ns = driver_up_ns(d);
    return 0;
}

/* The counters at the moment when the driver goes from one task to the next. */
static void count(struct measure *ret, uint32_t task, uint64_t messages, uint64_t steps) {
    if (task < ret->task_count) { /* it begins */
        ret->tasks[task].messages = messages;
        ret->tasks[task].steps = steps;
    }
    if (task > 0 && task <= ret->task_count) { /* the one before ends */
        struct measure_task *t = &ret->tasks[task - 1];
        t->messages = messages - t->messages;
        t->steps = steps - t->steps;
    }
}

/* ---- under the links ---- */

/* Does the node hang below the parent that the plan says? */
static bool as_planned(const struct world *w, const struct tree *t, uint32_t node) {
    struct prim_status s;
    uint32_t parent = t->nodes;
    tree_ancestors(t, node, &parent, 1);
    prim_status(world_prim(w, node), &s);
    return s.attached && s.parent == parent;
}

/* Powers on the nodes of these levels and waits until all of them have their places. */
static int boot_levels(struct world *w, const struct cost *cost, uint32_t first, uint32_t last) {
    const struct tree *t = &cost->tree;
    uint64_t turn = cost->link.connect_ns + 4 * cost_path_ns(cost, last);
    if (cost->link.cores > 0)
        turn += NS_PER_MS;
    for (uint32_t n = 0; n < t->nodes; n++) {
        uint32_t level = cost_level(cost, n);
        if (level >= first && level <= last)
            world_boot(w, n, false);
    }
    for (uint32_t n = 0; n < t->nodes; n++)
        while (world_up(w, n) && !as_planned(w, t, n)) {
            if (world_now(w) > TIME_MAX)
                return -ETIME;
            world_run_until(w, world_now(w) + turn);
        }
    return 0;
}

/* All at once, the lower nodes of a deep tree would hang themselves wherever they find somebody,
 * and what is measured were another tree: these come up level by level. */
static int boot_nodes(struct world *w, const struct cost *cost) {
    uint32_t depth = tree_depth(&cost->tree);
    uint32_t at_once = depth <= SHALLOW ? depth : 1;
    int r = 0;
    for (uint32_t level = 1; level <= depth && r == 0; level += at_once)
        r = boot_levels(w, cost, level, level + at_once - 1);
    return r;
}

static int drive_world(struct world *w, const struct driver *d, struct measure *ret) {
    const struct world_counts *counts = world_counts(w);
    uint32_t task = NO_TASK;
    while (!driver_finished(d)) {
        if (world_now(w) > TIME_MAX || !world_step(w))
            return -ETIME;
        if (driver_task(d) == task)
            continue;
        task = driver_task(d);
        count(ret, task, counts->messages, counts->steps);
    }
    ret->end_ns = world_now(w);
    ret->steps = counts->steps;
    ret->messages = counts->messages;
    return 0;
}

static int run_links(const struct measure_config *c, const struct driver_config *dc,
                     struct driver *d, struct measure *ret) {
    struct world_config wc = {.prim = {.limits = dc->limits, .tree = c->tree},
                              .link = c->link,
                              .seed = c->seed,
                              .daemon = driver_daemon,
                              .context = d};
    prim_config_times(&wc.prim, dc->period_ns);
    struct world *w = world_new(&wc);
    if (w == NULL)
        return -ENOMEM;
    struct cost cost;
    cost_init(&cost, &c->tree, &c->link);
    world_boot(w, dc->root, true);
    int r = boot_nodes(w, &cost);
    driver_let_go(d);
    if (r == 0)
        r = drive_world(w, d, ret);
    world_free(w);
    return r;
}

/* ---- under the primitives ---- */

static int drive_model(struct model *m, const struct driver *d, struct measure *ret) {
    const struct model_counts *counts = model_counts(m);
    uint32_t task = NO_TASK;
    while (!driver_finished(d)) {
        if (model_now(m) > TIME_MAX || !model_step(m))
            return -ETIME;
        if (driver_task(d) == task)
            continue;
        task = driver_task(d);
        count(ret, task, counts->messages, counts->steps);
    }
    ret->end_ns = model_now(m);
    ret->steps = counts->steps;
    ret->messages = counts->messages;
    return 0;
}

static int run_primitives(const struct measure_config *c, const struct driver_config *dc,
                          struct driver *d, struct measure *ret) {
    struct model_config mc = {.prim = {.limits = dc->limits, .tree = c->tree},
                              .cost = *c->cost,
                              .seed = c->seed,
                              .daemon = driver_daemon,
                              .context = d};
    mc.cost.tree = c->tree;
    prim_config_times(&mc.prim, dc->period_ns);
    struct model *m = model_new(&mc);
    if (m == NULL)
        return -ENOMEM;
    model_boot(m, dc->root, true);
    for (uint32_t n = 0; n < c->tree.nodes; n++)
        model_boot(m, n, false);
    driver_let_go(d);
    int r = drive_model(m, d, ret);
    model_free(m);
    return r;
}

/* ---- both ---- */

int measure_run(const struct measure_config *c, struct measure *ret) {
    *ret = (struct measure){.task_count = c->task_count};
    struct driver_config dc = {.limits = choose_limits(c),
                               .root = c->tree.nodes,
                               .period_ns = choose_period(c),
                               .tasks = c->tasks,
                               .task_count = c->task_count};
    ret->tasks = calloc(c->task_count, sizeof *ret->tasks);
    struct driver *d = driver_new(&dc);
    int r = -ENOMEM;
    if (ret->tasks != NULL && d != NULL)
        r = c->depth == DEPTH_LINKS ? run_links(c, &dc, d, ret) : run_primitives(c, &dc, d, ret);
    if (r == 0)
        r = take_results(c, d, ret);
    driver_free(d);
    if (r < 0)
        measure_fini(ret);
    return r;
}

void measure_fini(struct measure *m) {
    for (uint32_t i = 0; m->tasks != NULL && i < m->task_count; i++)
        free(m->tasks[i].latency_ns);
    free(m->tasks);
    m->tasks = NULL;
}

uint64_t measure_median(const struct measure_task *t) {
    return (t->latency_ns[(t->runs - 1) / 2] + t->latency_ns[t->runs / 2]) / 2;
}

const char *depth_name(enum depth depth) {
    static const char *const names[DEPTHS] = {"links", "primitives"};
    return depth < DEPTHS ? names[depth] : "?";
}

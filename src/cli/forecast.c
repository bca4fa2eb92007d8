/* SPDX-License-Identifier: MIT */
/* Forecasts for real processes: see forecast.h. */
#include "cli/forecast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/cases.h"
#include "cli/complain.h"
#include "cli/rig.h"
#include "sim/predictor.h"

/* The clusters that really run, once, for the sake of the others. */
enum { FEW = 8, MORE = 32, ARITY = 8, RUNS = 60, REPEATS = 3 };
#define PERIOD_NS NS_PER_S

static const enum bench_case fitted[] = {CASE_XFER, CASE_XFER_4K, CASE_COMPARE, CASE_COMPARE_WRITE};
enum { FITTED = sizeof fitted / sizeof *fitted };

struct forecast {
    struct predictor predictor;
    struct predictor bare; /* before it was fitted to processes of ours */
};

/* The clusters are measured several times and the lower quarter of each counts, at its best: what
 * else goes on here can only add to it, and need not last. */
static void take_points(const struct measure *m, struct predictor_point points[FITTED]) {
    for (int i = 0; i < FITTED; i++) {
        uint64_t ns = m->tasks[i].latency_ns[m->tasks[i].runs / 4];
        if (points[i].measured_ns == 0 || ns < points[i].measured_ns)
            points[i].measured_ns = ns;
    }
}

static int measure_points(enum transport links, const struct tree *tree,
                          struct predictor_point points[FITTED]) {
    struct driver_task tasks[FITTED];
    struct rig_config config = {.tree = *tree,
                                .links = links,
                                .period_ns = PERIOD_NS,
                                .tasks = tasks,
                                .task_count = FITTED};
    struct measure m;
    for (int i = 0; i < FITTED; i++)
        points[i].task = tasks[i] = case_task(fitted[i], RUNS);
    int r = rig_run(&config, &m, NULL);
    if (r < 0)
        return r;
    take_points(&m, points);
    measure_fini(&m);
    return 0;
}

static int fit(struct forecast *f, enum transport links) {
    struct tree few = {.nodes = FEW, .shape = SHAPE_KARY, .arity = ARITY}, more = few;
    struct predictor_point few_points[FITTED] = {0}, more_points[FITTED] = {0};
    int r = 0;
    more.nodes = MORE;
    for (int i = 0; i < REPEATS && r == 0; i++) {
        r = measure_points(links, &few, few_points);
        if (r == 0)
            r = measure_points(links, &more, more_points);
    }
    if (r == 0)
        r = predictor_fit(&f->predictor, &few, few_points, FITTED);
    return r < 0 ? r : predictor_fit_growth(&f->predictor, &more, more_points, FITTED);
}

struct forecast *forecast_new(enum transport links) {
    struct forecast *f = calloc(1, sizeof *f);
    struct gauge gauge;
    int r = f == NULL ? -ENOMEM : 0;
    if (r == 0)
        r = gauge_take(links, &gauge);
    if (r == 0)
        r = predictor_init(&f->bare, &gauge);
    if (r == 0) {
        f->predictor = f->bare;
        r = fit(f, links);
    }
    if (r == 0)
        return f;
    complain("bench", "no predictions: the machine's measure could not be taken: %s", strerror(-r));
    free(f);
    return NULL;
}

void forecast_free(struct forecast *f) {
    free(f);
}

uint64_t forecast_latency(const struct forecast *f, const struct tree *tree,
                          const struct driver_task *task) {
    uint64_t ns;
    if (f == NULL || predictor_latency(&f->predictor, tree, task, &ns) < 0)
        return 0;
    return ns;
}

uint64_t forecast_fanout(const struct forecast *f, uint32_t nodes) {
    uint64_t ns;
    if (f == NULL || predictor_fanout(&f->bare, nodes, &ns) < 0)
        return 0;
    return ns;
}

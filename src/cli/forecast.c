/* SPDX-License-Identifier: MIT */
/* Forecasts for real processes: see forecast.h. */
#include "cli/forecast.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
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

/* What one size takes: medians of several runs. */
struct sample {
    struct tree tree;
    struct driver_task tasks[FITTED];
    uint64_t medians[FITTED][REPEATS];
};

static int take_sample(struct sample *s, enum transport links, int repeat) {
    struct rig_config config = {.tree = s->tree,
                                .links = links,
                                .period_ns = PERIOD_NS,
                                .tasks = s->tasks,
                                .task_count = FITTED};
    struct measure m;
    for (int i = 0; i < FITTED; i++)
        s->tasks[i] = case_task(fitted[i], RUNS);
    int r = rig_run(&config, &m, NULL);
    if (r < 0)
        return r;
    for (int i = 0; i < FITTED; i++)
        s->medians[i][repeat] = measure_median(&m.tasks[i]);
    measure_fini(&m);
    return 0;
}

/* The middle one of the medians: what else goes on here for a while does not count. */
static void take_points(struct sample *s, struct predictor_point points[FITTED]) {
    for (int i = 0; i < FITTED; i++) {
        sort_u64(s->medians[i], REPEATS);
        points[i] = (struct predictor_point){.task = s->tasks[i],
                                             .measured_ns = s->medians[i][REPEATS / 2]};
    }
}

static int fit(struct forecast *f, enum transport links) {
    struct sample few = {.tree = {.nodes = FEW, .shape = SHAPE_KARY, .arity = ARITY}};
    struct sample more = {.tree = {.nodes = MORE, .shape = SHAPE_KARY, .arity = ARITY}};
    struct predictor_point points[FITTED];
    int r = 0;
    for (int i = 0; i < REPEATS && r == 0; i++) {
        r = take_sample(&few, links, i);
        if (r == 0)
            r = take_sample(&more, links, i);
    }
    if (r < 0)
        return r;
    take_points(&few, points);
    r = predictor_fit(&f->predictor, &few.tree, points, FITTED);
    if (r < 0)
        return r;
    take_points(&more, points);
    return predictor_fit_growth(&f->predictor, &more.tree, points, FITTED);
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

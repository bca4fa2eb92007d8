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

/* The cluster that really runs, once, for the sake of the others. */
enum { NODES = 8, ARITY = 8, RUNS = 201 };
#define PERIOD_NS NS_PER_S

static const enum bench_case fitted[] = {CASE_XFER, CASE_XFER_4K, CASE_COMPARE, CASE_COMPARE_WRITE};
enum { FITTED = sizeof fitted / sizeof *fitted };

struct forecast {
    struct predictor predictor;
};

static int fit(struct forecast *f, enum crew_links links) {
    struct driver_task tasks[FITTED];
    struct predictor_point points[FITTED];
    struct rig_config config = {.tree = {.nodes = NODES, .shape = SHAPE_KARY, .arity = ARITY},
                                .links = links,
                                .period_ns = PERIOD_NS,
                                .tasks = tasks,
                                .task_count = FITTED};
    struct measure m;
    for (int i = 0; i < FITTED; i++)
        tasks[i] = case_task(fitted[i], RUNS);
    int r = rig_run(&config, &m, NULL);
    if (r < 0)
        return r;
    for (int i = 0; i < FITTED; i++)
        points[i] =
            (struct predictor_point){.task = tasks[i], .measured_ns = measure_median(&m.tasks[i])};
    measure_fini(&m);
    return predictor_fit(&f->predictor, &config.tree, points, FITTED);
}

struct forecast *forecast_new(enum crew_links links) {
    struct forecast *f = calloc(1, sizeof *f);
    struct gauge gauge;
    int r = f == NULL ? -ENOMEM : 0;
    if (r == 0)
        r = gauge_take(links == CREW_TCP ? TRANSPORT_TCP : TRANSPORT_UNIX, &gauge);
    if (r == 0)
        r = predictor_init(&f->predictor, &gauge);
    if (r == 0)
        r = fit(f, links);
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

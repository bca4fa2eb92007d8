/* SPDX-License-Identifier: MIT */
/* Fits the cost model: see calibrate.h. */
#include "sim/calibrate.h"

#include "base/units.h"
#include "sim/measure.h"

enum { RUNS = 9 };
#define BULK_BYTES (256 * KIB)
#define TIMEOUT_NS (1000 * NS_PER_S)

const uint32_t calibration_sizes[CALIBRATION_SIZES] = {16, 64, 256};

/* One task for every kind of cost, in that order. */
static void make_tasks(struct driver_task tasks[COST_KINDS]) {
    for (int kind = 0; kind < COST_KINDS; kind++)
        tasks[kind] = (struct driver_task){.request = {.kind = PRIMITIVE_XFER,
                                                       .timeout_ns = TIMEOUT_NS,
                                                       .remote_event = 0,
                                                       .local_event = NO_EVENT,
                                                       .write_variable = NO_VARIABLE},
                                           .runs = RUNS};
    tasks[COST_COMPARE].request.kind = PRIMITIVE_COMPARE;
    tasks[COST_WRITE].request.kind = PRIMITIVE_COMPARE;
    tasks[COST_WRITE].request.write_variable = 1;
    tasks[COST_WAVE].wave = true;
    tasks[COST_BULK].request.kind = PRIMITIVE_BULK;
    tasks[COST_BULK].request.buffer_bytes = BULK_BYTES;
    tasks[COST_BULK].runs = 1;
}

static uint64_t bytes_of_kind(enum cost_kind kind) {
    return kind == COST_BULK ? BULK_BYTES : 0;
}

struct points {
    uint64_t measured[CALIBRATION_SIZES];
    int64_t error[CALIBRATION_SIZES];
    int64_t level[CALIBRATION_SIZES];
};

/* The straight line with the least squares of errors; a level one if all levels are the same. */
static struct cost_fit fit_line(const struct points *p) {
    int64_t n = CALIBRATION_SIZES;
    int64_t levels = 0, errors = 0, above = 0, below = 0;
    for (int i = 0; i < n; i++) {
        levels += p->level[i];
        errors += p->error[i];
    }
    for (int i = 0; i < n; i++) {
        int64_t away = n * p->level[i] - levels;
        above += away * (n * p->error[i] - errors);
        below += away * away;
    }
    int64_t slope = below ? above / below : 0;
    return (struct cost_fit){.constant_ns = (errors - slope * levels) / n, .level_ns = slope};
}

static uint32_t permille(uint64_t predicted, uint64_t measured) {
    uint64_t away = predicted > measured ? predicted - measured : measured - predicted;
    return measured ? (uint32_t)(away * 1000 / measured) : 0;
}

static int simulate(const struct cost *c, uint64_t seed, uint32_t size,
                    const struct driver_task *tasks, struct measure *ret) {
    struct measure_config config = {.depth = DEPTH_LINKS,
                                    .tree = c->tree,
                                    .link = c->link,
                                    .seed = seed,
                                    .tasks = tasks,
                                    .task_count = COST_KINDS};
    config.tree.nodes = size;
    return measure_run(&config, ret);
}

int cost_calibrate(struct cost *c, uint64_t seed, struct calibration *ret) {
    struct driver_task tasks[COST_KINDS];
    struct points points[COST_KINDS];
    struct calibration result = {0};
    make_tasks(tasks);
    for (int i = 0; i < CALIBRATION_SIZES; i++) {
        uint32_t size = calibration_sizes[i];
        struct cost bare = *c;
        struct measure m;
        int r = simulate(c, seed, size, tasks, &m);
        if (r < 0)
            return r;
        bare.tree.nodes = size;
        for (int kind = 0; kind < COST_KINDS; kind++) {
            struct points *p = &points[kind];
            bare.fit[kind] = (struct cost_fit){0};
            uint64_t computed = cost_ns(&bare, kind, bytes_of_kind(kind), size);
            p->measured[i] = measure_median(&m.tasks[kind]);
            p->error[i] = (int64_t)(p->measured[i] - computed);
            p->level[i] = cost_levels(&bare, kind);
        }
        result.steps += m.steps;
        measure_fini(&m);
    }
    for (int kind = 0; kind < COST_KINDS; kind++) {
        c->fit[kind] = fit_line(&points[kind]);
        struct cost fitted = *c;
        for (int i = 0; i < CALIBRATION_SIZES; i++) {
            fitted.tree.nodes = calibration_sizes[i];
            uint64_t ns = cost_ns(&fitted, kind, bytes_of_kind(kind), calibration_sizes[i]);
            uint32_t away = permille(ns, points[kind].measured[i]);
            if (away > result.residual_permille[kind])
                result.residual_permille[kind] = away;
        }
    }
    if (ret != NULL)
        *ret = result;
    return 0;
}

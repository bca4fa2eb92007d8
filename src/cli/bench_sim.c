/* SPDX-License-Identifier: MIT */
/* storm bench primitives --sim: the primitives on simulated clusters of many sizes and shapes.
 *
 * All times are virtual: they say what the protocol takes on such a network, not how fast this
 * computer is, and come out the same on every run with the same seed. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "cli/bench.h"
#include "cli/complain.h"
#include "cli/stats.h"
#include "cli/terminal.h"
#include "sim/calibrate.h"

enum { CHAIN_NODES_MAX = 1024 };

/* Under the links every node holds a bulk transfer twice: in a buffer and in its heap. */
#define BULK_MEMORY_MAX (512 * MIB)

/* ---- measuring ---- */

struct batch {
    enum bench_case cases[BENCH_CASES];
    struct driver_task tasks[BENCH_CASES];
    uint32_t count;
};

static void add_case(struct batch *b, const struct bench_settings *s, enum bench_case which) {
    if (!s->cases[which] || case_info(which)->local)
        return;
    b->cases[b->count] = which;
    b->tasks[b->count++] = case_task(which, (uint32_t)s->runs);
}

static uint64_t floor_of(const struct cost *c, const struct case_info *info) {
    uint64_t rate = c->link.bytes_per_s;
    uint64_t wire = info->rate && rate > 0 ? info->bytes * NS_PER_S / rate : 0;
    return cost_floor_ns(c, info->cost) + wire;
}

static void take_value(const struct measure_task *t, enum bench_case which, const struct cost *c,
                       struct bench_value *v) {
    const struct case_info *info = case_info(which);
    struct stats stats = stats_of(t->latency_ns, t->runs);
    *v = (struct bench_value){.measured = true,
                              .runs = t->runs,
                              .median_ns = stats.median,
                              .ci95_ns = stats.ci95,
                              .floor_ns = floor_of(c, info),
                              .steps = t->steps};
    v->messages_x10 = (t->messages * 10 + c->tree.nodes / 2) / c->tree.nodes / t->runs;
    if (info->rate && t->span_ns > 0)
        v->rate = info->bytes * t->runs * 1000 / (t->span_ns / 1000 + 1) * 1000;
}

static int run_batch(const struct bench_settings *s, const struct cost *cost, const struct batch *b,
                     struct bench_row *row, uint64_t *steps) {
    struct measure m;
    if (b->count == 0)
        return 0;
    struct measure_config config = {.depth = s->common.depth,
                                    .tree = cost->tree,
                                    .link = s->common.link,
                                    .cost = cost,
                                    .seed = s->seed,
                                    .tasks = b->tasks,
                                    .task_count = b->count};
    int r = measure_run(&config, &m);
    if (r < 0)
        return r;
    *steps += m.steps;
    for (uint32_t i = 0; i < b->count; i++) {
        if (m.tasks[i].done == m.tasks[i].runs)
            take_value(&m.tasks[i], b->cases[i], cost, &row->values[b->cases[i]]);
        else
            complain("bench",
                     "%s on %" PRIu32 " nodes: %" PRIu32 " of %" PRIu32
                     " operations did not succeed; please report this",
                     case_info(b->cases[i])->name, cost->tree.nodes,
                     m.tasks[i].runs - m.tasks[i].done, m.tasks[i].runs);
    }
    measure_fini(&m);
    return 0;
}

/* Bulk transfers run in a cluster of their own, as their heaps are large. */
static int run_row(const struct bench_settings *s, const struct cost *cost, struct bench_row *row,
                   uint64_t *steps) {
    struct batch small = {0}, bulk = {0};
    *row = (struct bench_row){.nodes = cost->tree.nodes, .levels = tree_depth(&cost->tree)};
    for (int c = 0; c < BENCH_CASES; c++)
        if (c != CASE_BULK)
            add_case(&small, s, c);
    bool room = s->common.depth == DEPTH_PRIMITIVES ||
                2 * case_info(CASE_BULK)->bytes * cost->tree.nodes <= BULK_MEMORY_MAX;
    if (room)
        add_case(&bulk, s, CASE_BULK);
    if (s->cases[CASE_TEST_EVENT])
        row->values[CASE_TEST_EVENT] =
            (struct bench_value){.measured = true, .runs = (uint32_t)s->runs};
    int r = run_batch(s, cost, &small, row, steps);
    return r < 0 ? r : run_batch(s, cost, &bulk, row, steps);
}

static int run_series(const struct bench_settings *s, struct bench_series *series,
                      uint64_t *steps) {
    struct cost cost;
    struct calibration calibration;
    cost_init(&cost, &series->tree, &s->common.link);
    if (s->common.depth == DEPTH_PRIMITIVES) {
        terminal_progress("calibrating the cost model ...");
        int r = cost_calibrate(&cost, s->seed, &calibration);
        if (r < 0)
            return r;
        *steps += calibration.steps;
    }
    if (!s->json)
        report_table_head(series, stdout);
    for (uint32_t i = 0; i < s->nodes.count; i++) {
        char words[96];
        cost.tree.nodes = (uint32_t)s->nodes.at[i];
        if (series->tree.shape == SHAPE_CHAIN && cost.tree.nodes > CHAIN_NODES_MAX &&
            s->common.depth == DEPTH_LINKS)
            continue;
        snprintf(words, sizeof words, "simulating %" PRIu32 " nodes, %s ...", cost.tree.nodes,
                 shape_name(series->tree.shape));
        terminal_progress(words);
        struct bench_row *row = &series->rows[series->count];
        int r = run_row(s, &cost, row, steps);
        terminal_progress(NULL);
        if (r < 0)
            return r;
        series->count++;
        if (s->json)
            report_json(&s->common, &series->tree, row, stdout);
        else
            report_table_row(series, row, stdout);
    }
    if (!s->json)
        report_table_foot(series, stdout);
    return 0;
}

/* ---- all of it ---- */

static void print_setting(const struct bench_settings *s) {
    char latency[UNITS_TEXT_MAX], cpu[UNITS_TEXT_MAX];
    const struct link_model *l = &s->common.link;
    units_format_duration(l->latency_ns, latency, sizeof latency);
    units_format_duration(l->cpu_receive_ns, cpu, sizeof cpu);
    printf("primitives on simulated clusters, %s, in virtual time\n",
           s->common.depth == DEPTH_LINKS ? "under the links: the real protocol"
                                          : "under the primitives: a calibrated cost model");
    printf("network %s: latency %s, %" PRIu64 " MB/s, %s of a processor to receive or send a "
           "message; seed %" PRIu64 ", %" PRIu64 " runs\n",
           s->common.network, latency, l->bytes_per_s / 1000000, cpu, s->seed, s->runs);
}

static int complain_failed(int r) {
    terminal_progress(NULL);
    complain("bench", r == -ENOMEM ? "not enough memory; try fewer nodes"
                                   : "the simulated cluster did not come to an end; "
                                     "please report this with the options used");
    return STATUS_FAILED;
}

static int write_plots(const struct bench_settings *s, const struct bench_series *series,
                       uint32_t count) {
    const char *paths[] = {s->svg, s->svg_bandwidth};
    for (int i = 0; i < 2; i++) {
        if (paths[i] == NULL)
            continue;
        int r = i == 0 ? report_plot_latency(&s->common, series, count, paths[i])
                       : report_plot_rate(&s->common, series, count, paths[i]);
        if (r == 0)
            continue;
        complain(paths[i], "%s; choose other options or another place", strerror(-r));
        return STATUS_FAILED;
    }
    return STATUS_OK;
}

int bench_sim(const struct bench_settings *s) {
    struct timespec begin, end;
    uint64_t steps = 0;
    uint32_t count = 0;
    struct bench_series *series = calloc(SHAPES, sizeof *series);
    if (series == NULL)
        return complain_failed(-ENOMEM);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (!s->json)
        print_setting(s);
    int r = 0;
    for (int shape = 0; shape < SHAPES && r == 0; shape++) {
        if (!s->shapes[shape])
            continue;
        series[count].tree = (struct tree){.shape = (enum shape)shape, .arity = (uint32_t)s->arity};
        memcpy(series[count].cases, s->cases, sizeof s->cases);
        r = run_series(s, &series[count++], &steps);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    int status = r < 0 ? complain_failed(r) : write_plots(s, series, count);
    double seconds =
        (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    if (!s->json && r == 0)
        printf("\n%s%" PRIu64 " machine steps in %.1f s real.\n",
               s->cases[CASE_TEST_EVENT]
                   ? "test-event reads a counter of the node's own: no messages. "
                   : "",
               steps, seconds);
    free(series);
    return status;
}

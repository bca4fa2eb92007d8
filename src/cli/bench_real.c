/* SPDX-License-Identifier: MIT */
/* storm bench primitives: the primitives on real processes of this machine.
 *
 * Each size is measured between two runs of a bare fan-out with acknowledgements over the same kind
 * of socket: what one round costs here with nothing of ours. Figures are ratios to that, from the
 * same minute on the same machine, and stand beside what the simulator expects. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/bench.h"
#include "cli/complain.h"
#include "cli/forecast.h"
#include "cli/rig.h"
#include "cli/stats.h"
#include "cli/terminal.h"
#include "os/fanout.h"

/* A heartbeat comes once a period, whatever else there is. */
enum { WAVE_RUNS = 3, FANOUT_ROUNDS = 300 };

/* One size and shape. */
struct real_row {
    const struct bench_settings *settings;
    struct tree tree;
    uint64_t fanout_ns; /* a bare round */
    struct forecast *forecast;
    enum bench_case cases[BENCH_CASES];
    struct driver_task tasks[BENCH_CASES];
    uint32_t count;
};

static void add_cases(struct real_row *row) {
    const struct bench_settings *s = row->settings;
    for (int c = 0; c < BENCH_CASES; c++) {
        if (!s->cases[c] || case_info(c)->local)
            continue;
        row->cases[row->count] = (enum bench_case)c;
        row->tasks[row->count] = case_task((enum bench_case)c, (uint32_t)s->runs);
        if (c == CASE_WAVE)
            row->tasks[row->count].runs = WAVE_RUNS;
        row->count++;
    }
}

static int take_fanout(struct real_row *row, uint64_t *ret_ns) {
    struct fanout_config config = {
        .transport = row->settings->links, .nodes = row->tree.nodes, .rounds = FANOUT_ROUNDS};
    struct fanout_result result;
    int r = fanout_run(&config, &result);
    if (r < 0)
        complain("bench", "bare fan-out to %" PRIu32 " processes: %s", row->tree.nodes,
                 strerror(-r));
    else
        *ret_ns = result.median_ns;
    return r;
}

static int measure_row(struct real_row *row, struct measure *ret) {
    struct rig_config config = {.tree = row->tree,
                                .links = row->settings->links,
                                .period_ns = row->settings->period_ns,
                                .tasks = row->tasks,
                                .task_count = row->count};
    uint64_t before, after;
    int r = take_fanout(row, &before);
    if (r == 0)
        r = rig_run(&config, ret, NULL);
    if (r == -ETIME)
        complain("bench", "%" PRIu32 " node processes did not come to an end; please report this",
                 row->tree.nodes);
    if (r < 0)
        return r;
    r = take_fanout(row, &after);
    row->fanout_ns = r < 0 ? before : (before + after) / 2;
    return 0;
}

/* ---- what is shown ---- */

struct real_value {
    const struct case_info *info;
    uint32_t runs, rounds;
    struct stats stats;
    uint64_t floor_ns;
    uint64_t rate;         /* bytes a second, or 0 */
    uint64_t predicted_ns; /* 0: no prediction */
};

static struct real_value evaluate(const struct real_row *row, uint32_t i,
                                  const struct measure_task *t) {
    struct real_value v = {.info = case_info(row->cases[i]), .runs = t->runs};
    v.rounds = cost_rounds(v.info->cost);
    v.stats = stats_of(t->latency_ns, t->runs);
    if (v.info->rate)
        v.rate = v.info->bytes * t->runs * 1000 / (t->span_ns / 1000 + 1) * 1000;
    else
        v.floor_ns = v.rounds * row->fanout_ns;
    if (!v.info->rate && row->cases[i] != CASE_WAVE)
        v.predicted_ns = forecast_latency(row->forecast, &row->tree, &row->tasks[i]);
    return v;
}

static void print_ms(uint64_t ns, int width) {
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64 ".%03" PRIu64, ns / NS_PER_MS, ns / NS_PER_US % 1000);
    printf("%*s", width, text);
}

static void print_value(const struct real_value *v) {
    printf("  %-12s", v->info->title);
    if (v->info->rate) {
        printf("%34" PRIu64 ".%" PRIu64 " MB/s to each node\n", v->rate / 1000000,
               v->rate / 100000 % 10);
        return;
    }
    printf("%7" PRIu32, v->rounds);
    print_ms(v->stats.median, 10);
    print_ms(v->stats.ci95, 9);
    print_ms(v->floor_ns, 9);
    uint64_t ratio = v->floor_ns ? v->stats.median * 100 / v->floor_ns : 0;
    printf("%5" PRIu64 ".%02" PRIu64, ratio / 100, ratio % 100);
    if (v->predicted_ns > 0) {
        int64_t off = (int64_t)v->predicted_ns - (int64_t)v->stats.median;
        print_ms(v->predicted_ns, 11);
        printf("%+6" PRId64 " %%", off * 100 / (int64_t)v->stats.median);
    }
    putchar('\n');
}

static void print_json(const struct real_row *row, const struct real_value *v) {
    const struct tree *t = &row->tree;
    printf("{\"bench\":\"primitives\",\"case\":\"%s\",\"nodes\":%" PRIu32
           ",\"shape\":\"%s\",\"links\":\"%s\"",
           v->info->name, t->nodes, shape_name(t->shape), row->settings->links_text);
    if (t->shape == SHAPE_KARY)
        printf(",\"arity\":%" PRIu32, t->arity);
    printf(",\"runs\":%" PRIu32, v->runs);
    report_json_ms("median_ms", v->stats.median, stdout);
    report_json_ms("ci95_ms", v->stats.ci95, stdout);
    if (v->info->rate) {
        printf(",\"rate_mb_per_s\":%" PRIu64 ".%03" PRIu64, v->rate / 1000000,
               v->rate / 1000 % 1000);
    } else {
        uint64_t ratio = v->floor_ns ? v->stats.median * 1000 / v->floor_ns : 0;
        printf(",\"rounds\":%" PRIu32, v->rounds);
        report_json_ms("fanout_ms", row->fanout_ns, stdout);
        report_json_ms("floor_ms", v->floor_ns, stdout);
        printf(",\"ratio\":%" PRIu64 ".%03" PRIu64, ratio / 1000, ratio % 1000);
    }
    if (v->predicted_ns > 0)
        report_json_ms("predicted_ms", v->predicted_ns, stdout);
    puts("}");
}

static void print_head(const struct real_row *row) {
    uint64_t predicted = forecast_fanout(row->forecast, row->tree.nodes);
    printf("\n%s%" PRIu32 " nodes%s, %s", terminal_tint(stdout, TINT_HEAD), row->tree.nodes,
           terminal_tint(stdout, TINT_NONE), shape_name(row->tree.shape));
    if (row->tree.shape == SHAPE_KARY)
        printf(" %" PRIu32, row->tree.arity);
    printf(", %" PRIu32 " levels; a bare fan-out takes", tree_depth(&row->tree));
    print_ms(row->fanout_ns, 6);
    printf(" ms");
    if (predicted > 0) {
        printf(" (predicted:");
        print_ms(predicted, 6);
        putchar(')');
    }
    printf("\n%s  %-12s%7s%10s%9s%9s%8s%11s%8s%s\n", terminal_tint(stdout, TINT_FAINT), "ms",
           "rounds", "median", "+-", "floor", "ratio", "predicted", "off",
           terminal_tint(stdout, TINT_NONE));
}

static void print_row(const struct real_row *row, const struct measure *m) {
    bool json = row->settings->json;
    if (!json)
        print_head(row);
    for (uint32_t i = 0; i < row->count; i++) {
        const struct measure_task *t = &m->tasks[i];
        if (t->done != t->runs) {
            complain("bench",
                     "%s on %" PRIu32 " nodes: %" PRIu32 " of %" PRIu32
                     " operations did not succeed; please report this",
                     case_info(row->cases[i])->name, row->tree.nodes, t->runs - t->done, t->runs);
            continue;
        }
        struct real_value v = evaluate(row, i, t);
        if (json)
            print_json(row, &v);
        else
            print_value(&v);
    }
    fflush(stdout);
}

static int run_row(const struct bench_settings *s, const struct tree *tree, struct forecast *f) {
    struct real_row row = {.settings = s, .tree = *tree, .forecast = f};
    struct measure m;
    char words[64];
    add_cases(&row);
    if (row.count == 0)
        return 0;
    snprintf(words, sizeof words, "measuring %" PRIu32 " node processes ...", tree->nodes);
    terminal_progress(words);
    int r = measure_row(&row, &m);
    terminal_progress(NULL);
    if (r < 0)
        return r;
    print_row(&row, &m);
    measure_fini(&m);
    return 0;
}

static void print_foot(void) {
    puts(
        "\nfloor: as many bare fan-outs as the operation needs rounds. One round asks all nodes and\n"
        "hears from all. A compare needs one; whatever changes something needs two: if it were\n"
        "applied in the first, a node that dies half way would leave it on some nodes only.\n"
        "predicted: by the simulator, from figures of this machine and runs of 8 and 32 nodes. If a bare\n"
        "fan-out is not as predicted, what else the machine has to do has changed since these were taken.");
}

int bench_real(const struct bench_settings *s) {
    int r = 0;
    if (!s->json)
        printf("primitives on real processes of this machine, %s links, %" PRIu64 " runs\n",
               s->links_text, s->runs);
    terminal_progress("taking the machine's measure ...");
    struct forecast *f = forecast_new(s->links);
    terminal_progress(NULL);
    for (int shape = 0; shape < SHAPES && r == 0; shape++)
        for (uint32_t i = 0; s->shapes[shape] && i < s->nodes.count && r == 0; i++) {
            struct tree tree = {.shape = (enum shape)shape,
                                .arity = (uint32_t)s->arity,
                                .nodes = (uint32_t)s->nodes.at[i]};
            r = run_row(s, &tree, f);
        }
    forecast_free(f);
    if (r == 0 && !s->json)
        print_foot();
    return r < 0 ? STATUS_FAILED : STATUS_OK;
}

/* ---- the idle cluster ---- */

static void print_idle(const struct bench_settings *s, const struct tree *t,
                       const struct rig_idle *idle) {
    uint64_t ppm = idle->cpu_ns * 1000000 / idle->span_ns;
    if (s->json) {
        printf("{\"bench\":\"idle\",\"case\":\"heartbeat\",\"nodes\":%" PRIu32
               ",\"links\":\"%s\",\"period_ms\":%" PRIu64 ",\"cpu_percent\":%" PRIu64 ".%04" PRIu64
               ",\"private_kb_median\":%" PRIu64 ",\"private_kb_max\":%" PRIu64
               ",\"private_kb_root\":%" PRIu64 "}\n",
               t->nodes, s->links_text, s->period_ns / NS_PER_MS, ppm / 10000, ppm % 10000,
               idle->memory_median / 1000, idle->memory_max / 1000, idle->memory_root / 1000);
        return;
    }
    char period[UNITS_TEXT_MAX];
    units_format_duration(s->period_ns, period, sizeof period);
    printf("%" PRIu32 " idle nodes, a heartbeat every %s: %" PRIu64 ".%03" PRIu64
           " %% of a processor for all together; private memory of a node %" PRIu64
           " kB (most: %" PRIu64 "), of the root %" PRIu64 " kB\n",
           t->nodes, period, ppm / 10000, ppm / 10 % 1000, idle->memory_median / 1000,
           idle->memory_max / 1000, idle->memory_root / 1000);
}

int bench_idle(const struct bench_settings *s) {
    enum { WATCH_PERIODS = 20 };
    for (uint32_t i = 0; i < s->nodes.count; i++) {
        struct tree tree = {
            .shape = SHAPE_KARY, .arity = (uint32_t)s->arity, .nodes = (uint32_t)s->nodes.at[i]};
        struct driver_task task = case_task(CASE_COMPARE, 1);
        struct rig_config config = {.tree = tree,
                                    .links = s->links,
                                    .period_ns = s->period_ns,
                                    .tasks = &task,
                                    .task_count = 1,
                                    .idle_ns = WATCH_PERIODS * s->period_ns};
        struct rig_idle idle;
        struct measure m;
        terminal_progress("watching an idle cluster ...");
        int r = rig_run(&config, &m, &idle);
        terminal_progress(NULL);
        if (r < 0)
            return STATUS_FAILED;
        measure_fini(&m);
        print_idle(s, &tree, &idle);
    }
    return STATUS_OK;
}

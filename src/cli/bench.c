/* SPDX-License-Identifier: MIT */
/* storm bench: measures the primitives on simulated clusters of many sizes and shapes.
 *
 * All times are virtual: they say what the protocol takes on such a network, not how fast this
 * computer is, and come out the same on every run with the same seed. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/report.h"
#include "cli/stats.h"
#include "cli/terminal.h"
#include "sim/calibrate.h"
#include "sim/network.h"

enum { LINKS_NODES_MAX = 65536, PRIMITIVES_NODES_MAX = 1000000, CHAIN_NODES_MAX = 1024 };
enum { RUNS_MAX = 10000, ARITY_MAX = 1024 };

/* Under the links every node holds a bulk transfer twice: in a buffer and in its heap. */
#define BULK_MEMORY_MAX (512 * MIB)

struct settings {
    bool sim, json;
    struct number_list nodes;
    const char *shape_text, *depth_text, *network_text, *cases_text;
    uint64_t arity, runs, seed;
    uint64_t latency_ns, jitter_ns, bytes_per_s, cpu_ns; /* UINT64_MAX: as the network has it */
    const char *svg, *svg_bandwidth;
    /* found out from these */
    struct bench_setting common;
    bool shapes[SHAPES];
    bool cases[BENCH_CASES];
};

/* ---- measuring ---- */

struct batch {
    enum bench_case cases[BENCH_CASES];
    struct driver_task tasks[BENCH_CASES];
    uint32_t count;
};

static void add_case(struct batch *b, const struct settings *s, enum bench_case which) {
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

static int run_batch(const struct settings *s, const struct cost *cost, const struct batch *b,
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
static int run_row(const struct settings *s, const struct cost *cost, struct bench_row *row,
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

static int run_series(const struct settings *s, struct bench_series *series, uint64_t *steps) {
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

/* ---- the command ---- */

static void print_setting(const struct settings *s) {
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

static int write_plots(const struct settings *s, const struct bench_series *series,
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

static int run(const struct settings *s) {
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

static void print_help(const struct option *table) {
    puts("usage: storm bench primitives --sim [OPTIONS]\n"
         "\n"
         "Measures the primitives on simulated clusters: how long an operation on all nodes takes\n"
         "from the machine manager's request until it knows that it is done everywhere, and how\n"
         "many bytes a second reach every node. Times are virtual: the same options give the same\n"
         "numbers on any computer.\n"
         "\n"
         "cases:\n"
         "  xfer, xfer-4k    XFER-AND-SIGNAL of no bytes or 4 KiB, signalling a remote event\n"
         "  compare          COMPARE-AND-WRITE that writes nothing: one round instead of two\n"
         "  compare-write    COMPARE-AND-WRITE whose condition holds, with its write\n"
         "  test-event       TEST-EVENT, which is local: no messages at all\n"
         "  wave             a heartbeat, from the tick until all nodes are known to live\n"
         "  xfer-stream      XFER-AND-SIGNALs of 4 KiB, eight at once\n"
         "  bulk             XFER-AND-SIGNAL of 1 MiB, through slots (up to 256 nodes: memory)\n"
         "\n"
         "networks (latency, bandwidth, processor time for a message in or out):");
    const struct network *n;
    for (uint32_t i = 0; (n = network_at(i)) != NULL; i++) {
        char latency[UNITS_TEXT_MAX], cpu[UNITS_TEXT_MAX];
        units_format_duration(n->link.latency_ns, latency, sizeof latency);
        units_format_duration(n->link.cpu_receive_ns, cpu, sizeof cpu);
        printf("  %-12s %7s, %5" PRIu64 " MB/s, %6s   %s\n", n->name, latency,
               n->link.bytes_per_s / 1000000, cpu, n->words);
    }
    options_print(table, stdout);
}

static int find_network(struct settings *s) {
    const struct network *n = network_find(s->network_text);
    if (n == NULL)
        return complain("bench", "there is no network \"%s\"; see: storm help bench",
                        s->network_text);
    s->common.network = n->name;
    s->common.link = n->link;
    struct link_model *l = &s->common.link;
    if (s->latency_ns != UINT64_MAX) {
        l->latency_ns = s->latency_ns;
        l->connect_ns = network_connect_ns(s->latency_ns);
    }
    if (s->jitter_ns != UINT64_MAX)
        l->jitter_ns = s->jitter_ns;
    if (s->bytes_per_s != UINT64_MAX)
        l->bytes_per_s = s->bytes_per_s;
    if (s->cpu_ns != UINT64_MAX)
        l->cpu_receive_ns = l->cpu_send_ns = s->cpu_ns;
    if (memcmp(l, &n->link, sizeof *l) != 0)
        s->common.network = "custom";
    return STATUS_OK;
}

static int find_shapes(struct settings *s) {
    enum shape shape;
    if (strcmp(s->shape_text, "all") == 0) {
        for (int i = 0; i < SHAPES; i++)
            s->shapes[i] = true;
    } else if (shape_parse(s->shape_text, &shape)) {
        s->shapes[shape] = true;
    } else {
        return complain("bench",
                        "there is no shape \"%s\"; give k-ary, binomial, chain, flat or all",
                        s->shape_text);
    }
    return STATUS_OK;
}

static int find_cases(struct settings *s) {
    char name[32];
    const char *at = s->cases_text;
    for (int i = 0; at == NULL && i < BENCH_CASES; i++)
        s->cases[i] = true;
    while (at != NULL && *at != '\0') {
        size_t len = strcspn(at, ",");
        enum bench_case which;
        snprintf(name, sizeof name, "%.*s", (int)len, at);
        if (!case_find(name, &which))
            return complain("bench", "there is no case \"%s\"; see: storm help bench", name);
        s->cases[which] = true;
        at += len + (at[len] == ',');
    }
    return STATUS_OK;
}

static int check_sizes(const struct settings *s) {
    uint64_t most =
        s->common.depth == DEPTH_LINKS ? LINKS_NODES_MAX : (uint64_t)PRIMITIVES_NODES_MAX;
    for (uint32_t i = 0; i < s->nodes.count; i++)
        if (s->nodes.at[i] < 1 || s->nodes.at[i] > most)
            return complain("bench",
                            "--nodes %" PRIu64 ": 1 to %" PRIu64
                            " nodes can be simulated under the %s; give another number",
                            s->nodes.at[i], most, depth_name(s->common.depth));
    if (s->runs < 1 || s->runs > RUNS_MAX)
        return complain("bench", "--runs %" PRIu64 ": give 1 to %d", s->runs, RUNS_MAX);
    if (s->arity < 1 || s->arity > ARITY_MAX)
        return complain("bench", "--arity %" PRIu64 ": give 1 to %d", s->arity, ARITY_MAX);
    return STATUS_OK;
}

static int find_depth(struct settings *s) {
    for (int d = 0; d < DEPTHS; d++)
        if (strcmp(s->depth_text, depth_name(d)) == 0) {
            s->common.depth = (enum depth)d;
            return STATUS_OK;
        }
    return complain("bench", "there is no depth \"%s\"; give links or primitives", s->depth_text);
}

static int check_arguments(int count, char **argv, const struct settings *s) {
    if (count == 0)
        return complain("bench", "what is to be measured? try: storm bench primitives --sim");
    if (strcmp(argv[1], "primitives") != 0)
        return complain("bench", "there is no bench \"%s\"; there is: primitives", argv[1]);
    if (count > 1)
        return complain("bench", "what is \"%s\" for? see: storm help bench", argv[2]);
    if (!s->sim)
        return complain("bench", "only simulated clusters can be measured so far; add --sim");
    return STATUS_OK;
}

int bench_main(int argc, char **argv) {
    struct settings s = {.shape_text = "k-ary",
                         .depth_text = "links",
                         .network_text = network_at(0)->name,
                         .arity = 8,
                         .runs = 5,
                         .seed = 1,
                         .latency_ns = UINT64_MAX,
                         .jitter_ns = UINT64_MAX,
                         .bytes_per_s = UINT64_MAX,
                         .cpu_ns = UINT64_MAX};
    options_list("4..1024", &s.nodes);
    const struct option table[] = {
        {"sim", OPTION_FLAG, &s.sim, NULL, "on simulated clusters (the only kind so far)"},
        {"nodes", OPTION_LIST, &s.nodes, "LIST", "4,16 or doubling 4..64 (default 4..1024)"},
        {"shape", OPTION_TEXT, &s.shape_text, "SHAPE",
         "k-ary (default), binomial, chain, flat, all"},
        {"arity", OPTION_NUMBER, &s.arity, "K", "of the k-ary tree (default 8)"},
        {"cases", OPTION_TEXT, &s.cases_text, "LIST", "only these (default: all)"},
        {"runs", OPTION_NUMBER, &s.runs, "R", "operations of each case (default 5)"},
        {"depth", OPTION_TEXT, &s.depth_text, "DEPTH",
         "simulate under the links or the primitives"},
        {"net", OPTION_TEXT, &s.network_text, "NAME", "network (default ten-gigabit)"},
        {"latency", OPTION_DURATION, &s.latency_ns, "TIME", "of a link, in place of the network's"},
        {"jitter", OPTION_DURATION, &s.jitter_ns, "TIME", "most that is added to it at random"},
        {"bandwidth", OPTION_RATE, &s.bytes_per_s, "RATE", "of a node, such as 1.25GB"},
        {"cpu", OPTION_DURATION, &s.cpu_ns, "TIME", "of a processor to receive or send a message"},
        {"seed", OPTION_NUMBER, &s.seed, "S", "of all randomness (default 1)"},
        {"json", OPTION_FLAG, &s.json, NULL, "one JSON object a line"},
        {"svg", OPTION_TEXT, &s.svg, "FILE", "write a plot of the latencies"},
        {"svg-bandwidth", OPTION_TEXT, &s.svg_bandwidth, "FILE", "write a plot of the bandwidths"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        print_help(table);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    int status = check_arguments(count, argv, &s);
    if (status == STATUS_OK)
        status = find_depth(&s);
    if (status == STATUS_OK)
        status = find_network(&s);
    if (status == STATUS_OK)
        status = find_shapes(&s);
    if (status == STATUS_OK)
        status = find_cases(&s);
    if (status == STATUS_OK)
        status = check_sizes(&s);
    s.common.seed = s.seed;
    return status == STATUS_OK ? run(&s) : status;
}

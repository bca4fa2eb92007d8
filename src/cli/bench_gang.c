/* SPDX-License-Identifier: MIT */
/* storm bench gang: what it costs that jobs share processors in turns, on clusters of its own on this machine: the
 * experiments of section 4.3 of the STORM paper.
 *
 * A row compares the same jobs one after the other and in turns, in the same minute and alternately, so that what else
 * the machine does hits both alike. Processes note themselves when they begin and when they are done: starting them does not
 * count. Beyond this machine the nodes' clocks and the network are reckoned with (sim/cost.h). */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sort.h"
#include "base/units.h"
#include "cli/bench.h"
#include "cli/complain.h"
#include "cli/gangfloor.h"
#include "cli/gangpace.h"
#include "cli/gangreport.h"
#include "cli/gangrig.h"
#include "cli/options.h"
#include "cli/stats.h"
#include "cli/terminal.h"
#include "os/companion.h"
#include "os/loop.h"
#include "sim/cost.h"
#include "sim/network.h"

enum { GANGS = 2, ROWS_MAX = 512, PES_MAX = 64, SWITCHES_MAX = 1 << 15 };
#define QUANTA_USUAL "300us,500us,1ms,2ms,10ms,50ms"

enum { SIM_ARITY = 8, SIM_NODES_FIRST = 4, SIM_NODES_LAST = 4096 };

/* As the paper has it, where it does not vary the quantum; and where gangs are compared with plain sharing. */
#define PAPER_QUANTUM_NS   (50 * NS_PER_MS)
#define SHARING_QUANTUM_NS (1 * NS_PER_MS)
#define PROBE_NS           (200 * NS_PER_MS)
#define PROBE_UNITS        ((uint64_t)2000) /* of some ten microseconds at most */
#define QUANTUM_LEAST_NS   (100 * NS_PER_US)

/* In longer turns a switch does not count; and so long says enough of the shorter ones. */
#define FLOOR_QUANTUM_END_NS (10 * NS_PER_MS)
#define FLOOR_LONGEST_NS     (10 * NS_PER_S)

struct bench_gang {
    struct number_list quanta_ns, mpl, nodes;
    uint64_t pes, work_ns, runs;
    const char *quanta_text, *kernels_text, *experiments_text, *svg, *command;
    bool json;
    bool kernels[KERNELS], experiments[EXPERIMENTS];
    char self[PATH_MAX];
    struct gangrow rows[ROWS_MAX];
    uint32_t count;
    uint64_t switches[SWITCHES_MAX];
    struct gangpace pace[GANGWAYS];
};

/* ---- a row ---- */

/* As much work as takes the wanted time alone. */
static int find_units(struct bench_gang *b, struct gangrig *g, enum gangkernel kernel,
                      uint64_t *ret) {
    uint64_t ns = 0, units = PROBE_UNITS, enough = b->work_ns < PROBE_NS ? b->work_ns : PROBE_NS;
    int r = gangrig_run(g, GANGWAY_ALONE, kernel, units, 1, &ns);
    while (r == 0 && ns < enough / 2) {
        units = units * enough / (ns + 1) + 1;
        r = gangrig_run(g, GANGWAY_ALONE, kernel, units, 1, &ns);
    }
    *ret = units * (b->work_ns / 1000) / (ns / 1000 + 1);
    *ret = *ret == 0 ? 1 : *ret;
    return r;
}

static void tell_progress(const struct gangrow *row, uint32_t run) {
    char words[160], quantum[UNITS_TEXT_MAX];
    units_format_duration(row->quantum_ns, quantum, sizeof quantum);
    snprintf(words, sizeof words,
             "%s: %" PRIu32 " jobs of %s on %" PRIu32 " x %" PRIu32 " processors, %s: run %" PRIu32
             " of %" PRIu32 " ...",
             gangexperiment_name(row->experiment), row->jobs, gangkernel_name(row->kernel),
             row->nodes, row->pes, quantum, run + 1, row->runs);
    terminal_progress(words);
}

static void take_switches(struct bench_gang *b, const struct gangrig *g, uint64_t quantum_ns,
                          uint64_t *ret_median_ns, uint64_t *ret_99_ns) {
    uint32_t n =
        gangnotes_switches(&g->notes[0], &g->notes[1], quantum_ns / 2, b->switches, SWITCHES_MAX);
    *ret_median_ns = n == 0 ? 0 : b->switches[n / 2];
    *ret_99_ns = n == 0 ? 0 : b->switches[(uint64_t)(n - 1) * 99 / 100];
}

/* What the processes saw of the last run in turns. */
static void look_back(struct bench_gang *b, const struct gangrig *g, struct gangrow *row) {
    bool runs_on = row->kernel == KERNEL_COMPUTE || row->kernel == KERNEL_CACHE; /* never waits */
    if (!runs_on || row->jobs < 2)
        return;
    if (!gangnotes_shares(g->notes, row->jobs, &row->share_least, &row->share_most))
        row->share_least = row->share_most = 0;
    if (row->jobs != GANGS)
        return;
    take_switches(b, g, row->quantum_ns, &row->switch_median_ns, &row->switch_99_ns);
    uint32_t n =
        gangnotes_away(&g->notes[0], &g->notes[1], row->quantum_ns / 2, b->switches, SWITCHES_MAX);
    bool known = n > 0 && b->switches[n / 2] < row->quantum_ns; /* else others have the machine */
    row->away_ns = known ? b->switches[n / 2] : 0;
}

/* The slowdown of each run is its own: what the machine did meanwhile was the same for both. */
static void take_slower(const uint64_t *alone, const uint64_t *turns, struct gangrow *row) {
    int64_t sorted[GANGROW_RUNS];
    for (uint32_t i = 0; i < row->runs; i++)
        sorted[i] = row->each[i] = stats_more(turns[i], alone[i]);
    row->slower = stats_middle(sorted, row->runs);
}

static uint64_t median(uint64_t *values, uint32_t count) {
    sort_u64(values, count);
    return values[count / 2];
}

static uint64_t cpu_of(const struct gangrig *g, uint32_t jobs) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < jobs; i++)
        sum += gangnotes_cpu_ns(&g->notes[i]);
    return sum;
}

static int run_watched(struct bench_gang *b, struct gangrig *g, const struct gangrow *row,
                       enum gangway way, uint64_t units, uint64_t *ret_ns) {
    int r = gangpace_start(&b->pace[way], way == GANGWAY_ALONE ? 1 : row->jobs);
    if (r < 0) {
        complain("bench", "no thread to watch the jobs with: %s; end other programs", strerror(-r));
        return r;
    }
    r = gangrig_run(g, way, row->kernel, units, row->jobs, ret_ns);
    gangpace_stop(&b->pace[way]);
    return r;
}

/* All jobs together do so much a second. */
static void take_clean(struct bench_gang *b, struct gangrow *row) {
    struct gangpace *alone = &b->pace[GANGWAY_ALONE], *turns = &b->pace[GANGWAY_TURNS];
    row->clean_looks = alone->count < turns->count ? alone->count : turns->count;
    if (row->clean_looks > 0)
        row->clean_slower =
            stats_more(median(alone->rates, alone->count), median(turns->rates, turns->count));
}

static int measure(struct bench_gang *b, struct gangrig *g, struct gangrow *row) {
    uint64_t ns[GANGWAYS][GANGROW_RUNS], cpu[GANGWAYS][GANGROW_RUNS], units = 0;
    int ways = g->config.plain ? GANGWAYS : GANGWAY_PLAIN;
    uint64_t begin = clock_ns(), stolen = machine_stolen_ns();
    for (int way = 0; way < GANGWAYS; way++)
        gangpace_init(&b->pace[way], g->notes, g->config.jobs);
    int r = find_units(b, g, row->kernel, &units);
    for (uint32_t run = 0; run < row->runs && r == 0; run++) {
        tell_progress(row, run);
        for (int way = 0; way < ways && r == 0; way++) {
            r = run_watched(b, g, row, (enum gangway)way, units, &ns[way][run]);
            cpu[way][run] = cpu_of(g, row->jobs);
            if (r == 0 && way == GANGWAY_TURNS)
                look_back(b, g, row);
        }
    }
    terminal_progress(NULL);
    if (r < 0)
        return r;
    uint64_t span = (clock_ns() - begin) * (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
    row->stolen = (uint32_t)((machine_stolen_ns() - stolen) * 1000 / (span + 1));
    row->cpu_more =
        stats_more(median(cpu[GANGWAY_TURNS], row->runs), median(cpu[GANGWAY_ALONE], row->runs));
    take_slower(ns[GANGWAY_ALONE], ns[GANGWAY_TURNS], row);
    take_clean(b, row);
    row->alone_ns = median(ns[GANGWAY_ALONE], row->runs);
    row->turns_ns = median(ns[GANGWAY_TURNS], row->runs);
    row->plain_ns = g->config.plain ? median(ns[GANGWAY_PLAIN], row->runs) : 0;
    return 0;
}

/* What turns cost with nothing of ours, at once after the row: what the host does changes by the minute. The cluster is
 * still there, and idle. Where the floor cannot be found the row does without. */
static int measure_floor(struct bench_gang *b, struct gangrig *g, struct gangrow *row) {
    bool simple = row->kernel == KERNEL_COMPUTE || row->kernel == KERNEL_CACHE;
    bool two = row->experiment == EXPERIMENT_QUANTUM || row->experiment == EXPERIMENT_NODES;
    if (!two || !simple || row->quantum_ns >= FLOOR_QUANTUM_END_NS)
        return 0;
    struct gangfloor_plan plan = {
        .kernel = row->kernel,
        .nodes = row->nodes,
        .quantum_ns = row->quantum_ns,
        .duration_ns = row->turns_ns < FLOOR_LONGEST_NS ? row->turns_ns : FLOOR_LONGEST_NS};
    terminal_progress("bare switching ...");
    int r = gangfloor_run(g->notes, &plan, &row->floor_slower);
    terminal_progress(NULL);
    if (r == 0)
        take_switches(b, g, row->quantum_ns, &row->floor_median_ns, &row->floor_99_ns);
    return r == -EINTR ? r : 0;
}

/* ---- experiments ---- */

/* All kernels that are wanted, on one cluster. */
static int measure_kernels(struct bench_gang *b, struct gangrow row, bool plain) {
    struct gangrig g;
    struct gangrig_config c = {.command = b->command,
                               .self = b->self,
                               .nodes = row.nodes,
                               .pes = row.pes,
                               .jobs = row.jobs,
                               .quantum_ns = row.quantum_ns,
                               .plain = plain};
    int r = gangrig_up(&g, &c);
    if (r < 0)
        return r;
    for (int k = 0; k < KERNELS && r == 0; k++) {
        if (!b->kernels[k] || b->count == ROWS_MAX)
            continue;
        row.kernel = (enum gangkernel)k;
        row.runs = (uint32_t)b->runs;
        struct gangrow *to = &b->rows[b->count];
        *to = row;
        r = measure(b, &g, to);
        b->count += r == 0;
        if (r == 0)
            r = measure_floor(b, &g, to);
    }
    gangrig_down(&g);
    return r;
}

static int vary_quantum(struct bench_gang *b) {
    int r = 0;
    for (uint32_t i = 0; i < b->quanta_ns.count && r == 0; i++)
        r = measure_kernels(b,
                            (struct gangrow){.experiment = EXPERIMENT_QUANTUM,
                                             .nodes = 1,
                                             .pes = (uint32_t)b->pes,
                                             .jobs = GANGS,
                                             .quantum_ns = b->quanta_ns.at[i]},
                            false);
    return r;
}

static int share_plainly(struct bench_gang *b) {
    return measure_kernels(b,
                           (struct gangrow){.experiment = EXPERIMENT_SHARING,
                                            .nodes = 1,
                                            .pes = (uint32_t)b->pes,
                                            .jobs = GANGS,
                                            .quantum_ns = SHARING_QUANTUM_NS},
                           true);
}

static int vary_mpl(struct bench_gang *b) {
    int r = 0;
    for (uint32_t i = 0; i < b->mpl.count && r == 0; i++)
        r = measure_kernels(b,
                            (struct gangrow){.experiment = EXPERIMENT_MPL,
                                             .nodes = 1,
                                             .pes = (uint32_t)b->pes,
                                             .jobs = (uint32_t)b->mpl.at[i],
                                             .quantum_ns = PAPER_QUANTUM_NS},
                            false);
    return r;
}

/* Nodes begin their turns when the strobe reaches them, so those far down the tree are behind those near the root: what a
 * process waits for another in each turn, besides the switch itself. */
static void simulate_nodes(struct bench_gang *b, uint64_t quantum_ns) {
    uint64_t cost_ns = gangreport_switch_cost(b->rows, b->count, KERNEL_COMPUTE);
    struct tree tree = {.shape = SHAPE_KARY, .arity = SIM_ARITY};
    struct cost cost;
    cost_init(&cost, &tree, &network_at(0)->link);
    for (uint32_t n = SIM_NODES_FIRST; n <= SIM_NODES_LAST && b->count < ROWS_MAX; n *= 4) {
        cost.tree.nodes = n;
        uint64_t skew = cost_path_ns(&cost, tree_depth(&cost.tree)) - cost_path_ns(&cost, 1);
        uint64_t lost = cost_ns + skew;
        b->rows[b->count++] = (struct gangrow){
            .experiment = EXPERIMENT_NODES,
            .kernel = KERNEL_WAVE,
            .nodes = n,
            .pes = 1,
            .jobs = GANGS,
            .quantum_ns = quantum_ns,
            .simulated = true,
            .slower =
                lost < quantum_ns ? (int64_t)(lost * 100000 / (quantum_ns - lost)) : INT64_MAX};
    }
}

static bool wants_nodes(const struct bench_gang *b, uint32_t nodes) {
    bool listed = b->nodes.count == 0;
    for (uint32_t i = 0; i < b->nodes.count; i++)
        listed = listed || b->nodes.at[i] == nodes;
    return listed && b->pes % nodes == 0;
}

static int vary_nodes(struct bench_gang *b) {
    static const struct number_list usual = {
        .count = 3, .at = {1 * NS_PER_MS, 2 * NS_PER_MS, PAPER_QUANTUM_NS}};
    const struct number_list *quanta = b->quanta_text == NULL ? &usual : &b->quanta_ns;
    int r = 0;
    for (uint32_t q = 0; q < quanta->count && r == 0; q++) {
        for (uint32_t n = 1; n <= b->pes && r == 0; n++)
            if (wants_nodes(b, n))
                r = measure_kernels(b,
                                    (struct gangrow){.experiment = EXPERIMENT_NODES,
                                                     .nodes = n,
                                                     .pes = (uint32_t)b->pes / n,
                                                     .jobs = GANGS,
                                                     .quantum_ns = quanta->at[q]},
                                    false);
        if (r == 0)
            simulate_nodes(b, quanta->at[q]);
    }
    return r;
}

/* ---- all of it ---- */

static int show(const struct bench_gang *b) {
    if (b->json)
        gangreport_json(b->rows, b->count, stdout);
    else
        gangreport_table(b->rows, b->count, stdout);
    if (fflush(stdout) != 0)
        return complain("bench", "the output could not be written: %s", strerror(errno));
    int r = b->svg == NULL ? 0 : gangreport_plot(b->rows, b->count, b->svg);
    if (r == -ENODATA)
        return complain("bench", "--plot shows the effect of the quantum, which was not measured");
    if (r < 0)
        return complain("bench", "%s: %s", b->svg, strerror(-r));
    return STATUS_OK;
}

static int run(struct bench_gang *b) {
    int (*const all[EXPERIMENTS])(struct bench_gang *) = {vary_quantum, share_plainly, vary_mpl,
                                                          vary_nodes};
    int r = 0;
    if (!b->json)
        printf("jobs of %.1f s on %" PRIu64 " processors, medians of %" PRIu64 " runs\n\n",
               (double)b->work_ns / 1e9, b->pes, b->runs);
    for (int e = 0; e < EXPERIMENTS && r == 0; e++)
        if (b->experiments[e])
            r = all[e](b);
    int status = b->count > 0 ? show(b) : STATUS_OK; /* what there is, is shown */
    return r < 0 ? STATUS_FAILED : status;
}

/* ---- what is wanted ---- */

/* Each word of a list with commas; -1 after complaining. */
static int each_word(const char *text, int (*take)(struct bench_gang *b, const char *word),
                     struct bench_gang *b) {
    char word[32];
    while (*text != '\0') {
        size_t len = strcspn(text, ",");
        snprintf(word, sizeof word, "%.*s", (int)len, text);
        int status = take(b, word);
        if (status != STATUS_OK)
            return status;
        text += len + (text[len] == ',');
    }
    return STATUS_OK;
}

static int take_quantum(struct bench_gang *b, const char *word) {
    uint64_t ns;
    if (units_parse_duration(word, &ns) < 0 || ns < QUANTUM_LEAST_NS || ns % NS_PER_US != 0)
        return complain("bench",
                        "--quanta: \"%s\" will not do; for example --quanta 500us,1ms,50ms", word);
    if (b->quanta_ns.count == NUMBERS_MAX)
        return complain("bench", "--quanta: at most %d", NUMBERS_MAX);
    b->quanta_ns.at[b->quanta_ns.count++] = ns;
    return STATUS_OK;
}

static int take_kernel(struct bench_gang *b, const char *word) {
    enum gangkernel k;
    if (!gangkernel_find(word, &k))
        return complain("bench", "there is no kernel \"%s\"; there are: compute, cache, pair, wave",
                        word);
    b->kernels[k] = true;
    return STATUS_OK;
}

static int take_experiment(struct bench_gang *b, const char *word) {
    enum gangexperiment e;
    if (!gangexperiment_find(word, &e))
        return complain("bench",
                        "there is no experiment \"%s\"; there are: quantum, sharing, mpl, nodes",
                        word);
    b->experiments[e] = true;
    return STATUS_OK;
}

static int check(struct bench_gang *b) {
    const char *quanta = b->quanta_text == NULL ? QUANTA_USUAL : b->quanta_text;
    int status = each_word(quanta, take_quantum, b);
    if (status == STATUS_OK)
        status = each_word(b->kernels_text, take_kernel, b);
    if (status == STATUS_OK)
        status = each_word(b->experiments_text, take_experiment, b);
    if (status != STATUS_OK)
        return status;
    for (uint32_t i = 0; i < b->mpl.count; i++)
        if (b->mpl.at[i] < 1 || b->mpl.at[i] > GANGRIG_JOBS)
            return complain("bench", "--mpl: give 1 to %d", GANGRIG_JOBS);
    if (b->runs < 1 || b->runs > GANGROW_RUNS)
        return complain("bench", "--runs: give 1 to %d", GANGROW_RUNS);
    if (b->pes < 1 || b->pes > PES_MAX)
        return complain("bench", "--pes: give 1 to %d", PES_MAX);
    if (b->work_ns < NS_PER_MS || b->work_ns > 3600 * NS_PER_S)
        return complain("bench", "--work: give 1ms to 1h");
    return STATUS_OK;
}

static void print_help(const struct option *table) {
    fputs(
        "usage: storm bench gang [OPTIONS]\n"
        "\n"
        "What it costs that jobs share processors in turns (storm up --policy gang): jobs with a\n"
        "process for each processor, in turns, against the same one after the other, on clusters\n"
        "of its own. The experiments of the STORM paper, and what follows for storm sim.\n"
        "\n"
        "experiments:\n"
        "  quantum   two jobs, turns of different lengths; the smallest that costs 2 % at most\n"
        "  sharing   two jobs, 1 ms; against plain time sharing by the system, too\n"
        "  mpl       one, two, four, eight jobs, 50 ms\n"
        "  nodes     the same processors as one node or as several; reckoned beyond\n"
        "kernels:\n"
        "  compute   registers only\n"
        "  cache     goes through a working set of 1 MiB\n"
        "  pair      processes exchange a word every ten microseconds, and spin for it\n"
        "  wave      a pipelined sweep through a grid of processes, as the paper's application\n"
        "\n"
        "What turns cost a bare program that does nothing else is measured beside quantum and\n"
        "nodes, for compute and cache below 10 ms: as root, with control groups (version 2).\n",
        stdout);
    options_print(table, stdout);
}

int bench_gang(int argc, char **argv) {
    static struct bench_gang b;
    b = (struct bench_gang){.pes = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN),
                            .work_ns = NS_PER_S,
                            .runs = 3,
                            .mpl = {.count = 4, .at = {1, 2, 4, 8}},
                            .kernels_text = "compute,cache,pair,wave",
                            .experiments_text = "quantum,sharing,mpl,nodes"};
    const struct option options[] = {
        {"experiments", OPTION_TEXT, &b.experiments_text, "LIST",
         "only these (default quantum,sharing,mpl,nodes)"},
        {"kernels", OPTION_TEXT, &b.kernels_text, "LIST",
         "only these (default compute,cache,pair,wave)"},
        {"quanta", OPTION_TEXT, &b.quanta_text, "LIST",
         "of turns (default " QUANTA_USUAL "; nodes: 1ms,2ms,50ms)"},
        {"nodes", OPTION_LIST, &b.nodes, "LIST",
         "of the processors here (default: all numbers that divide them)"},
        {"mpl", OPTION_LIST, &b.mpl, "LIST", "jobs at once (default 1,2,4,8)"},
        {"work", OPTION_DURATION, &b.work_ns, "TIME", "that a job takes alone (default 1s)"},
        {"runs", OPTION_NUMBER, &b.runs, "R",
         "of each row, of which the median counts (default 3)"},
        {"pes", OPTION_NUMBER, &b.pes, "N", "processes of a job (default: processors here)"},
        {"json", OPTION_FLAG, &b.json, NULL, "one JSON object a line"},
        {"plot", OPTION_TEXT, &b.svg, "FILE", "write a plot of the effect of the quantum, as SVG"},
        {"svg", OPTION_TEXT, &b.svg, "FILE", NULL}, /* as other benches call it */
        {"command", OPTION_TEXT, &b.command, "PATH", "the storm command to be measured"},
        {0}};
    int count = options_parse(options, argc, argv);
    if (count == OPTIONS_HELP) {
        print_help(options);
        return STATUS_OK;
    }
    if (count != 0)
        return count == OPTIONS_WRONG ? STATUS_USAGE : complain("bench", "gang takes options only");
    int status = check(&b);
    if (status != STATUS_OK)
        return status;
    int r = companion_self(b.self, sizeof b.self);
    if (r < 0)
        return complain("bench", "this command cannot be found: %s", strerror(-r));
    b.command = b.command == NULL ? b.self : b.command;
    return run(&b);
}

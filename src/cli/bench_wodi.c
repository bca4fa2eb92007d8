/* SPDX-License-Identifier: MIT */
/* storm bench wodi: master and workers. How many steps a second, with real processes; and the CARMI paper's workload in virtual
 * time: what the order of steps is worth (its table 1), time and efficiency by the number of workers (figures 6 to 8), runs
 * while workers come and go (figures 9 and 10, table 2). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/units.h"
#include "cli/bench.h"
#include "cli/complain.h"
#include "cli/fieldplot.h"
#include "cli/json.h"
#include "cli/stats.h"
#include "cli/table.h"
#include "cli/wodirate.h"

enum { STEPS_MAX = 100000000, ORDER_WORKERS = 20, CROWD = 40, START_MOST = 12 };
#define MINUTE_NS (60 * NS_PER_S)
#define ADD_NS    (10 * MINUTE_NS)
#define LOSE_NS   (20 * MINUTE_NS)

struct wodi_settings {
    struct number_list workers;
    uint64_t steps, runs, seed;
    const char *sync, *out;
    bool json, sim;
};

static int no_memory(void) {
    complain("bench", "%s", strerror(ENOMEM));
    return STATUS_STORM;
}

/* "4:50" */
static const char *hours(uint64_t ns, char text[24]) {
    uint64_t minutes = (ns + MINUTE_NS / 2) / MINUTE_NS;
    snprintf(text, 24, "%" PRIu64 ":%02" PRIu64, minutes / 60, minutes % 60);
    return text;
}

static void json_begin(struct json *j, const char *name) {
    *j = (struct json){.out = stdout};
    json_open(j, NULL, '{');
    json_word(j, "bench", "wodi");
    json_word(j, "case", name);
}

static void json_end(struct json *j) {
    json_close(j, '}');
    fputc('\n', stdout);
}

static double seconds(uint64_t ns) {
    return (double)ns / (double)NS_PER_S;
}

static uint32_t permille(uint64_t part, uint64_t whole) {
    return whole > 0 ? (uint32_t)(part / (whole / 1000)) : 0;
}

/* ---- steps by the second ---- */

static void show_rate(struct table *t, const struct wodi_settings *s, const struct wodirate *r) {
    double rate = 1e9 / (double)r->ns, bare = 1e9 / (double)r->bare_ns;
    if (s->json) {
        struct json j;
        json_begin(&j, "rate");
        json_number(&j, "workers", r->workers);
        json_number(&j, "steps", r->steps);
        json_decimal(&j, "rate_per_s", rate, 1);
        json_decimal(&j, "bare_per_s", bare, 1);
        json_decimal(&j, "ratio", rate / bare, 3);
        json_number(&j, "server_kb", r->late_kb);
        json_end(&j);
        return;
    }
    table_cell(t, "%" PRIu32, r->workers);
    table_cell(t, "%.0f", rate);
    table_cell(t, "%.0f", bare);
    table_cell(t, "%.2f", rate / bare);
    table_cell(t, "%" PRIu64, r->early_kb);
    table_cell(t, "%" PRIu64, r->late_kb);
}

static int bench_rate(const struct wodi_settings *s) {
    static const char *const titles[] = {">WORKERS",          ">STEPS/S", ">BARE/S", ">RATIO",
                                         ">SERVER EARLY, kB", ">LATE",    NULL};
    struct table t;
    int r = 0;
    table_init(&t, titles);
    for (uint32_t i = 0; i < s->workers.count && r == 0; i++) {
        struct wodirate rate = {.steps = s->steps,
                                .workers = (uint32_t)s->workers.at[i],
                                .sync = strcmp(s->sync, "data") == 0};
        r = wodirate_run(&rate);
        if (r == 0)
            show_rate(&t, s, &rate);
    }
    if (r < 0)
        complain("bench", "%s", strerror(-r));
    if (!s->json && r == 0) {
        printf("%" PRIu64 " steps of 100 bytes that do nothing, sync %s\n", s->steps, s->sync);
        table_print(&t, stdout);
    }
    table_fini(&t);
    return r < 0 ? STATUS_STORM : STATUS_OK;
}

/* ---- table 1 ---- */

static void show_order(struct table *t, const struct wodi_settings *s, const char *order,
                       const struct fieldwork_outcome *o) {
    char a[24], b[24], c[24];
    uint32_t efficiency = permille(o->cpu_ns, o->occupancy_ns);
    if (s->json) {
        struct json j;
        json_begin(&j, "order");
        json_word(&j, "order", order);
        json_number(&j, "workers", ORDER_WORKERS);
        json_decimal(&j, "run_s", seconds(o->ns), 3);
        json_decimal(&j, "occupancy_s", seconds(o->occupancy_ns), 3);
        json_decimal(&j, "cpu_s", seconds(o->cpu_ns), 3);
        json_decimal(&j, "efficiency", efficiency / 1000.0, 3);
        json_end(&j);
        return;
    }
    table_cell(t, "%s", order);
    table_cell(t, "%s", hours(o->ns, a));
    table_cell(t, "%s", hours(o->occupancy_ns, b));
    table_cell(t, "%s", hours(o->cpu_ns, c));
    table_cell(t, "%" PRIu32 " %%", (efficiency + 5) / 10);
}

static int bench_order(const struct wodi_settings *s) {
    static const char *const titles[] = {"STEPS GO",  ">RUN LENGTH", ">TOTAL OCCUPANCY",
                                         ">CPU TIME", ">EFFICIENCY", NULL};
    struct table t;
    struct fieldwork_plan p;
    bool good = true;
    fieldwork_paper(&p, ORDER_WORKERS);
    p.seed = s->seed;
    table_init(&t, titles);
    for (int i = 0; i < 2 && good; i++) {
        struct fieldwork_outcome o;
        p.in_order = i == 0;
        good = fieldwork_run(&p, NULL, NULL, &o);
        if (good)
            show_order(&t, s, i == 0 ? "as sent" : "longest first", &o);
    }
    if (!s->json && good) {
        printf("\nThe effect of ordering, %d workers (table 1)\n", ORDER_WORKERS);
        table_print(&t, stdout);
    }
    table_fini(&t);
    return good ? STATUS_OK : no_memory();
}

/* ---- figures 6 to 8 ---- */

/* Sums of what each step took, and of its squares in milliseconds. */
struct lengths {
    uint64_t count[FIELDWORK_STEPS_MAX], sum[FIELDWORK_STEPS_MAX], squares[FIELDWORK_STEPS_MAX];
};

static void add_length(void *context, enum fieldwork_event event, uint32_t worker, uint64_t step,
                       uint64_t from, uint64_t to) {
    struct lengths *l = context;
    uint64_t ms = (to - from) / NS_PER_MS;
    (void)worker;
    if (event != FIELDWORK_DONE)
        return;
    l->count[step - 1]++;
    l->sum[step - 1] += ms;
    l->squares[step - 1] += ms * ms;
}

static void take_steps(struct fieldplot *f, const struct lengths *l) {
    for (uint32_t i = 0; i < f->plan.steps; i++) {
        uint64_t n = l->count[i] > 0 ? l->count[i] : 1, mean = l->sum[i] / n;
        uint64_t square = l->squares[i] / n;
        uint64_t variance = square > mean * mean ? square - mean * mean : 0;
        f->steps[i] = (struct fieldplot_step){.mean_ns = mean * NS_PER_MS,
                                              .deviation_ns = stats_root(variance) * NS_PER_MS};
    }
}

static void show_level(struct table *t, const struct wodi_settings *s, uint32_t workers,
                       const struct fieldplot_level *l) {
    if (s->json) {
        struct json j;
        json_begin(&j, "level");
        json_number(&j, "workers", workers);
        json_decimal(&j, "bound_s", seconds(l->bound_ns), 3);
        json_decimal(&j, "cycle_s", seconds(l->run_ns), 3);
        json_decimal(&j, "bound_efficiency", l->bound_permille / 1000.0, 3);
        json_decimal(&j, "efficiency", l->run_permille / 1000.0, 3);
        json_end(&j);
        return;
    }
    table_cell(t, "%" PRIu32, workers);
    table_cell(t, "%.0f", seconds(l->bound_ns));
    table_cell(t, "%.0f", seconds(l->run_ns));
    table_cell(t, "%.1f", l->bound_permille / 10.0);
    table_cell(t, "%.1f", l->run_permille / 10.0);
}

static bool take_level(struct fieldplot *f, uint32_t workers, uint64_t seed) {
    static struct lengths lengths;
    struct fieldplot_level *l = &f->levels[workers];
    struct fieldwork_outcome o;
    uint64_t work = 0;
    fieldwork_paper(&f->plan, workers);
    f->plan.seed = seed;
    memset(&lengths, 0, sizeof lengths);
    if (!fieldwork_run(&f->plan, add_length, &lengths, &o))
        return false;
    for (uint32_t i = 0; i < f->plan.steps; i++)
        work += f->plan.ns[i];
    l->bound_ns = fieldwork_bound(&f->plan, workers * 1000) / f->plan.cycles;
    l->run_ns = o.ns / f->plan.cycles;
    l->bound_permille = permille(work, l->bound_ns * workers);
    l->run_permille = permille(o.cpu_ns, o.occupancy_ns);
    take_steps(f, &lengths);
    return true;
}

static int bench_levels(const struct wodi_settings *s, struct fieldplot *f) {
    static const char *const titles[] = {
        ">WORKERS", ">THEORY, s", ">RUN, s", ">EFFICIENCY, THEORY, %", ">RUN, %", NULL};
    struct table t;
    bool good = true;
    table_init(&t, titles);
    for (uint32_t n = 1; n <= FIELDPLOT_LEVELS && good; n++) {
        good = take_level(f, n, s->seed);
        if (good)
            show_level(&t, s, n, &f->levels[n]);
    }
    if (!s->json && good) {
        puts("\nA cycle by the number of workers, all of which stay (figures 7 and 8)");
        table_print(&t, stdout);
    }
    table_fini(&t);
    return good ? STATUS_OK : no_memory();
}

/* ---- table 2 ---- */

enum sized { AVERAGE_X1000, RUN_NS, EFFICIENCY, OCCUPANCY_NS, ADDS, LOSSES, MEASURES };
enum unit { UNIT_THOUSANDTH, UNIT_HOURS, UNIT_PERMILLE, UNIT_NUMBER };

static const struct {
    const char *words, *key;
    enum unit unit;
} measures[MEASURES] = {{"workers, on average", "workers", UNIT_THOUSANDTH},
                        {"run length", "run_s", UNIT_HOURS},
                        {"efficiency", "efficiency", UNIT_PERMILLE},
                        {"total occupancy", "occupancy_s", UNIT_HOURS},
                        {"workers that came", "adds", UNIT_NUMBER},
                        {"workers that were lost", "losses", UNIT_NUMBER}};

struct summary {
    double average, deviation, least, most;
};

static struct summary sum_up(const double *values, uint64_t count) {
    struct summary s = {.least = values[0], .most = values[0]};
    double squares = 0;
    for (uint64_t i = 0; i < count; i++) {
        s.average += values[i] / (double)count;
        s.least = values[i] < s.least ? values[i] : s.least;
        s.most = values[i] > s.most ? values[i] : s.most;
    }
    for (uint64_t i = 0; i < count; i++)
        squares += (values[i] - s.average) * (values[i] - s.average) / (double)count;
    s.deviation = (double)stats_root((uint64_t)(squares * 1e6)) / 1e3;
    return s;
}

/* Measured in seconds, workers, parts of one, and pieces. */
static void measure_cell(struct table *t, enum unit unit, double value) {
    char text[24];
    switch (unit) {
    case UNIT_HOURS:
        table_cell(t, "%s", hours((uint64_t)(value * (double)NS_PER_S), text));
        break;
    case UNIT_PERMILLE:
        table_cell(t, "%.1f %%", value * 100);
        break;
    case UNIT_THOUSANDTH:
    case UNIT_NUMBER:
        table_cell(t, "%.1f", value);
        break;
    }
}

static void show_summary(struct table *t, const struct wodi_settings *s, enum sized m,
                         const struct summary *v) {
    const double all[] = {v->average, v->deviation, v->least, v->most};
    if (s->json) {
        struct json j;
        json_begin(&j, "summary");
        json_word(&j, "measure", measures[m].key);
        json_number(&j, "runs", s->runs);
        json_decimal(&j, "average", v->average, 3);
        json_decimal(&j, "deviation", v->deviation, 3);
        json_decimal(&j, "min", v->least, 3);
        json_decimal(&j, "max", v->most, 3);
        json_end(&j);
        return;
    }
    table_cell(t, "%s", measures[m].words);
    for (int i = 0; i < 4; i++)
        measure_cell(t, measures[m].unit, all[i]);
}

/* Owners come and go: a worker every ten minutes, one less every twenty. At the beginning there are some. */
static void make_plan(struct fieldwork_plan *p, uint64_t seed) {
    struct random random;
    random_init(&random, seed);
    fieldwork_paper(p, (uint32_t)random_between(&random, 1, START_MOST));
    p->workers_max = CROWD;
    p->add_ns = ADD_NS;
    p->lose_ns = LOSE_NS;
    p->seed = seed;
}

static bool take_runs(const struct wodi_settings *s, struct fieldplot *f, double *values) {
    for (uint64_t i = 0; i < s->runs; i++) {
        struct fieldwork_outcome o;
        make_plan(&f->plan, s->seed + i);
        if (!fieldwork_run(&f->plan, NULL, NULL, &o))
            return false;
        double average = (double)o.occupancy_ns / (double)o.ns;
        const double row[MEASURES] = {average,
                                      seconds(o.ns),
                                      (double)o.cpu_ns / (double)o.occupancy_ns,
                                      seconds(o.occupancy_ns),
                                      o.adds,
                                      o.losses};
        for (int m = 0; m < MEASURES; m++)
            values[(uint64_t)m * s->runs + i] = row[m];
        f->runs[f->run_count++] =
            (struct fieldplot_run){.ns = o.ns, .workers_x1000 = (uint64_t)(average * 1000)};
    }
    return true;
}

static int bench_runs(const struct wodi_settings *s, struct fieldplot *f) {
    static const char *const titles[] = {"", ">AVERAGE", ">DEVIATION", ">MIN", ">MAX", NULL};
    struct table t;
    double *values = calloc(s->runs * MEASURES, sizeof *values);
    bool good = values != NULL && take_runs(s, f, values);
    table_init(&t, titles);
    for (int m = 0; m < MEASURES && good; m++) {
        struct summary v = sum_up(values + (uint64_t)m * s->runs, s->runs);
        show_summary(&t, s, (enum sized)m, &v);
    }
    if (!s->json && good) {
        printf("\n%" PRIu64 " runs while workers come and go (table 2)\n", s->runs);
        table_print(&t, stdout);
    }
    table_fini(&t);
    free(values);
    return good ? STATUS_OK : no_memory();
}

/* ---- the command ---- */

static int run(const struct wodi_settings *s) {
    static struct fieldplot figures;
    int status = s->sim ? STATUS_OK : bench_rate(s);
    if (status == STATUS_OK)
        status = bench_order(s);
    if (status == STATUS_OK)
        status = bench_levels(s, &figures);
    if (status == STATUS_OK)
        status = bench_runs(s, &figures);
    if (status != STATUS_OK || s->out == NULL)
        return status;
    make_plan(&figures.plan, s->seed);
    int r = fieldplot_write(&figures, s->out);
    if (r < 0)
        complain(s->out, "%s", strerror(-r));
    return r < 0 ? STATUS_STORM : STATUS_OK;
}

static int judge(struct wodi_settings *s) {
    if (s->workers.count == 0)
        options_list("1,2,4", &s->workers);
    for (uint32_t i = 0; i < s->workers.count; i++)
        if (s->workers.at[i] < 1 || s->workers.at[i] > WODIRATE_WORKERS_MAX)
            return complain("bench", "--workers %" PRIu64 ": give 1 to %d", s->workers.at[i],
                            WODIRATE_WORKERS_MAX);
    if (s->steps < 10 || s->steps > STEPS_MAX)
        return complain("bench", "--steps %" PRIu64 ": give 10 to %d", s->steps, STEPS_MAX);
    if (s->runs < 1 || s->runs > FIELDPLOT_RUNS_MAX)
        return complain("bench", "--runs %" PRIu64 ": give 1 to %d", s->runs, FIELDPLOT_RUNS_MAX);
    if (strcmp(s->sync, "data") != 0 && strcmp(s->sync, "none") != 0)
        return complain("bench", "--sync %s: give data or none", s->sync);
    return STATUS_OK;
}

int bench_wodi(int argc, char **argv) {
    struct wodi_settings s = {.steps = 100000, .runs = 61, .seed = 1, .sync = "data"};
    const struct option table[] = {
        {"workers", OPTION_LIST, &s.workers, "LIST", "of steps that do nothing (default 1,2,4)"},
        {"steps", OPTION_NUMBER, &s.steps, "N", "so many of them (default 100000)"},
        {"sync", OPTION_TEXT, &s.sync, "HOW", "survive the machine: data (default), or none"},
        {"runs", OPTION_NUMBER, &s.runs, "R", "while workers come and go (default 61)"},
        {"seed", OPTION_NUMBER, &s.seed, "S", "of all randomness (default 1)"},
        {"sim", OPTION_FLAG, &s.sim, NULL, "only what is in virtual time"},
        {"out", OPTION_TEXT, &s.out, "DIR", "write the figures there, as SVG"},
        {"json", OPTION_FLAG, &s.json, NULL, "one JSON object a line"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm bench wodi [OPTIONS]\n\n"
            "Master and workers: steps that do nothing, by the second, with a server and workers on this\n"
            "machine, beside bare messages through three processes; then the materials science program of\n"
            "the CARMI paper in virtual time: what ordering is worth, time and efficiency by the number of\n"
            "workers, runs while workers come and go.\n");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count > 0)
        return complain("bench", "what is \"%s\" for? see: storm bench wodi --help", argv[1]);
    int status = judge(&s);
    return status == STATUS_OK ? run(&s) : status;
}

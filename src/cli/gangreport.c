/* SPDX-License-Identifier: MIT */
/* What was measured of gangs: see gangreport.h. */
#include "cli/gangreport.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/units.h"
#include "cli/json.h"
#include "cli/plot.h"
#include "cli/table.h"

enum { PERCENT = 1000, TOLERATED = 2 * PERCENT };

/* Longer turns say nothing of what a switch costs: what else happens in one is more. */
#define CALIBRATED_NS (2 * NS_PER_MS)

static const struct {
    const char *name, *words;
} experiments[EXPERIMENTS] = {
    {"quantum", "Effect of the quantum (figure 3 of the STORM paper)"},
    {"sharing", "In turns, against plain time sharing"},
    {"mpl", "Effect of the multiprogramming level (figure 5)"},
    {"nodes", "Effect of nodes (figure 4)"},
};

const char *gangexperiment_name(enum gangexperiment e) {
    return experiments[e].name;
}

bool gangexperiment_find(const char *name, enum gangexperiment *ret) {
    for (int e = 0; e < EXPERIMENTS; e++)
        if (strcmp(experiments[e].name, name) == 0) {
            *ret = (enum gangexperiment)e;
            return true;
        }
    return false;
}

/* ---- what follows ---- */

static bool of_quantum(const struct gangrow *r, enum gangkernel k) {
    return r->experiment == EXPERIMENT_QUANTUM && r->kernel == k;
}

int64_t gangreport_parts(const struct gangrow *r) {
    int64_t quantum = (int64_t)r->quantum_ns, left = quantum - (int64_t)r->away_ns;
    if (left <= 0)
        return INT64_MAX;
    return (100 * PERCENT + r->cpu_more) * quantum / left - 100 * PERCENT;
}

/* Thousandths of a percent that a turn loses. */
static int64_t lost_of(const struct gangrow *r) {
    return r->away_ns > 0 ? gangreport_parts(r) : r->slower;
}

uint64_t gangreport_switch_cost(const struct gangrow *rows, uint32_t count, enum gangkernel k) {
    uint64_t costs[64];
    uint32_t found = 0;
    for (const struct gangrow *r = rows; r < rows + count && found < 64; r++)
        if (of_quantum(r, k) && r->quantum_ns <= CALIBRATED_NS)
            costs[found++] = lost_of(r) <= 0 ? 0
                                             : r->quantum_ns * (uint64_t)lost_of(r) /
                                                   (100 * PERCENT + (uint64_t)lost_of(r));
    sort_u64(costs, found);
    return found == 0 ? 0 : costs[found / 2];
}

const struct gangrow *gangreport_smallest(const struct gangrow *rows, uint32_t count,
                                          enum gangkernel k) {
    const struct gangrow *best = NULL;
    uint64_t slow = 0; /* the longest quantum that is not good enough */
    for (const struct gangrow *r = rows; r < rows + count; r++)
        if (of_quantum(r, k) && r->slower > TOLERATED && r->quantum_ns > slow)
            slow = r->quantum_ns;
    for (const struct gangrow *r = rows; r < rows + count; r++)
        if (of_quantum(r, k) && r->quantum_ns > slow &&
            (best == NULL || r->quantum_ns < best->quantum_ns))
            best = r;
    return best;
}

/* ---- tables ---- */

static void cell_time(struct table *t, uint64_t ns) {
    char text[UNITS_TEXT_MAX];
    units_format_duration(ns, text, sizeof text);
    table_cell(t, "%s", ns == 0 ? "" : text);
}

static void add_row(struct table *t, const struct gangrow *r) {
    table_cell(t, "%" PRIu32 "%s", r->nodes, r->simulated ? " simulated" : "");
    table_cell(t, "%" PRIu32, r->jobs);
    cell_time(t, r->quantum_ns);
    table_cell(t, "%s", gangkernel_name(r->kernel));
    cell_time(t, r->alone_ns);
    cell_time(t, r->turns_ns);
    table_cell(t, "%+.2f %%", (double)r->slower / PERCENT);
    cell_time(t, r->plain_ns);
    if (r->plain_ns > 0 && r->turns_ns > 0)
        table_cell(t, "%.2f", (double)r->plain_ns / (double)r->turns_ns);
    else
        table_cell(t, "%s", "");
    if (r->share_most > 0)
        table_cell(t, "%.1f .. %.1f %%", (double)r->share_least / 10, (double)r->share_most / 10);
    else
        table_cell(t, "%s", "");
    cell_time(t, r->switch_median_ns);
    cell_time(t, r->switch_99_ns);
    cell_time(t, r->away_ns);
    if (r->away_ns > 0)
        table_cell(t, "%+.2f %%", (double)gangreport_parts(r) / PERCENT);
    else
        table_cell(t, "%s", "");
    if (r->clean_looks > 0)
        table_cell(t, "%+.2f %%", (double)r->clean_slower / PERCENT);
    else
        table_cell(t, "%s", "");
    if (r->simulated)
        table_cell(t, "%s", "");
    else
        table_cell(t, "%.1f %%", (double)r->stolen / 10);
}

static void print_experiment(const struct gangrow *rows, uint32_t count, enum gangexperiment e,
                             FILE *out) {
    static const char *const titles[] = {
        ">NODES",  ">JOBS",     ">QUANTUM",     "KERNEL",  ">ONE BY ONE", ">IN TURNS",
        ">SLOWER", ">PLAIN",    ">PLAIN/TURNS", ">SHARES", ">SWITCH",     ">99 %",
        ">AWAY",   ">BY PARTS", ">CLEAN",       ">STOLEN", NULL};
    struct table t;
    bool any = false;
    for (uint32_t i = 0; i < count; i++)
        any = any || rows[i].experiment == e;
    if (!any)
        return;
    fprintf(out, "%s\n\n", experiments[e].words);
    table_init(&t, titles);
    for (uint32_t i = 0; i < count; i++)
        if (rows[i].experiment == e)
            add_row(&t, &rows[i]);
    table_print(&t, out);
    table_fini(&t);
    fputc('\n', out);
}

static void print_floors(const struct gangrow *rows, uint32_t count, enum gangexperiment e,
                         FILE *out) {
    bool any = false;
    for (const struct gangrow *r = rows; r < rows + count; r++) {
        char quantum[UNITS_TEXT_MAX], median[UNITS_TEXT_MAX], most[UNITS_TEXT_MAX];
        if (r->experiment != e || r->floor_median_ns == 0)
            continue;
        units_format_duration(r->quantum_ns, quantum, sizeof quantum);
        units_format_duration(r->floor_median_ns, median, sizeof median);
        units_format_duration(r->floor_99_ns, most, sizeof most);
        fprintf(out,
                "bare switching at %s, %s, %u node%s: %s, 99 %% %s, %+.2f %% (the same two writes, "
                "nothing else)\n",
                quantum, gangkernel_name(r->kernel), r->nodes, r->nodes == 1 ? "" : "s", median,
                most, (double)r->floor_slower / PERCENT);
        any = true;
    }
    if (any)
        fputc('\n', out);
}

/* Table 6 of the paper. */
static void print_smallest(const struct gangrow *rows, uint32_t count, FILE *out) {
    bool any = false;
    for (uint32_t i = 0; i < count; i++)
        any = any || rows[i].experiment == EXPERIMENT_QUANTUM;
    if (!any)
        return;
    fputs("The smallest quantum with a slowdown of 2 % at most (table 6 of the paper)\n\n"
          "  RMS                     30 s    15 nodes, 1.8 %, as the paper has it\n"
          "  SCore-D               100 ms    64 nodes, 2 %, the same\n"
          "  STORM, 2006             2 ms    64 nodes, none to be seen, the same\n",
          out);
    for (int k = 0; k < KERNELS; k++) {
        const struct gangrow *r = gangreport_smallest(rows, count, (enum gangkernel)k);
        char text[UNITS_TEXT_MAX] = "none";
        bool tried = false;
        for (uint32_t i = 0; i < count; i++)
            tried = tried || of_quantum(&rows[i], (enum gangkernel)k);
        if (r != NULL)
            units_format_duration(r->quantum_ns, text, sizeof text);
        if (tried && r != NULL)
            fprintf(out,
                    "  here, %-10s %11s    %" PRIu32 " %s of %" PRIu32 " processors, %.2f %%\n",
                    gangkernel_name((enum gangkernel)k), text, r->nodes,
                    r->nodes == 1 ? "node" : "nodes", r->pes, (double)r->slower / PERCENT);
        else if (tried)
            fprintf(out, "  here, %-10s %11s    of those that were tried\n",
                    gangkernel_name((enum gangkernel)k), text);
    }
    fputc('\n', out);
}

static void print_cost(const struct gangrow *rows, uint32_t count, FILE *out) {
    for (int k = 0; k < KERNELS; k++) {
        uint64_t cost = gangreport_switch_cost(rows, count, (enum gangkernel)k);
        if (cost > 0)
            fprintf(out, "a switch costs, %-8s storm sim --switch-cost %" PRIu64 "ns\n",
                    gangkernel_name((enum gangkernel)k), cost);
    }
}

void gangreport_table(const struct gangrow *rows, uint32_t count, FILE *out) {
    for (int e = 0; e < EXPERIMENTS; e++) {
        print_experiment(rows, count, (enum gangexperiment)e, out);
        print_floors(rows, count, (enum gangexperiment)e, out);
    }
    print_smallest(rows, count, out);
    print_cost(rows, count, out);
}

/* ---- JSON ---- */

static void json_row(const struct gangrow *r, FILE *out) {
    struct json j = {.out = out};
    json_open(&j, NULL, '{');
    json_word(&j, "bench", "gang");
    json_word(&j, "experiment", gangexperiment_name(r->experiment));
    json_word(&j, "kernel", gangkernel_name(r->kernel));
    json_bool(&j, "simulated", r->simulated);
    json_number(&j, "nodes", r->nodes);
    json_number(&j, "pes", r->pes);
    json_number(&j, "jobs", r->jobs);
    json_number(&j, "runs", r->runs);
    json_ms(&j, "quantum_ms", r->quantum_ns);
    json_ms(&j, "alone_ms", r->alone_ns);
    json_ms(&j, "turns_ms", r->turns_ns);
    json_decimal(&j, "slower_percent", (double)r->slower / PERCENT, 3);
    json_open(&j, "each_percent", '[');
    for (uint32_t i = 0; i < r->runs && !r->simulated; i++)
        json_decimal(&j, NULL, (double)r->each[i] / PERCENT, 3);
    json_close(&j, ']');
    if (r->plain_ns > 0)
        json_ms(&j, "plain_ms", r->plain_ns);
    if (r->share_most > 0) {
        json_decimal(&j, "share_least", (double)r->share_least / 1000, 3);
        json_decimal(&j, "share_most", (double)r->share_most / 1000, 3);
    }
    if (r->switch_99_ns > 0) {
        json_ms(&j, "switch_ms", r->switch_median_ns);
        json_ms(&j, "switch_99_ms", r->switch_99_ns);
    }
    if (r->floor_median_ns > 0) {
        json_ms(&j, "floor_switch_ms", r->floor_median_ns);
        json_ms(&j, "floor_switch_99_ms", r->floor_99_ns);
        json_decimal(&j, "floor_slower_percent", (double)r->floor_slower / PERCENT, 3);
    }
    if (r->away_ns > 0) {
        json_ms(&j, "away_ms", r->away_ns);
        json_decimal(&j, "cpu_more_percent", (double)r->cpu_more / PERCENT, 3);
        json_decimal(&j, "parts_percent", (double)gangreport_parts(r) / PERCENT, 3);
    }
    if (r->clean_looks > 0) {
        json_decimal(&j, "clean_percent", (double)r->clean_slower / PERCENT, 3);
        json_number(&j, "clean_looks", r->clean_looks);
    }
    json_decimal(&j, "stolen", (double)r->stolen / 1000, 3);
    json_close(&j, '}');
    fputc('\n', out);
}

void gangreport_json(const struct gangrow *rows, uint32_t count, FILE *out) {
    for (uint32_t i = 0; i < count; i++)
        json_row(&rows[i], out);
    for (int k = 0; k < KERNELS; k++) {
        uint64_t cost = gangreport_switch_cost(rows, count, (enum gangkernel)k);
        const struct gangrow *least = gangreport_smallest(rows, count, (enum gangkernel)k);
        if (cost > 0)
            fprintf(out,
                    "{\"bench\":\"gang\",\"experiment\":\"calibration\",\"kernel\":\"%s\","
                    "\"switch_cost_ns\":%" PRIu64 "}\n",
                    gangkernel_name((enum gangkernel)k), cost);
        if (least != NULL)
            fprintf(out,
                    "{\"bench\":\"gang\",\"experiment\":\"smallest\",\"kernel\":\"%s\","
                    "\"quantum_us\":%" PRIu64 "}\n",
                    gangkernel_name((enum gangkernel)k), least->quantum_ns / NS_PER_US);
    }
}

/* ---- the plot ---- */

/* A job's time, as figure 3 has it: all of them divided by their number. */
static void add_series(struct plot *p, const struct gangrow *rows, uint32_t count, int kernel,
                       bool alone) {
    struct plot_series *line = NULL;
    for (const struct gangrow *r = rows; r < rows + count; r++) {
        if (!of_quantum(r, (enum gangkernel)kernel))
            continue;
        if (line == NULL)
            line = plot_add(p, (uint32_t)kernel, alone);
        if (line == NULL)
            return;
        snprintf(line->name, sizeof line->name, "%s, %s", gangkernel_name((enum gangkernel)kernel),
                 alone ? "alone" : "in turns");
        plot_point(line, r->quantum_ns / NS_PER_US, (alone ? r->alone_ns : r->turns_ns) / r->jobs);
    }
}

int gangreport_plot(const struct gangrow *rows, uint32_t count, const char *path) {
    struct plot *p = calloc(1, sizeof *p);
    if (p == NULL)
        return -ENOMEM;
    *p = (struct plot){.title = "Gang scheduling: effect of the quantum",
                       .subtitle = "time of all jobs, divided by their number",
                       .x_words = "quantum, us",
                       .y_words = "time of a job",
                       .label = plot_label_time};
    for (int k = 0; k < KERNELS; k++)
        for (int alone = 0; alone < 2; alone++)
            add_series(p, rows, count, k, alone == 1);
    FILE *out = p->count == 0 ? NULL : fopen(path, "we");
    int r = p->count == 0 ? -ENODATA : out == NULL ? -errno : plot_write(p, out);
    if (out != NULL && fclose(out) != 0 && r == 0)
        r = -EIO;
    free(p);
    return r;
}

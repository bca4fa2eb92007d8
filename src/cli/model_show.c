/* SPDX-License-Identifier: MIT */
/* What `storm model` shows: texts, JSON, a plot. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/complain.h"
#include "cli/json.h"
#include "cli/model.h"
#include "cli/plot.h"
#include "cli/table.h"

/* What the STORM paper says of figure 8, for an image of 12 MB. */
enum { PAPER_FEW = 64, PAPER_FEW_MS = 110, PAPER_MANY = 16384, PAPER_MANY_MS = 135 };
#define PAPER_IMAGE_BYTES (12 * MIB)

static void cell_ms(struct table *t, uint64_t ns) {
    uint64_t hundredths = (ns + 5 * NS_PER_US) / (10 * NS_PER_US);
    table_cell(t, "%" PRIu64 ".%02" PRIu64, hundredths / 100, hundredths % 100);
}

static uint64_t nearest(uint64_t value, uint64_t unit) {
    return (value + unit / 2) / unit;
}

static void print_and_free(struct table *t) {
    table_print(t, stdout);
    table_fini(t);
}

/* ---- a launch ---- */

static const char *way_name(const struct analytic_launch *l, char buf[16]) {
    if (l->way == ANALYTIC_TREE && l->arity > 1)
        snprintf(buf, 16, "%" PRIu32 "-ary", l->arity);
    else
        snprintf(buf, 16, "%s",
                 l->way == ANALYTIC_HARDWARE ? "hardware"
                 : l->way == ANALYTIC_PAIR   ? "pair"
                                             : "chain");
    return buf;
}

static void print_network(const struct model_settings *s, const char *where) {
    char image[UNITS_TEXT_MAX], exec[UNITS_TEXT_MAX], slice[UNITS_TEXT_MAX];
    const struct analytic_network *n = &s->network;
    units_format_size(s->image_bytes, image, sizeof image);
    units_format_duration(n->exec_ns, exec, sizeof exec);
    units_format_duration(n->timeslice_ns, slice, sizeof slice);
    printf("launch of %s%s\nnetwork %s%s: %s\nhosts %" PRIu64
           " MiB/s, T_exec %s, T_timeslice %s\n\n",
           image, where, n->name, s->changed ? " (changed)" : "", n->words,
           nearest(n->host_bytes_per_s, MIB), exec, slice);
}

static void print_formula(const struct analytic_network *n) {
    if (n->hardware)
        puts("\nlaunch = image / min(hosts, broadcast) + T_exec + T_timeslice\n"
             "broadcast = 320 bytes / max(953, 580 + 2 x 3.94 x cable + 73 x switches) ns,\n"
             "cable = sqrt(2 x nodes) metres, switches = 2 x log4(nodes) - 1, rounded up");
    else
        puts(
            "\nlaunch = transfer + command + T_exec + T_timeslice\n"
            "There is no hardware broadcast: chunks of 64 KiB go down trees in software, the fastest\n"
            "if no --arity is given. With s = chunk / link + message:\n"
            "  K-ary  (chunks - 1) x max(K x s, chunk / hosts) + levels x (K x s + latency)\n"
            "  pair   (chunks - 1) x max(s, chunk / hosts) + levels x (2 x s + latency),\n"
            "         two binary trees with half of the chunks each; a chain is 1-ary\n"
            "command = 2 x levels of a tree of arity 8 x (latency + 8 x message)");
}

static void add_launch(struct table *t, uint64_t nodes, const struct analytic_launch *l) {
    char way[16];
    table_cell(t, "%" PRIu64, nodes);
    table_cell(t, "%s", way_name(l, way));
    if (l->way == ANALYTIC_HARDWARE)
        table_cell(t, "-");
    else
        table_cell(t, "%" PRIu32, l->levels);
    table_cell(t, "%" PRIu64, nearest(l->rate_bytes_per_s, MIB));
    table_cell(t, "%s", l->host_bound ? "hosts" : "network");
    cell_ms(t, l->transfer_ns);
    if (l->way == ANALYTIC_HARDWARE)
        table_cell(t, "-"); /* T_exec has it */
    else
        cell_ms(t, l->command_ns);
    cell_ms(t, l->exec_ns);
    cell_ms(t, l->timeslice_ns);
    cell_ms(t, l->launch_ns);
}

static void json_network(struct json *j, const struct model_settings *s, const char *model) {
    const struct analytic_network *n = &s->network;
    json_word(j, "model", model);
    json_word(j, "network", n->name);
    json_bool(j, "changed", s->changed);
    json_number(j, "image_bytes", s->image_bytes);
    json_number(j, "host_bytes_per_s", n->host_bytes_per_s);
    json_ms(j, "exec_ms", n->exec_ns);
    json_ms(j, "timeslice_ms", n->timeslice_ns);
}

static void json_launch(struct json *j, uint64_t nodes, const struct analytic_launch *l) {
    char way[16];
    json_open(j, NULL, '{');
    json_number(j, "nodes", nodes);
    json_word(j, "tree", way_name(l, way));
    json_number(j, "levels", l->levels);
    json_number(j, "rate_bytes_per_s", l->rate_bytes_per_s);
    json_word(j, "limit", l->host_bound ? "hosts" : "network");
    json_ms(j, "transfer_ms", l->transfer_ns);
    json_ms(j, "command_ms", l->command_ns);
    json_ms(j, "exec_ms", l->exec_ns);
    json_ms(j, "timeslice_ms", l->timeslice_ns);
    json_ms(j, "launch_ms", l->launch_ns);
    json_close(j, '}');
}

static int show_launch(const struct model_settings *s, struct json *j) {
    static const char *const titles[] = {">NODES",     "BROADCAST", ">LEVELS",  ">MiB/s",
                                         "LIMIT",      ">TRANSFER", ">COMMAND", ">EXEC",
                                         ">TIMESLICE", ">LAUNCH",   NULL};
    struct table t;
    table_init(&t, titles);
    if (s->json) {
        json_network(j, s, "launch");
        json_open(j, "launches", '[');
    } else {
        print_network(s, "");
    }
    for (uint32_t i = 0; i < s->nodes.count; i++) {
        struct analytic_launch l =
            analytic_launch(&s->network, (uint32_t)s->nodes.at[i], s->image_bytes, s->arity);
        if (s->json)
            json_launch(j, s->nodes.at[i], &l);
        else
            add_launch(&t, s->nodes.at[i], &l);
    }
    if (s->json) {
        json_close(j, ']');
        table_fini(&t);
        return STATUS_OK;
    }
    print_and_free(&t);
    puts("\ntimes in ms");
    print_formula(&s->network);
    return STATUS_OK;
}

/* ---- table 3 ---- */

enum { CABLES = 9, CABLE_STEP_M = 10, PROCESSORS = 4 }; /* an ES40 has four */

static uint64_t table_rate(uint32_t cable, uint32_t nodes) {
    const uint64_t mm_per_m = 1000;
    return nearest(
        analytic_qsnet_rate((cable + 1) * CABLE_STEP_M * mm_per_m, analytic_switches(nodes)), MIB);
}

static void print_table(const struct model_settings *s) {
    static const char *const titles[] = {">NODES", ">PROCESSORS", ">STAGES", ">SWITCHES", ">10 m",
                                         ">20 m",  ">30 m",       ">40 m",   ">50 m",     ">60 m",
                                         ">70 m",  ">80 m",       ">90 m",   NULL};
    struct table t;
    table_init(&t, titles);
    puts("table 3 of the STORM paper: what QsNet's broadcast brings to every node, MB/s\n"
         "(1 MB = 2^20 bytes), by the longest cable\n");
    for (uint32_t i = 0; i < s->nodes.count; i++) {
        uint32_t nodes = (uint32_t)s->nodes.at[i];
        table_cell(&t, "%" PRIu32, nodes);
        table_cell(&t, "%" PRIu32, nodes * PROCESSORS);
        table_cell(&t, "%" PRIu32, (analytic_switches(nodes) + 1) / 2);
        table_cell(&t, "%" PRIu32, analytic_switches(nodes));
        for (uint32_t c = 0; c < CABLES; c++)
            table_cell(&t, "%" PRIu64, table_rate(c, nodes));
    }
    print_and_free(&t);
}

static int show_table(const struct model_settings *s, struct json *j) {
    if (!s->json) {
        print_table(s);
        return STATUS_OK;
    }
    json_word(j, "model", "table");
    json_word(j, "network", s->network.name);
    json_number(j, "mb_bytes", MIB);
    json_open(j, "cables_m", '[');
    for (uint32_t c = 0; c < CABLES; c++)
        json_number(j, NULL, (c + 1) * CABLE_STEP_M);
    json_close(j, ']');
    json_open(j, "rows", '[');
    for (uint32_t i = 0; i < s->nodes.count; i++) {
        uint32_t nodes = (uint32_t)s->nodes.at[i];
        json_open(j, NULL, '{');
        json_number(j, "nodes", nodes);
        json_number(j, "processors", (uint64_t)nodes * PROCESSORS);
        json_number(j, "stages", (analytic_switches(nodes) + 1) / 2);
        json_number(j, "switches", analytic_switches(nodes));
        json_open(j, "mb_per_s", '[');
        for (uint32_t c = 0; c < CABLES; c++)
            json_number(j, NULL, table_rate(c, nodes));
        json_close(j, ']');
        json_close(j, '}');
    }
    json_close(j, ']');
    return STATUS_OK;
}

/* ---- figure 8 ---- */

static uint64_t figure_ns(const struct model_settings *s, uint64_t nodes, bool ideal) {
    struct analytic_network n = s->network;
    if (ideal)
        n.host_bytes_per_s = ANALYTIC_NO_LIMIT;
    return analytic_launch(&n, (uint32_t)nodes, s->image_bytes, s->arity).launch_ns;
}

static bool is_papers(const struct model_settings *s) {
    return s->network.hardware && !s->changed && s->image_bytes == PAPER_IMAGE_BYTES;
}

/* The paper gives no number for T_timeslice: it is what its two figures leave. */
static void print_paper(const struct model_settings *s) {
    uint64_t rest_us = (s->network.exec_ns + s->network.timeslice_ns) / NS_PER_US;
    printf(
        "\nThe paper measured %d ms on %d nodes and estimates %d ms on 16,384. Both follow with\n"
        "T_exec + T_timeslice of about %" PRIu64 ".%" PRIu64 " ms: %" PRIu64 " and %" PRIu64
        " ms here. The curves meet beyond 4,096 nodes,\n"
        "where the network is slower than the hosts.\n",
        PAPER_FEW_MS, PAPER_FEW, PAPER_MANY_MS, rest_us / 1000, rest_us % 1000 / 100,
        nearest(figure_ns(s, PAPER_FEW, false), NS_PER_MS),
        nearest(figure_ns(s, PAPER_MANY, false), NS_PER_MS));
}

static void print_figure(const struct model_settings *s) {
    static const char *const titles[] = {">NODES", ">HOSTS AS THEY ARE", ">IDEAL HOSTS", NULL};
    struct table t;
    table_init(&t, titles);
    print_network(s, is_papers(s) ? ", figure 8 of the STORM paper" : "");
    for (uint32_t i = 0; i < s->nodes.count; i++) {
        table_cell(&t, "%" PRIu64, s->nodes.at[i]);
        cell_ms(&t, figure_ns(s, s->nodes.at[i], false));
        cell_ms(&t, figure_ns(s, s->nodes.at[i], true));
    }
    print_and_free(&t);
    puts("\ntimes in ms; ideal hosts are never slower than the network");
    if (is_papers(s))
        print_paper(s);
    print_formula(&s->network);
}

static void json_figure(const struct model_settings *s, struct json *j) {
    json_network(j, s, "figure");
    json_open(j, "points", '[');
    for (uint32_t i = 0; i < s->nodes.count; i++) {
        json_open(j, NULL, '{');
        json_number(j, "nodes", s->nodes.at[i]);
        json_ms(j, "hosts_ms", figure_ns(s, s->nodes.at[i], false));
        json_ms(j, "ideal_ms", figure_ns(s, s->nodes.at[i], true));
        json_close(j, '}');
    }
    json_close(j, ']');
    if (!is_papers(s)) {
        json_null(j, "paper");
        return;
    }
    json_open(j, "paper", '[');
    for (int i = 0; i < 2; i++) {
        json_open(j, NULL, '{');
        json_number(j, "nodes", i == 0 ? PAPER_FEW : PAPER_MANY);
        json_number(j, "launch_ms", i == 0 ? PAPER_FEW_MS : PAPER_MANY_MS);
        json_bool(j, "measured", i == 0);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static int write_plot(const struct plot *p, const char *path) {
    FILE *out = fopen(path, "we");
    if (out == NULL)
        return -errno;
    int r = plot_write(p, out);
    return fclose(out) == 0 ? r : -EIO;
}

/* The printed figure itself cannot be read off exactly: two points of it are in the text. */
static void plot_paper(struct plot *p, const char *name, uint32_t nodes, uint32_t ms) {
    struct plot_series *point = plot_add(p, p->count, false);
    snprintf(point->name, sizeof point->name, "%s", name);
    plot_point(point, nodes, ms * NS_PER_MS);
}

static int plot_figure(const struct model_settings *s) {
    char image[UNITS_TEXT_MAX], words[160];
    struct plot *p = calloc(1, sizeof *p);
    if (p == NULL)
        return -ENOMEM;
    units_format_size(s->image_bytes, image, sizeof image);
    snprintf(words, sizeof words, "%s on %s%s: %s", image, s->network.name,
             s->changed ? " (changed)" : "", s->network.words);
    *p = (struct plot){.title = "Launch of a program, by formula",
                       .subtitle = words,
                       .x_words = "nodes",
                       .y_words = "predicted time",
                       .label = plot_label_time};
    for (uint32_t ideal = 0; ideal < 2; ideal++) {
        struct plot_series *line = plot_add(p, ideal, false);
        snprintf(line->name, sizeof line->name, ideal ? "ideal hosts" : "hosts as they are");
        for (uint32_t i = 0; i < s->nodes.count; i++)
            plot_point(line, s->nodes.at[i], figure_ns(s, s->nodes.at[i], ideal));
    }
    if (is_papers(s)) {
        plot_paper(p, "the paper, measured", PAPER_FEW, PAPER_FEW_MS);
        plot_paper(p, "the paper, estimated", PAPER_MANY, PAPER_MANY_MS);
    }
    int r = write_plot(p, s->svg);
    free(p);
    return r;
}

static int show_figure(const struct model_settings *s, struct json *j) {
    if (s->json)
        json_figure(s, j);
    else
        print_figure(s);
    int r = s->svg != NULL ? plot_figure(s) : 0;
    if (r == 0)
        return STATUS_OK;
    complain(s->svg, "%s; choose another place", strerror(-r));
    return STATUS_FAILED;
}

/* ---- trees of remote executions ---- */

static const uint32_t usual_arities[] = {1, 2, 3, 4}; /* those that the paper tries */
enum { USUAL_ARITIES = sizeof usual_arities / sizeof *usual_arities };

static void print_launcher(const struct model_settings *s, const uint32_t *arities,
                           uint32_t count) {
    char words[USUAL_ARITIES][16], lambda[UNITS_TEXT_MAX];
    const char *titles[USUAL_ARITIES + 3] = {">NODES"};
    struct table t;
    for (uint32_t i = 0; i < count; i++) {
        snprintf(words[i], sizeof words[i], arities[i] == 1 ? ">CHAIN" : ">%" PRIu32 "-ARY",
                 arities[i]);
        titles[1 + i] = words[i];
    }
    titles[1 + count] = ">BINOMIAL";
    table_init(&t, titles);
    units_format_duration(s->lambda_ns, lambda, sizeof lambda);
    printf("starting programs down a tree of remote executions of %s each\n\n", lambda);
    for (uint32_t i = 0; i < s->nodes.count; i++) {
        uint32_t nodes = (uint32_t)s->nodes.at[i];
        table_cell(&t, "%" PRIu32, nodes);
        for (uint32_t k = 0; k < count; k++)
            cell_ms(&t, analytic_kary_ns(s->lambda_ns, arities[k], nodes));
        cell_ms(&t, analytic_binomial_ns(s->lambda_ns, nodes));
    }
    print_and_free(&t);
    puts("\ntimes in ms\n\n"
         "K-ary = lambda x K x logK(nodes), binomial = lambda x log2(nodes): the launcher paper's\n"
         "cost model. Of a chain, which it leaves open: lambda x nodes.");
}

static void json_launcher(const struct model_settings *s, struct json *j, const uint32_t *arities,
                          uint32_t count) {
    json_word(j, "model", "launcher");
    json_ms(j, "lambda_ms", s->lambda_ns);
    json_open(j, "rows", '[');
    for (uint32_t i = 0; i < s->nodes.count; i++) {
        uint32_t nodes = (uint32_t)s->nodes.at[i];
        json_open(j, NULL, '{');
        json_number(j, "nodes", nodes);
        json_ms(j, "binomial_ms", analytic_binomial_ns(s->lambda_ns, nodes));
        json_open(j, "trees", '[');
        for (uint32_t k = 0; k < count; k++) {
            json_open(j, NULL, '{');
            json_number(j, "arity", arities[k]);
            json_ms(j, "start_ms", analytic_kary_ns(s->lambda_ns, arities[k], nodes));
            json_close(j, '}');
        }
        json_close(j, ']');
        json_close(j, '}');
    }
    json_close(j, ']');
}

static int show_launcher(const struct model_settings *s, struct json *j) {
    const uint32_t *arities = s->arity > 0 ? &s->arity : usual_arities;
    uint32_t count = s->arity > 0 ? 1 : USUAL_ARITIES;
    if (s->json)
        json_launcher(s, j, arities, count);
    else
        print_launcher(s, arities, count);
    return STATUS_OK;
}

/* ---- the whole ---- */

int model_show(const struct model_settings *s) {
    static int (*const views[MODEL_VIEWS])(const struct model_settings *,
                                           struct json *) = {[MODEL_LAUNCH] = show_launch,
                                                             [MODEL_TABLE] = show_table,
                                                             [MODEL_FIGURE] = show_figure,
                                                             [MODEL_LAUNCHER] = show_launcher};
    struct json j = {.out = stdout};
    if (s->json)
        json_open(&j, NULL, '{');
    int status = views[s->view](s, &j);
    if (s->json) {
        json_close(&j, '}');
        putchar('\n');
    }
    return status;
}

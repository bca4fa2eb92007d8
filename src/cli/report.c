/* SPDX-License-Identifier: MIT */
/* Shows what has been measured: see report.h. */
#include "cli/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/plot.h"
#include "cli/terminal.h"

/* ---- the table ---- */

enum { COLUMN = 12 };

static void print_tree(const struct tree *t, FILE *out) {
    fprintf(out, "\n%s%s", terminal_tint(out, TINT_HEAD), shape_name(t->shape));
    if (t->shape == SHAPE_KARY)
        fprintf(out, ", arity %" PRIu32, t->arity);
    fprintf(out, "%s\n", terminal_tint(out, TINT_NONE));
}

void report_table_head(const struct bench_series *s, FILE *out) {
    print_tree(&s->tree, out);
    fprintf(out, "%7s %6s", "nodes", "depth");
    for (int c = 0; c < BENCH_CASES; c++)
        if (s->cases[c])
            fprintf(out, "%*s", COLUMN, case_info(c)->title);
    fprintf(out, "\n%s%14s", terminal_tint(out, TINT_FAINT), "");
    for (int c = 0; c < BENCH_CASES; c++)
        if (s->cases[c])
            fprintf(out, "%*s", COLUMN, case_info(c)->rate ? "MB/s" : "us");
    fprintf(out, "%s\n", terminal_tint(out, TINT_NONE));
}

/* In tenths. */
static void print_tenths(uint64_t tenths, FILE *out) {
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64 ".%" PRIu64, tenths / 10, tenths % 10);
    fprintf(out, "%*s", COLUMN, text);
}

/* Bytes a second as MB/s, with three digits or so. */
static void print_rate(uint64_t rate, FILE *out) {
    char text[32];
    uint64_t thousandths = rate / 1000;
    if (thousandths >= 10000) {
        print_tenths(thousandths / 100, out);
        return;
    }
    snprintf(text, sizeof text, "%" PRIu64 ".%03" PRIu64, thousandths / 1000, thousandths % 1000);
    fprintf(out, "%*s", COLUMN, text);
}

void report_table_row(const struct bench_series *s, const struct bench_row *r, FILE *out) {
    fprintf(out, "%7" PRIu32 " %6" PRIu32, r->nodes, r->levels);
    for (int c = 0; c < BENCH_CASES; c++) {
        const struct bench_value *v = &r->values[c];
        const struct case_info *info = case_info(c);
        if (!s->cases[c])
            continue;
        if (!v->measured)
            fprintf(out, "%*s", COLUMN, "-");
        else if (info->local)
            fprintf(out, "%*s", COLUMN, "local");
        else if (info->rate)
            print_rate(v->rate, out);
        else
            print_tenths((v->median_ns + 50) / 100, out);
    }
    fputc('\n', out);
    fflush(out);
}

static void print_foot_row(const struct bench_series *s, const char *words, bool messages,
                           FILE *out) {
    fprintf(out, "%14s", words);
    for (int c = 0; c < BENCH_CASES; c++) {
        const struct case_info *info = case_info(c);
        const struct bench_value *v = NULL; /* of the largest cluster that has it */
        if (!s->cases[c])
            continue;
        for (uint32_t i = 0; i < s->count; i++)
            if (s->rows[i].values[c].measured)
                v = &s->rows[i].values[c];
        if (v == NULL)
            fprintf(out, "%*s", COLUMN, "-");
        else if (messages)
            print_tenths(v->messages_x10, out);
        else
            fprintf(out, "%*" PRIu32, COLUMN, info->local ? 0 : cost_rounds(info->cost));
    }
    fputc('\n', out);
}

void report_table_foot(const struct bench_series *s, FILE *out) {
    fputs(terminal_tint(out, TINT_FAINT), out);
    print_foot_row(s, "rounds", false, out);
    print_foot_row(s, "messages/node", true, out);
    fputs(terminal_tint(out, TINT_NONE), out);
}

/* ---- JSON ---- */

void report_json_ms(const char *key, uint64_t ns, FILE *out) {
    fprintf(out, ",\"%s\":%" PRIu64 ".%06" PRIu64, key, ns / NS_PER_MS, ns % NS_PER_MS);
}

static void print_value(const struct bench_setting *b, const struct tree *t, uint32_t nodes,
                        enum bench_case which, const struct bench_value *v, FILE *out) {
    const struct case_info *info = case_info(which);
    fprintf(out, "{\"bench\":\"primitives\",\"case\":\"%s\",\"nodes\":%" PRIu32 ",\"shape\":\"%s\"",
            info->name, nodes, shape_name(t->shape));
    if (t->shape == SHAPE_KARY)
        fprintf(out, ",\"arity\":%" PRIu32, t->arity);
    fprintf(out, ",\"depth\":\"%s\",\"network\":\"%s\",\"seed\":%" PRIu64 ",\"runs\":%" PRIu32,
            depth_name(b->depth), b->network, b->seed, v->runs);
    report_json_ms("median_ms", v->median_ns, out);
    report_json_ms("ci95_ms", v->ci95_ns, out);
    fprintf(out, ",\"rounds\":%" PRIu32 ",\"messages_per_node\":%" PRIu64 ".%" PRIu64,
            info->local ? 0 : cost_rounds(info->cost), v->messages_x10 / 10, v->messages_x10 % 10);
    fprintf(out, ",\"steps\":%" PRIu64, v->steps);
    if (info->rate)
        fprintf(out, ",\"rate_mb_per_s\":%" PRIu64 ".%03" PRIu64, v->rate / 1000000,
                v->rate / 1000 % 1000);
    report_json_ms("floor_ms", v->floor_ns, out);
    if (v->floor_ns > 0)
        fprintf(out, ",\"ratio\":%" PRIu64 ".%02" PRIu64 "}\n", v->median_ns / v->floor_ns,
                v->median_ns * 100 / v->floor_ns % 100);
    else
        fputs(",\"ratio\":null}\n", out);
}

void report_json(const struct bench_setting *b, const struct tree *t, const struct bench_row *r,
                 FILE *out) {
    for (int c = 0; c < BENCH_CASES; c++)
        if (r->values[c].measured)
            print_value(b, t, r->nodes, c, &r->values[c], out);
    fflush(out);
}

/* ---- plots ---- */

/* `words` is NULL if all lines are of one shape: then the case alone is named. */
static void add_series(struct plot *p, const struct bench_series *s, enum bench_case which,
                       uint32_t colour, bool dashed, const char *words) {
    const struct case_info *info = case_info(which);
    struct plot_series *line = plot_add(p, colour, dashed);
    if (line == NULL)
        return;
    if (words == NULL)
        snprintf(line->name, sizeof line->name, "%s", info->title);
    else if (s->tree.shape == SHAPE_KARY)
        snprintf(line->name, sizeof line->name, "%" PRIu32 "-ary: %s", s->tree.arity, words);
    else
        snprintf(line->name, sizeof line->name, "%s: %s", shape_name(s->tree.shape), words);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct bench_value *v = &s->rows[i].values[which];
        if (v->measured)
            plot_point(line, s->rows[i].nodes, info->rate ? v->rate : v->median_ns);
    }
    if (line->count == 0)
        p->count--;
}

static int write_plot(const struct plot *p, const char *path) {
    if (p->count == 0)
        return -ENODATA;
    FILE *out = fopen(path, "w");
    if (out == NULL)
        return -errno;
    int r = plot_write(p, out);
    if (fclose(out) != 0 && r == 0)
        r = -EIO;
    return r;
}

static void describe(const struct bench_setting *b, char *buf, size_t cap) {
    char latency[UNITS_TEXT_MAX], cpu[UNITS_TEXT_MAX];
    units_format_duration(b->link.latency_ns, latency, sizeof latency);
    units_format_duration(b->link.cpu_receive_ns, cpu, sizeof cpu);
    snprintf(buf, cap,
             "simulated under the %s; network %s: latency %s, %s a message, %" PRIu64 " MB/s",
             depth_name(b->depth), b->network, latency, cpu, b->link.bytes_per_s / 1000000);
}

int report_plot_latency(const struct bench_setting *b, const struct bench_series *series,
                        uint32_t count, const char *path) {
    char words[192];
    describe(b, words, sizeof words);
    struct plot *p = calloc(1, sizeof *p);
    if (p == NULL)
        return -ENOMEM;
    *p = (struct plot){.title = "Latency of the primitives",
                       .subtitle = words,
                       .x_words = "nodes",
                       .y_words = "virtual time",
                       .label = plot_label_time};
    if (count == 1) {
        for (int c = 0; c < BENCH_CASES; c++)
            if (!case_info(c)->rate && !case_info(c)->local)
                add_series(p, series, c, (uint32_t)c, c == CASE_WAVE, NULL);
    }
    for (uint32_t i = 0; count > 1 && i < count; i++) {
        add_series(p, &series[i], CASE_COMPARE_WRITE, i, false, "compare-and-write");
        add_series(p, &series[i], CASE_COMPARE, i, true, "compare only");
    }
    int r = write_plot(p, path);
    free(p);
    return r;
}

int report_plot_rate(const struct bench_setting *b, const struct bench_series *series,
                     uint32_t count, const char *path) {
    char words[192];
    describe(b, words, sizeof words);
    struct plot *p = calloc(1, sizeof *p);
    if (p == NULL)
        return -ENOMEM;
    *p = (struct plot){.title = "Bandwidth of the primitives, to every node at once",
                       .subtitle = words,
                       .x_words = "nodes",
                       .y_words = "received by each node",
                       .label = plot_label_rate};
    for (uint32_t i = 0; i < count; i++) {
        add_series(p, &series[i], CASE_BULK, i, false, "bulk 1 MiB");
        add_series(p, &series[i], CASE_XFER_STREAM, i, true, "xfers of 4 KiB");
    }
    int r = write_plot(p, path);
    free(p);
    return r;
}

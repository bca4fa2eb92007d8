/* SPDX-License-Identifier: MIT */
/* Shows what `storm bench transfer --sim` found: see delivery_report.h. */
#include "cli/delivery_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/complain.h"
#include "cli/plot.h"
#include "cli/report.h"

uint32_t delivery_count(const struct delivery_settings *s, enum factor f) {
    const uint32_t counts[FACTORS] = {
        [BY_TREE] = s->tree_count,   [BY_ORDER] = s->order_count,  [BY_SIZE] = s->sizes.count,
        [BY_SLOTS] = s->slots.count, [BY_CHUNK] = s->chunks.count, [BY_ARITY] = s->arities.count,
        [BY_NODES] = s->nodes.count};
    return counts[f] > 0 ? counts[f] : 1;
}

bool delivery_axis(const char *name, enum factor *ret) {
    static const char *const names[FACTORS] = {[BY_SIZE] = "size",
                                               [BY_SLOTS] = "slots",
                                               [BY_CHUNK] = "chunk",
                                               [BY_ARITY] = "arity",
                                               [BY_NODES] = "nodes"};
    for (int f = 0; f < FACTORS; f++)
        if (names[f] != NULL && strcmp(names[f], name) == 0) {
            *ret = (enum factor)f;
            return true;
        }
    return false;
}

/* ---- what is shown ---- */

void delivery_print_head(const struct delivery_settings *s) {
    char latency[UNITS_TEXT_MAX], cpu[UNITS_TEXT_MAX];
    const struct link_model *l = &s->common.link;
    units_format_duration(l->latency_ns, latency, sizeof latency);
    units_format_duration(l->cpu_receive_ns, cpu, sizeof cpu);
    printf(
        "a file to all nodes of simulated clusters, in virtual time: real movers and primitives\n"
        "network %s: latency %s, %" PRIu64 " MB/s each way, %s of a processor to receive or "
        "send a message; seed %" PRIu64 "\n\n",
        s->network, latency, l->bytes_per_s / 1000000, cpu, s->seed);
    printf("%6s %9s %-9s %8s %5s %6s %9s %9s %9s%s %8s %6s\n", "nodes", "size", "tree", "chunk",
           "slots", "pieces", "order", "bytes", "known", s->start ? "     ended" : "", "x bound",
           "MB/s");
}

static void print_time(uint64_t ns) {
    char text[UNITS_TEXT_MAX];
    units_format_duration(ns, text, sizeof text);
    printf(" %9s", text);
}

void delivery_print_row(const struct delivery_settings *s, const struct delivery_row *row) {
    char size[UNITS_TEXT_MAX], chunk[UNITS_TEXT_MAX], tree[SPREAD_TEXT_MAX];
    const struct delivery *d = &row->result;
    units_format_size(row->config.bytes, size, sizeof size);
    units_format_size(d->piece_bytes, chunk, sizeof chunk);
    spread_format(&d->spread, tree, sizeof tree);
    printf("%6" PRIu32 " %9s %-9s %8s %5" PRIu32 " %6" PRIu32, row->config.nodes, size, tree, chunk,
           d->slots, d->pieces);
    print_time(d->heard_ns);
    print_time(d->bytes_ns);
    print_time(d->known_ns);
    if (s->start)
        print_time(d->ended_ns);
    uint64_t x100 = d->bytes_ns * 100 / d->bound_ns;
    printf(" %5" PRIu64 ".%02" PRIu64 " %6" PRIu64 "%s%s\n", x100 / 100, x100 % 100,
           row->config.bytes * 1000 / d->bytes_ns, s->order_count > 0 ? "  " : "",
           s->order_count > 0 ? delivery_order_name(row->config.order) : "");
    fflush(stdout);
}

void delivery_print_foot(void) {
    puts("\norder: until the last node has heard of it. bytes: until the last has all of them, "
         "checked\nand written. known: until the manager knows. bound: the latency for each "
         "doubling of nodes,\nand the size through one link.");
}

void delivery_print_json(const struct delivery_settings *s, const struct delivery_row *row) {
    const struct delivery *d = &row->result;
    char tree[SPREAD_TEXT_MAX];
    spread_format(&d->spread, tree, sizeof tree);
    printf("{\"bench\":\"transfer\",\"case\":\"sim\",\"nodes\":%" PRIu32 ",\"bytes\":%" PRIu64
           ",\"runs\":1,\"network\":\"%s\",\"shape\":\"%s\",\"chunk\":%" PRIu32
           ",\"slots\":%" PRIu32 ",\"pieces\":%" PRIu32 ",\"read\":%" PRIu64,
           row->config.nodes, row->config.bytes, s->network, tree, d->piece_bytes, d->slots,
           d->pieces, d->read);
    report_json_ms("median_ms", d->bytes_ns, stdout);
    report_json_ms("ci95_ms", 0, stdout);
    report_json_ms("floor_ms", d->bound_ns, stdout);
    printf(",\"ratio\":%" PRIu64 ".%03" PRIu64, d->bytes_ns / d->bound_ns,
           d->bytes_ns * 1000 / d->bound_ns % 1000);
    report_json_ms("ordered_ms", d->heard_ns, stdout);
    report_json_ms("known_ms", d->known_ns, stdout);
    if (s->start)
        report_json_ms("ended_ms", d->ended_ns, stdout);
    report_json_ms("predicted_ms", d->predicted_ns, stdout);
    printf(",\"numbering\":\"%s\",\"crossed\":%" PRIu64 ",\"events\":%" PRIu64
           ",\"messages\":%" PRIu64 "}\n",
           delivery_order_name(row->config.order), d->crossed_bytes, d->events, d->messages);
    fflush(stdout);
}

/* ---- the plot ---- */

static uint64_t place_on(const struct delivery_row *row, enum factor axis) {
    switch (axis) {
    case BY_CHUNK:
        return row->result.piece_bytes / KIB;
    case BY_SLOTS:
        return row->result.slots;
    case BY_ARITY:
        return row->result.spread.arity;
    case BY_SIZE:
        return row->config.bytes / KIB;
    default:
        return row->config.nodes;
    }
}

static bool same_line(const struct delivery_row *a, const struct delivery_row *b,
                      enum factor axis) {
    for (int f = 0; f < FACTORS; f++)
        if (f != (int)axis && a->at[f] != b->at[f])
            return false;
    return true;
}

/* What tells this line from the others. */
static void name_factor(const struct delivery_row *row, enum factor f, char *buf, size_t cap) {
    switch (f) {
    case BY_TREE:
    case BY_ARITY:
        if (row->config.spread.shape == SPREAD_AUTO)
            snprintf(buf, cap, "as chosen");
        else
            spread_format(&row->result.spread, buf, cap);
        break;
    case BY_ORDER:
        snprintf(buf, cap, "%s", delivery_order_name(row->config.order));
        break;
    case BY_SIZE:
        units_format_size(row->config.bytes, buf, cap);
        break;
    case BY_CHUNK:
        units_format_size(row->config.piece_bytes, buf, cap);
        break;
    case BY_SLOTS:
        snprintf(buf, cap, "%" PRIu32 " slots", row->config.slots);
        break;
    default:
        snprintf(buf, cap, "%" PRIu32 " nodes", row->config.nodes);
    }
}

static void name_line(const struct delivery_settings *s, const struct delivery_row *row, char *buf,
                      size_t cap) {
    size_t len = 0;
    snprintf(buf, cap, "simulated");
    for (int f = 0; f < FACTORS && len < cap; f++) {
        char words[32];
        if (f == (int)s->over || delivery_count(s, (enum factor)f) == 1)
            continue;
        name_factor(row, (enum factor)f, words, sizeof words);
        len += (size_t)snprintf(buf + len, cap - len, "%s%s", len > 0 ? ", " : "", words);
    }
}

static uint64_t time_of(const struct delivery_settings *s, const struct delivery_row *row) {
    return s->start ? row->result.ended_ns : row->result.bytes_ns;
}

static void draw_lines(const struct delivery_settings *s, const struct delivery_row *rows,
                       uint32_t count, struct plot *p) {
    enum factor axis = s->over;
    for (uint32_t i = 0; i < count; i++) {
        bool first = true;
        for (uint32_t k = 0; k < i; k++)
            first = first && !same_line(&rows[i], &rows[k], axis);
        struct plot_series *line = first ? plot_add(p, p->count % PLOT_COLOURS, false) : NULL;
        if (line == NULL)
            continue;
        name_line(s, &rows[i], line->name, sizeof line->name);
        for (uint32_t k = i; k < count; k++)
            if (same_line(&rows[i], &rows[k], axis) && rows[k].result.bytes_ns > 0)
                plot_point(line, place_on(&rows[k], axis), time_of(s, &rows[k]));
    }
}

static void draw_bound(const struct delivery_row *rows, uint32_t count, enum factor axis,
                       struct plot *p) {
    struct plot_series *line = plot_add(p, PLOT_COLOURS - 1, true);
    if (line == NULL)
        return;
    snprintf(line->name, sizeof line->name, "latency x log2 + size / rate");
    for (uint32_t k = 0; k < count; k++)
        if (same_line(&rows[0], &rows[k], axis))
            plot_point(line, place_on(&rows[k], axis), rows[k].result.bound_ns);
}

int delivery_plot(const struct delivery_settings *s, const struct delivery_row *rows,
                  uint32_t count) {
    static const char *const words[FACTORS] = {[BY_CHUNK] = "size of pieces, KiB",
                                               [BY_SLOTS] = "slots of a receiver",
                                               [BY_ARITY] = "children of a node",
                                               [BY_SIZE] = "size, KiB",
                                               [BY_NODES] = "nodes"};
    char subtitle[160], size[UNITS_TEXT_MAX], latency[UNITS_TEXT_MAX];
    struct plot *p = calloc(1, sizeof *p);
    if (p == NULL)
        return -ENOMEM;
    units_format_size(rows[0].config.bytes, size, sizeof size);
    bool one_size = delivery_count(s, BY_SIZE) == 1;
    bool one_cluster = delivery_count(s, BY_NODES) == 1;
    units_format_duration(s->common.link.latency_ns, latency, sizeof latency);
    snprintf(subtitle, sizeof subtitle, "%s%slinks of %" PRIu64 " MB/s, latency %s; virtual time",
             one_size ? size : "", one_size ? "; " : "", s->common.link.bytes_per_s / 1000000,
             latency);
    *p = (struct plot){.title =
                           s->start ? "A program to all nodes, and its end" : "A file to all nodes",
                       .subtitle = subtitle,
                       .x_words = words[s->over],
                       .y_words = "time",
                       .label = plot_label_time};
    draw_lines(s, rows, count, p);
    if ((s->over == BY_SIZE || one_size) && (s->over == BY_NODES || one_cluster))
        draw_bound(rows, count, s->over, p);
    FILE *out = fopen(s->svg, "we");
    int r = out == NULL ? -errno : plot_write(p, out);
    if (out != NULL && fclose(out) != 0 && r == 0)
        r = -EIO;
    free(p);
    if (r < 0)
        complain(s->svg, "%s; choose another place for the plot", strerror(-r));
    return r;
}

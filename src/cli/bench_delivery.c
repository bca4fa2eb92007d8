/* SPDX-License-Identifier: MIT */
/* storm bench transfer --sim: a file to many nodes of a simulated cluster.
 *
 * The movers and the primitives are the real ones, the times virtual: what the protocol takes on such a
 * network, the same on every computer. Every combination of the lists that are given is run. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/bench.h"
#include "cli/complain.h"
#include "cli/plot.h"
#include "cli/terminal.h"
#include "sim/delivery.h"
#include "sim/network.h"
#include "wire/message.h"

enum { NODES_MAX = 65536, TREES_MAX = 16 };

/* What the combinations differ in. */
enum factor { BY_TREE, BY_SIZE, BY_SLOTS, BY_CHUNK, BY_ARITY, BY_NODES, FACTORS };

struct delivery_settings {
    struct number_list nodes, sizes, chunks, slots, arities;
    uint32_t tree_count;
    struct spread trees[TREES_MAX];
    const char *size_text, *chunk_text, *tree_text, *network, *svg;
    uint64_t latency_ns, bytes_per_s, cpu_ns, host_bytes_per_s, exec_ns, seed;
    uint64_t per_switch, between_bytes_per_s;
    bool sim, even, start, scattered, json;
    struct delivery_config common;
};

struct delivery_row {
    struct delivery_config config;
    struct delivery result;
    uint32_t at[FACTORS]; /* in the lists */
};

/* ---- what is to be run ---- */

static uint32_t count_of(const struct delivery_settings *s, enum factor f) {
    const uint32_t counts[FACTORS] = {
        [BY_TREE] = s->tree_count,    [BY_SIZE] = s->sizes.count,    [BY_SLOTS] = s->slots.count,
        [BY_CHUNK] = s->chunks.count, [BY_ARITY] = s->arities.count, [BY_NODES] = s->nodes.count};
    return counts[f] > 0 ? counts[f] : 1;
}

static uint32_t combinations(const struct delivery_settings *s) {
    uint32_t all = 1;
    for (int f = 0; f < FACTORS; f++)
        all *= count_of(s, (enum factor)f);
    return all;
}

static uint64_t pick(const struct number_list *l, uint32_t at) {
    return l->count == 0 ? 0 : l->at[at];
}

/* Nodes change fastest: rows of one table belong together. */
static void combine(const struct delivery_settings *s, uint32_t index, struct delivery_row *row) {
    for (int f = FACTORS - 1; f >= 0; f--) {
        row->at[f] = index % count_of(s, (enum factor)f);
        index /= count_of(s, (enum factor)f);
    }
    row->config = s->common;
    row->config.spread = s->tree_count == 0 ? (struct spread){0} : s->trees[row->at[BY_TREE]];
    if (s->arities.count > 0)
        row->config.spread = (struct spread){
            .shape = SPREAD_KARY, .arity = (uint32_t)pick(&s->arities, row->at[BY_ARITY])};
    row->config.bytes = pick(&s->sizes, row->at[BY_SIZE]);
    row->config.slots = (uint32_t)pick(&s->slots, row->at[BY_SLOTS]);
    row->config.piece_bytes = (uint32_t)pick(&s->chunks, row->at[BY_CHUNK]);
    row->config.nodes = (uint32_t)pick(&s->nodes, row->at[BY_NODES]);
}

/* ---- what is shown ---- */

static void print_setting(const struct delivery_settings *s) {
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

static void print_row(const struct delivery_settings *s, const struct delivery_row *row) {
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
    printf(" %5" PRIu64 ".%02" PRIu64 " %6" PRIu64 "\n", x100 / 100, x100 % 100,
           row->config.bytes * 1000 / d->bytes_ns);
    fflush(stdout);
}

static void print_json(const struct delivery_settings *s, const struct delivery_row *row) {
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
    printf(",\"crossed\":%" PRIu64 ",\"events\":%" PRIu64 ",\"messages\":%" PRIu64 "}\n",
           d->crossed_bytes, d->events, d->messages);
    fflush(stdout);
}

/* ---- the plot ---- */

/* What is along the axis: the last of the lists that has more than one value. */
static enum factor axis_of(const struct delivery_settings *s) {
    static const enum factor order[] = {BY_CHUNK, BY_SLOTS, BY_ARITY};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (count_of(s, order[i]) > 1)
            return order[i];
    return BY_NODES;
}

static uint64_t place_on(const struct delivery_row *row, enum factor axis) {
    switch (axis) {
    case BY_CHUNK:
        return row->result.piece_bytes / KIB;
    case BY_SLOTS:
        return row->result.slots;
    case BY_ARITY:
        return row->result.spread.arity;
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
static void name_line(const struct delivery_settings *s, const struct delivery_row *row,
                      enum factor axis, char *buf, size_t cap) {
    char text[UNITS_TEXT_MAX], tree[SPREAD_TEXT_MAX];
    size_t len = 0;
    buf[0] = '\0';
    for (int f = 0; f < FACTORS && len < cap; f++) {
        if (f == (int)axis || (count_of(s, (enum factor)f) == 1 && f != BY_TREE))
            continue;
        const char *comma = len > 0 ? ", " : "";
        if (f == BY_TREE && axis == BY_ARITY)
            continue;
        if (f == BY_TREE && row->config.spread.shape == SPREAD_AUTO)
            snprintf(tree, sizeof tree, "as chosen");
        else
            spread_format(&row->result.spread, tree, sizeof tree);
        units_format_size(f == BY_SIZE ? row->config.bytes : row->config.piece_bytes, text,
                          sizeof text);
        if (f == BY_SIZE || f == BY_CHUNK)
            len += (size_t)snprintf(buf + len, cap - len, "%s%s", comma, text);
        else if (f == BY_TREE || f == BY_ARITY)
            len += (size_t)snprintf(buf + len, cap - len, "%s%s", comma, tree);
        else
            len += (size_t)snprintf(buf + len, cap - len, "%s%" PRIu32 " %s", comma,
                                    f == BY_SLOTS ? row->config.slots : row->config.nodes,
                                    f == BY_SLOTS ? "slots" : "nodes");
    }
    if (len == 0)
        snprintf(buf, cap, "simulated");
}

static uint64_t time_of(const struct delivery_settings *s, const struct delivery_row *row) {
    return s->start ? row->result.ended_ns : row->result.bytes_ns;
}

static void draw_lines(const struct delivery_settings *s, const struct delivery_row *rows,
                       uint32_t count, struct plot *p) {
    enum factor axis = axis_of(s);
    for (uint32_t i = 0; i < count; i++) {
        bool first = true;
        for (uint32_t k = 0; k < i; k++)
            first = first && !same_line(&rows[i], &rows[k], axis);
        struct plot_series *line = first ? plot_add(p, p->count % PLOT_COLOURS, false) : NULL;
        if (line == NULL)
            continue;
        name_line(s, &rows[i], axis, line->name, sizeof line->name);
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

static int write_plot(const struct delivery_settings *s, const struct delivery_row *rows,
                      uint32_t count) {
    static const char *const words[FACTORS] = {[BY_CHUNK] = "size of pieces, KiB",
                                               [BY_SLOTS] = "slots of a receiver",
                                               [BY_ARITY] = "children of a node",
                                               [BY_NODES] = "nodes"};
    char subtitle[160], size[UNITS_TEXT_MAX];
    struct plot *p = calloc(1, sizeof *p);
    if (p == NULL)
        return -ENOMEM;
    units_format_size(rows[0].config.bytes, size, sizeof size);
    snprintf(subtitle, sizeof subtitle, "%s%ssimulated %s links, virtual time",
             count_of(s, BY_SIZE) == 1 ? size : "", count_of(s, BY_SIZE) == 1 ? ", " : "",
             s->network);
    *p = (struct plot){.title =
                           s->start ? "A program to all nodes, and its end" : "A file to all nodes",
                       .subtitle = subtitle,
                       .x_words = words[axis_of(s)],
                       .y_words = "time",
                       .label = plot_label_time};
    draw_lines(s, rows, count, p);
    if (count_of(s, BY_SIZE) == 1 &&
        count_of(s, BY_NODES) == (axis_of(s) == BY_NODES ? s->nodes.count : 1))
        draw_bound(rows, count, axis_of(s), p);
    FILE *out = fopen(s->svg, "we");
    int r = out == NULL ? -errno : plot_write(p, out);
    if (out != NULL && fclose(out) != 0 && r == 0)
        r = -EIO;
    free(p);
    if (r < 0)
        complain(s->svg, "%s; choose another place for the plot", strerror(-r));
    return r;
}

/* ---- the whole ---- */

static int run_row(const struct delivery_settings *s, struct delivery_row *row) {
    char words[96], size[UNITS_TEXT_MAX];
    units_format_size(row->config.bytes, size, sizeof size);
    snprintf(words, sizeof words, "simulating %s to %" PRIu32 " nodes ...", size,
             row->config.nodes);
    terminal_progress(words);
    int r = delivery_run(&row->config, &row->result);
    terminal_progress(NULL);
    if (r < 0)
        return complain("bench", r == -ENOMEM ? "not enough memory; try fewer nodes"
                                 : r == -EINVAL
                                     ? "so many pieces cannot be; give a larger --chunk"
                                     : "the transfer did not come to an end; please report this "
                                       "with the options used");
    s->json ? print_json(s, row) : print_row(s, row);
    return STATUS_OK;
}

static int run_all(const struct delivery_settings *s) {
    uint32_t count = combinations(s);
    struct delivery_row *rows = calloc(count, sizeof *rows);
    if (rows == NULL)
        return complain("bench", "not enough memory for so many combinations");
    int status = STATUS_OK;
    if (!s->json)
        print_setting(s);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        combine(s, i, &rows[i]);
        status = run_row(s, &rows[i]);
    }
    if (status == STATUS_OK && !s->json)
        puts("\norder: until the last node has heard of it. bytes: until the last has all of them, "
             "checked\nand written. known: until the manager knows. bound: the latency for each "
             "doubling of nodes,\nand the size through one link.");
    if (status == STATUS_OK && s->svg != NULL && write_plot(s, rows, count) < 0)
        status = STATUS_FAILED;
    free(rows);
    return status;
}

/* ---- the command line ---- */

static int find_network(struct delivery_settings *s) {
    const struct network *n = network_find(s->network);
    if (n == NULL)
        return complain("bench", "there is no network \"%s\"; see: storm help bench", s->network);
    struct link_model l = n->link;
    if (s->latency_ns != UINT64_MAX) {
        l.latency_ns = s->latency_ns;
        l.connect_ns = network_connect_ns(s->latency_ns);
    }
    if (s->bytes_per_s != UINT64_MAX)
        l.bytes_per_s = s->bytes_per_s;
    if (s->cpu_ns != UINT64_MAX)
        l.cpu_receive_ns = l.cpu_send_ns = s->cpu_ns;
    if (memcmp(&l, &n->link, sizeof l) != 0)
        s->network = "custom";
    if (l.bytes_per_s == 0)
        return complain("bench", "--bandwidth 0: nothing would ever arrive; give 1MB or more");
    s->common = delivery_usual(&l);
    return STATUS_OK;
}

static int find_trees(struct delivery_settings *s) {
    for (const char *at = s->tree_text; at != NULL && *at != '\0';) {
        char one[SPREAD_TEXT_MAX + 1];
        size_t len = strcspn(at, ",");
        snprintf(one, sizeof one, "%.*s", (int)len, at);
        if (s->tree_count == TREES_MAX || len >= sizeof one ||
            !spread_parse(one, &s->trees[s->tree_count++]))
            return complain("bench",
                            "--tree %s: a list of auto, chain, k-ary[:K], binomial, flat, pair",
                            s->tree_text);
        at += len + (at[len] == ',');
    }
    if (s->tree_count > 0 && s->arities.count > 0)
        return complain("bench", "--arity is of k-ary trees: leave --tree out");
    return STATUS_OK;
}

static int check_lists(struct delivery_settings *s) {
    for (uint32_t i = 0; i < s->nodes.count; i++)
        if (s->nodes.at[i] < 1 || s->nodes.at[i] > NODES_MAX)
            return complain("bench", "--nodes %" PRIu64 ": 1 to %d nodes can be simulated",
                            s->nodes.at[i], NODES_MAX);
    if (!bench_sizes(s->size_text, &s->sizes))
        return complain("bench", "--size %s: sizes such as 1MB,12MB", s->size_text);
    if (s->chunk_text != NULL && !bench_sizes(s->chunk_text, &s->chunks))
        return complain("bench", "--chunk %s: sizes such as 32KiB,128KiB", s->chunk_text);
    for (uint32_t i = 0; i < s->chunks.count; i++)
        if (s->chunks.at[i] < 4 * KIB || s->chunks.at[i] > 2 * MIB)
            return complain("bench", "--chunk %s: from 4KiB to 2MiB", s->chunk_text);
    for (uint32_t i = 0; i < s->slots.count; i++)
        if (s->slots.at[i] < 2 || s->slots.at[i] > SLOTS_MAX)
            return complain("bench", "--slots: from 2 to %d", SLOTS_MAX);
    for (uint32_t i = 0; i < s->arities.count; i++)
        if (s->arities.at[i] < 1 || s->arities.at[i] > SPREAD_ARITY_MAX)
            return complain("bench", "--arity: from 1 to %d", SPREAD_ARITY_MAX);
    uint64_t most = 0;
    for (uint32_t i = 0; i < s->nodes.count; i++)
        most = s->nodes.at[i] > most ? s->nodes.at[i] : most;
    if (s->per_switch > 0 && (most - 1) / s->per_switch >= DELIVERY_SWITCHES_MAX)
        return complain("bench", "--per-switch %" PRIu64 ": that are more than %d switches",
                        s->per_switch, DELIVERY_SWITCHES_MAX);
    return STATUS_OK;
}

static void fill_in(struct delivery_settings *s) {
    s->common.even = s->even;
    s->common.start = s->start;
    s->common.seed = s->seed;
    s->common.host_bytes_per_s = s->host_bytes_per_s;
    s->common.exec_ns = s->exec_ns;
    s->common.per_switch = (uint32_t)s->per_switch;
    s->common.between_bytes_per_s = s->between_bytes_per_s;
    s->common.scattered = s->scattered;
}

int bench_delivery(int argc, char **argv) {
    struct delivery_settings s = {.size_text = "12MB",
                                  .network = network_at(0)->name,
                                  .latency_ns = UINT64_MAX,
                                  .bytes_per_s = UINT64_MAX,
                                  .cpu_ns = UINT64_MAX,
                                  .host_bytes_per_s = UINT64_C(5000) * 1000 * 1000,
                                  .between_bytes_per_s = UINT64_C(125) * 1000 * 1000,
                                  .exec_ns = NS_PER_MS,
                                  .seed = 1};
    options_list("4..1024", &s.nodes);
    const struct option table[] = {
        {"sim", OPTION_FLAG, &s.sim, NULL, "simulated clusters: this help"},
        {"nodes", OPTION_LIST, &s.nodes, "LIST", "1,64 or doubling 4..16384 (default 4..1024)"},
        {"size", OPTION_TEXT, &s.size_text, "LIST", "of the file (default 12MB)"},
        {"tree", OPTION_TEXT, &s.tree_text, "LIST", "shapes as for storm cp (default auto)"},
        {"arity", OPTION_LIST, &s.arities, "LIST", "or k-ary trees with so many children"},
        {"chunk", OPTION_TEXT, &s.chunk_text, "LIST", "of pieces; otherwise as is best"},
        {"slots", OPTION_LIST, &s.slots, "LIST",
         "pieces that a node takes ahead; otherwise as is best"},
        {"even", OPTION_FLAG, &s.even, NULL, "pieces of one length, not cut by contents"},
        {"launch", OPTION_FLAG, &s.start, NULL, "a program: it is started, and its end awaited"},
        {"exec", OPTION_DURATION, &s.exec_ns, "TIME", "that it runs (default 1ms)"},
        {"network", OPTION_TEXT, &s.network, "NAME", "see: storm help bench"},
        {"latency", OPTION_DURATION, &s.latency_ns, "TIME", "of a link"},
        {"bandwidth", OPTION_RATE, &s.bytes_per_s, "RATE", "of a link, each way"},
        {"cpu", OPTION_DURATION, &s.cpu_ns, "TIME", "of a processor, for a message"},
        {"host", OPTION_RATE, &s.host_bytes_per_s, "RATE", "checking and writing (default 5GB)"},
        {"per-switch", OPTION_NUMBER, &s.per_switch, "N", "nodes; switches stand in a row"},
        {"between", OPTION_RATE, &s.between_bytes_per_s, "RATE", "two of them (default 125MB)"},
        {"scattered", OPTION_FLAG, &s.scattered, NULL, "neighbours are on different switches"},
        {"seed", OPTION_NUMBER, &s.seed, "SEED", "of the contents (default 1)"},
        {"json", OPTION_FLAG, &s.json, NULL, "one JSON object a line"},
        {"svg", OPTION_TEXT, &s.svg, "FILE", "write a plot"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm bench transfer --sim [OPTIONS]\n"
            "\n"
            "How long a file takes to all nodes of simulated clusters: real movers and primitives\n"
            "in virtual time, nothing goes wrong. All combinations of the lists are run.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count > 0)
        return complain("bench", "what is \"%s\" for? see: storm bench transfer --sim --help",
                        argv[1]);
    int status = check_lists(&s);
    if (status == STATUS_OK)
        status = find_trees(&s);
    if (status == STATUS_OK)
        status = find_network(&s);
    if (status != STATUS_OK)
        return status;
    fill_in(&s);
    return run_all(&s);
}

/* SPDX-License-Identifier: MIT */
/* storm bench transfer: the time of `storm cp` to all nodes, whole, beside the least that it could take.
 *
 * A cluster of its own for each number of nodes. Every copy is of other random bytes and to a place where nothing is, so
 * that all of it must be moved; only with `known` the same file is sent again, which was looked over before. The floor
 * writes as many files of that size on the same file system. All take turns, and before each as many files are written and
 * removed once more: what was there before decides how long the next takes, if only because a virtual machine gives free memory back
 * to its host, and must get it again. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/sort.h"
#include "base/units.h"
#include "cli/bench.h"
#include "cli/cargo.h"
#include "os/companion.h"
#include "cli/complain.h"
#include "cli/diaries.h"
#include "cli/plot.h"
#include "cli/report.h"
#include "cli/stats.h"
#include "cli/tally.h"
#include "cli/terminal.h"

enum { NODES_MAX = 4096, RUNS_MAX = 1000, TEXT_BYTES = 4096 };

/* Digests of a file that was changed less than two seconds ago are not kept. */
enum { RIPE_US = 2100000 };

enum contender { FLOOR, FIRST, KNOWN, FLAT, CONTENDERS };

static const struct contender_info {
    const char *name;  /* in JSON */
    const char *title; /* in the table */
} contenders[CONTENDERS] = {
    [FLOOR] = {"floor", "floor"},
    [FIRST] = {"cp", "storm cp"},
    [KNOWN] = {"known", "storm cp, looked over"},
    [FLAT] = {"flat", "storm cp --tree flat"},
};

struct transfer_settings {
    struct number_list nodes, sizes;
    uint64_t runs;
    const char *size_text, *tree, *chunk, *slots, *send, *source, *svg, *command;
    bool flat, breakdown, json;
    char self[PATH_MAX];
};

/* One size on one number of nodes. */
struct transfer_row {
    uint32_t nodes;
    uint64_t bytes;
    uint64_t *ns[CONTENDERS]; /* NULL: takes no part */
    struct stats stats[CONTENDERS];
    struct tally tally[CONTENDERS]; /* of the last run */
    uint64_t *stages;               /* of FIRST, by stage and run */
    /* With --breakdown, of FIRST too: the mean of its nodes, and the slowest; by stage and run, then medians. */
    uint64_t *node_runs[2];
    uint64_t node[2][NODE_STAGES];
};

/* ---- measuring ---- */

static int copy_out(const struct transfer_settings *s, const struct cargo *c, const char *name,
                    const char *tree, struct tally *t, uint64_t *ret_ns) {
    char path[CARGO_PATH_MAX], text[TEXT_BYTES];
    const char *args[TEMPCLUSTER_ARGS_MAX] = {"cp", "--json"};
    int count = 2;
    const char *const options[][2] = {
        {"--tree", tree}, {"--chunk", s->chunk}, {"--slots", s->slots}, {"--send", s->send}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i][1] != NULL) {
            args[count++] = options[i][0];
            args[count++] = options[i][1];
        }
    cargo_path(c, name, path);
    args[count++] = path;
    args[count++] = "all:/bench/file";
    int r = tempcluster_run(&c->cluster, args, text, sizeof text, ret_ns);
    if (r == 0 && tally_read(t, text) < 0) {
        complain("bench", "storm cp --json does not tell how it went");
        r = -EPROTO;
    }
    cargo_clear_path(c, "bench/file");
    return r;
}

/* Other bytes every time, and for all the same beginning. */
static int prepare(const struct transfer_settings *s, struct cargo *c, uint64_t bytes) {
    uint64_t ns;
    int r = cargo_make(c, "fresh", bytes, NULL);
    if (r == 0 && strcmp(s->source, "disk") == 0)
        cargo_cool(c, "fresh");
    return r == 0 ? cargo_floor(c, "known", false, &ns) : r;
}

static int run_one(const struct transfer_settings *s, struct cargo *c, struct transfer_row *row,
                   enum contender who, uint64_t *ret_ns) {
    int r = prepare(s, c, row->bytes);
    if (r < 0)
        return r;
    switch (who) {
    case FLOOR:
        return cargo_floor(c, "known", false, ret_ns);
    case KNOWN:
        return copy_out(s, c, "known", s->tree, &row->tally[who], ret_ns);
    default:
        return copy_out(s, c, "fresh", who == FLAT ? "flat" : s->tree, &row->tally[who], ret_ns);
    }
}

/* What the nodes have noted of a copy. */
static void read_nodes(const struct transfer_settings *s, const struct cargo *c,
                       struct transfer_row *row, uint64_t round) {
    uint64_t sum[NODE_STAGES] = {0}, most[NODE_STAGES] = {0}, took[NODE_STAGES], count = 0;
    for (uint32_t i = 0; i < c->nodes; i++) {
        struct notes n = diaries_read(c, i);
        bool whole = notes_stages(&n, took);
        notes_free(&n);
        count += whole;
        for (int k = 0; k < NODE_STAGES && whole; k++) {
            sum[k] += took[k];
            most[k] = took[k] > most[k] ? took[k] : most[k];
        }
    }
    for (uint64_t k = 0; k < NODE_STAGES; k++) {
        row->node_runs[0][k * s->runs + round] = count > 0 ? sum[k] / count : 0;
        row->node_runs[1][k * s->runs + round] = most[k];
    }
}

static int run_round(const struct transfer_settings *s, struct cargo *c, struct transfer_row *row,
                     int64_t round) {
    for (int who = 0; who < CONTENDERS; who++) {
        uint64_t ns;
        if (row->ns[who] == NULL)
            continue;
        if (who == FIRST && s->breakdown)
            diaries_lay(c);
        int r = run_one(s, c, row, (enum contender)who, &ns);
        if (r < 0)
            return r;
        if (round < 0)
            continue;
        row->ns[who][round] = ns;
        if (who == FIRST && s->breakdown)
            read_nodes(s, c, row, (uint64_t)round);
        for (int i = 0; who == FIRST && i < TALLY_STAGES; i++)
            row->stages[(uint64_t)i * s->runs + (uint64_t)round] = tally_since(&row->tally[who], i);
    }
    return 0;
}

static uint64_t median(uint64_t *list, uint64_t count) {
    sort_u64(list, count);
    return stats_of(list, (uint32_t)count).median;
}

static void evaluate(const struct transfer_settings *s, struct transfer_row *row) {
    for (int who = 0; who < CONTENDERS; who++)
        if (row->ns[who] != NULL) {
            sort_u64(row->ns[who], s->runs);
            row->stats[who] = stats_of(row->ns[who], (uint32_t)s->runs);
        }
    for (uint64_t i = 0; i < TALLY_STAGES; i++)
        row->tally[FIRST].at_ns[i] = median(row->stages + i * s->runs, s->runs);
    for (uint64_t i = 0; i < NODE_STAGES; i++)
        for (int k = 0; k < 2; k++)
            row->node[k][i] = median(row->node_runs[k] + i * s->runs, s->runs);
}

static int measure_row(const struct transfer_settings *s, struct cargo *c,
                       struct transfer_row *row) {
    char words[80], size[UNITS_TEXT_MAX];
    uint64_t *memory =
        calloc((CONTENDERS + TALLY_STAGES + 2 * NODE_STAGES) * s->runs, sizeof *memory);
    if (memory == NULL)
        return -ENOMEM;
    for (int who = 0; who < CONTENDERS; who++)
        row->ns[who] = who == FLAT && !s->flat ? NULL : memory + who * s->runs;
    row->stages = memory + CONTENDERS * s->runs;
    row->node_runs[0] = row->stages + TALLY_STAGES * s->runs;
    row->node_runs[1] = row->node_runs[0] + NODE_STAGES * s->runs;
    units_format_size(row->bytes, size, sizeof size);
    snprintf(words, sizeof words, "copying %s to %" PRIu32 " nodes ...", size, row->nodes);
    terminal_progress(words);
    int r = cargo_make(c, "known", row->bytes, NULL);
    if (r == 0)
        usleep(RIPE_US);
    for (int64_t i = -1; i < (int64_t)s->runs && r == 0; i++)
        r = run_round(s, c, row, i);
    terminal_progress(NULL);
    if (r == 0)
        evaluate(s, row);
    free(memory);
    return r;
}

/* ---- what is shown ---- */

/* Of each node; MB are millions of bytes here, as networks have it. */
static uint64_t rate(const struct transfer_row *row, uint64_t ns) {
    return (uint64_t)((double)row->bytes * (double)NS_PER_S / (double)(ns + 1));
}

static void print_breakdown(const struct transfer_row *row) {
    const struct tally *t = &row->tally[FIRST];
    uint64_t before = 0;
    char time[UNITS_TEXT_MAX];
    puts("         where its time goes:");
    for (int i = 0; i < TALLY_STAGES; i++) {
        uint64_t since = tally_since(t, i);
        units_format_duration(since - before, time, sizeof time);
        printf("           until %-20s %10s\n", tally_word(i), time);
        before = since;
    }
    uint64_t whole = row->stats[FIRST].median;
    units_format_duration(whole > before ? whole - before : 0, time, sizeof time);
    printf("           beginning and end of it  %10s\n", time);
    puts("         and that of a node, on average and on the slowest:");
    for (int i = 0; i < NODE_STAGES; i++) {
        char most[UNITS_TEXT_MAX];
        units_format_duration(row->node[0][i], time, sizeof time);
        units_format_duration(row->node[1][i], most, sizeof most);
        printf("           %-24s %11s %10s\n", node_stage_words(i), time, most);
    }
}

static void print_row(const struct transfer_settings *s, const struct transfer_row *row) {
    char size[UNITS_TEXT_MAX];
    units_format_size(row->bytes, size, sizeof size);
    for (int who = 0; who < CONTENDERS; who++) {
        char median[UNITS_TEXT_MAX], spread[UNITS_TEXT_MAX];
        const struct stats *st = &row->stats[who];
        if (row->ns[who] == NULL)
            continue;
        uint64_t x100 = st->median * 100 / row->stats[FLOOR].median;
        uint64_t each = rate(row, st->median) / 1000000;
        units_format_duration(st->median, median, sizeof median);
        units_format_duration(st->ci95, spread, sizeof spread);
        printf("%5" PRIu32 " %9s  %-22s %9s %9s", row->nodes, size, contenders[who].title, median,
               spread);
        printf(" %5" PRIu64 ".%02" PRIu64 " %7" PRIu64 " %8" PRIu64 "\n", x100 / 100, x100 % 100,
               each, each * row->nodes);
    }
    if (s->breakdown)
        print_breakdown(row);
    fflush(stdout);
}

static void print_json(const struct transfer_settings *s, const struct transfer_row *row) {
    for (int who = 0; who < CONTENDERS; who++) {
        const struct stats *st = &row->stats[who];
        const struct tally *t = &row->tally[who];
        uint64_t floor = row->stats[FLOOR].median, each = rate(row, st->median) / 1000;
        if (row->ns[who] == NULL)
            continue;
        printf("{\"bench\":\"transfer\",\"case\":\"%s\",\"nodes\":%" PRIu32 ",\"bytes\":%" PRIu64
               ",\"runs\":%" PRIu64 ",\"source\":\"%s\"",
               contenders[who].name, row->nodes, row->bytes, s->runs, s->source);
        if (who != FLOOR)
            printf(",\"shape\":\"%s\",\"pieces\":%" PRIu32 ",\"given\":%" PRIu64
                   ",\"read\":%" PRIu64,
                   t->shape, t->pieces, t->given, t->read);
        report_json_ms("median_ms", st->median, stdout);
        report_json_ms("ci95_ms", st->ci95, stdout);
        report_json_ms("floor_ms", floor, stdout);
        printf(",\"ratio\":%" PRIu64 ".%02" PRIu64, st->median / floor,
               st->median * 100 / floor % 100);
        printf(",\"rate_mb_per_s\":%" PRIu64 ".%03" PRIu64 ",\"all_mb_per_s\":%" PRIu64,
               each / 1000, each % 1000, each * row->nodes / 1000);
        for (int i = 0; who == FIRST && i < TALLY_STAGES; i++)
            report_json_ms(tally_name(i), tally_since(t, i), stdout);
        for (int i = 0; who == FIRST && s->breakdown && i < NODE_STAGES; i++)
            report_json_ms(node_stage_name(i), row->node[0][i], stdout);
        puts("}");
    }
    fflush(stdout);
}

static void add_lines(const struct transfer_settings *s, const struct transfer_row *rows,
                      struct plot *p, uint32_t size, int who) {
    char text[UNITS_TEXT_MAX];
    struct plot_series *line = plot_add(p, size % PLOT_COLOURS, who == FLOOR);
    if (line == NULL)
        return;
    units_format_size(s->sizes.at[size], text, sizeof text);
    snprintf(line->name, sizeof line->name, "%s, %s", text, contenders[who].title);
    for (uint32_t i = 0; i < s->nodes.count; i++) {
        const struct transfer_row *row = &rows[i * s->sizes.count + size];
        plot_point(line, row->nodes, row->stats[who].median);
    }
}

static int write_plot(const struct transfer_settings *s, const struct transfer_row *rows) {
    struct plot *p = calloc(1, sizeof *p);
    if (p == NULL)
        return -ENOMEM;
    *p = (struct plot){.title = "A file to all nodes",
                       .subtitle = "the whole command, nothing of it there before; all nodes on "
                                   "this machine",
                       .x_words = "nodes",
                       .y_words = "time",
                       .label = plot_label_time};
    for (uint32_t size = 0; size < s->sizes.count; size++) {
        add_lines(s, rows, p, size, FLOOR);
        add_lines(s, rows, p, size, FIRST);
        if (s->flat)
            add_lines(s, rows, p, size, FLAT);
    }
    FILE *out = fopen(s->svg, "we");
    int r = out == NULL ? -errno : plot_write(p, out);
    if (out != NULL && fclose(out) != 0 && r == 0)
        r = -EIO;
    free(p);
    if (r < 0)
        complain("bench", "%s: %s", s->svg, strerror(-r));
    return r;
}

/* ---- the whole ---- */

static int measure_nodes(const struct transfer_settings *s, uint32_t nodes,
                         struct transfer_row *rows) {
    struct cargo c;
    int r = cargo_up(&c, s->command, nodes, strcmp(s->source, "ram") == 0, NULL);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < s->sizes.count && r == 0; i++) {
        rows[i] = (struct transfer_row){.nodes = nodes, .bytes = s->sizes.at[i]};
        r = measure_row(s, &c, &rows[i]);
        if (r == 0 && s->json)
            print_json(s, &rows[i]);
        else if (r == 0)
            print_row(s, &rows[i]);
    }
    cargo_down(&c);
    return r;
}

static int run_all(const struct transfer_settings *s) {
    struct transfer_row *rows = calloc((size_t)s->nodes.count * s->sizes.count, sizeof *rows);
    int r = rows == NULL ? -ENOMEM : 0;
    if (!s->json)
        printf("a file to all nodes, medians of %" PRIu64
               " runs\n\n%5s %9s  %-22s %9s %9s %8s %7s %8s\n",
               s->runs, "nodes", "size", "", "median", "ci95", "x floor", "MB/s", "in all");
    for (uint32_t i = 0; i < s->nodes.count && r == 0; i++)
        r = measure_nodes(s, (uint32_t)s->nodes.at[i], rows + (size_t)i * s->sizes.count);
    if (r == 0 && !s->json)
        puts("\nfloor: as many files of that size written by two threads of a bare program, from "
             "memory.\nMB/s: to each node, and to all together.");
    if (r == 0 && s->svg != NULL)
        r = write_plot(s, rows);
    free(rows);
    return r;
}

/* ---- the command line ---- */

static int check(struct transfer_settings *s) {
    for (uint32_t i = 0; i < s->nodes.count; i++)
        if (s->nodes.at[i] < 1 || s->nodes.at[i] > NODES_MAX)
            return complain("bench", "--nodes %" PRIu64 ": give 1 to %d", s->nodes.at[i],
                            NODES_MAX);
    if (!bench_sizes(s->size_text, &s->sizes))
        return complain("bench", "--size %s: sizes such as 1MB,12MB", s->size_text);
    if (s->runs < 1 || s->runs > RUNS_MAX)
        return complain("bench", "--runs %" PRIu64 ": give 1 to %d", s->runs, RUNS_MAX);
    if (strcmp(s->source, "disk") != 0 && strcmp(s->source, "ram") != 0)
        return complain("bench", "--source \"%s\": give disk or ram", s->source);
    return STATUS_OK;
}

int bench_transfer(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--sim") == 0)
            return bench_delivery(argc, argv);
    struct transfer_settings s = {
        .runs = 5, .size_text = "1MB,12MB,100MB", .source = "ram", .command = s.self};
    options_list("1,4,16,64", &s.nodes);
    const struct option table[] = {
        {"nodes", OPTION_LIST, &s.nodes, "LIST", "1,64 or doubling 4..64 (default 1,4,16,64)"},
        {"size", OPTION_TEXT, &s.size_text, "LIST", "of the file (default 1MB,12MB,100MB)"},
        {"runs", OPTION_NUMBER, &s.runs, "R", "of each (default 5)"},
        {"tree", OPTION_TEXT, &s.tree, "SHAPE", "as for storm cp; otherwise as is best"},
        {"chunk", OPTION_TEXT, &s.chunk, "SIZE", "as for storm cp"},
        {"slots", OPTION_TEXT, &s.slots, "N", "as for storm cp"},
        {"send", OPTION_TEXT, &s.send, "TYPE", "as for storm cp"},
        {"source", OPTION_TEXT, &s.source, "WHERE", "the file is in ram (default) or on disk"},
        {"flat", OPTION_FLAG, &s.flat, NULL, "beside all nodes fetching it from one place"},
        {"breakdown", OPTION_FLAG, &s.breakdown, NULL, "where the time goes"},
        {"json", OPTION_FLAG, &s.json, NULL, "one JSON object a line"},
        {"svg", OPTION_TEXT, &s.svg, "FILE", "write a plot"},
        {"command", OPTION_TEXT, &s.command, "PATH", "another storm command (default: this one)"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm bench transfer [OPTIONS]\n"
            "       storm bench transfer --sim [OPTIONS]    simulated clusters; see its --help\n"
            "\n"
            "How long `storm cp` takes with a file that no node has, from the start of the command\n"
            "until it is on all nodes of a temporary cluster on this machine.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count > 0)
        return complain("bench", "what is \"%s\" for? see: storm bench transfer --help", argv[1]);
    int status = check(&s);
    if (status != STATUS_OK)
        return status;
    if (companion_self(s.self, sizeof s.self) < 0)
        return STATUS_FAILED;
    return run_all(&s) < 0 ? STATUS_FAILED : STATUS_OK;
}

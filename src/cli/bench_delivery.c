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
#include "cli/delivery_report.h"
#include "cli/terminal.h"
#include "sim/network.h"
#include "wire/message.h"

enum { NODES_MAX = 65536 };

/* ---- what is to be run ---- */

static uint32_t combinations(const struct delivery_settings *s) {
    uint32_t all = 1;
    for (int f = 0; f < FACTORS; f++)
        all *= delivery_count(s, (enum factor)f);
    return all;
}

static uint64_t pick(const struct number_list *l, uint32_t at) {
    return l->count == 0 ? 0 : l->at[at];
}

/* Nodes change fastest: rows of one table belong together. */
static void combine(const struct delivery_settings *s, uint32_t index, struct delivery_row *row) {
    for (int f = FACTORS - 1; f >= 0; f--) {
        row->at[f] = index % delivery_count(s, (enum factor)f);
        index /= delivery_count(s, (enum factor)f);
    }
    row->config = s->common;
    row->config.spread = s->tree_count == 0 ? (struct spread){0} : s->trees[row->at[BY_TREE]];
    if (s->arities.count > 0)
        row->config.spread = (struct spread){
            .shape = SPREAD_KARY, .arity = (uint32_t)pick(&s->arities, row->at[BY_ARITY])};
    row->config.order = s->order_count == 0 ? DELIVERY_ALONG : s->orders[row->at[BY_ORDER]];
    row->config.bytes = pick(&s->sizes, row->at[BY_SIZE]);
    row->config.slots = (uint32_t)pick(&s->slots, row->at[BY_SLOTS]);
    row->config.piece_bytes = (uint32_t)pick(&s->chunks, row->at[BY_CHUNK]);
    row->config.nodes = (uint32_t)pick(&s->nodes, row->at[BY_NODES]);
}

/* ---- the whole ---- */

static const char *reason(int r) {
    switch (r) {
    case -ENOMEM:
        return "not enough memory; try fewer nodes";
    case -EINVAL:
        return "so many pieces cannot be; give a larger --chunk";
    case -EIO:
        return "a node gave it up: movers do so with what comes slower than 1 MiB/s; give faster links";
    default:
        return "the transfer did not come to an end; please report this with the options used";
    }
}

static int run_row(const struct delivery_settings *s, struct delivery_row *row) {
    char words[96], size[UNITS_TEXT_MAX];
    units_format_size(row->config.bytes, size, sizeof size);
    snprintf(words, sizeof words, "simulating %s to %" PRIu32 " nodes ...", size,
             row->config.nodes);
    terminal_progress(words);
    int r = delivery_run(&row->config, &row->result);
    terminal_progress(NULL);
    if (r < 0) {
        complain("bench", "%s", reason(r));
        return STATUS_FAILED;
    }
    s->json ? delivery_print_json(s, row) : delivery_print_row(s, row);
    return STATUS_OK;
}

static int run_all(const struct delivery_settings *s) {
    uint32_t count = combinations(s);
    struct delivery_row *rows = calloc(count, sizeof *rows);
    if (rows == NULL) {
        complain("bench", "not enough memory for so many combinations");
        return STATUS_FAILED;
    }
    int status = STATUS_OK;
    if (!s->json)
        delivery_print_head(s);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        combine(s, i, &rows[i]);
        status = run_row(s, &rows[i]);
    }
    if (status == STATUS_OK && !s->json)
        delivery_print_foot();
    if (status == STATUS_OK && s->svg != NULL && delivery_plot(s, rows, count) < 0)
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
        if (s->tree_count == DELIVERY_TREES_MAX || len >= sizeof one ||
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

static int find_orders(struct delivery_settings *s) {
    for (const char *at = s->order_text; at != NULL && *at != '\0';) {
        char one[16];
        size_t len = strcspn(at, ",");
        snprintf(one, sizeof one, "%.*s", (int)len, at);
        if (s->order_count == DELIVERY_ORDERS || len >= sizeof one ||
            !delivery_order_parse(one, &s->orders[s->order_count++]))
            return complain("bench", "--numbering %s: a list of along, across, aware",
                            s->order_text);
        at += len + (at[len] == ',');
    }
    if (s->over_text != NULL && !delivery_axis(s->over_text, &s->over))
        return complain("bench", "--over %s: give nodes, chunk, slots, arity or size",
                        s->over_text);
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
                                  .over = BY_NODES,
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
        {"numbering", OPTION_TEXT, &s.order_text, "LIST",
         "of nodes: along switches, across, aware"},
        {"seed", OPTION_NUMBER, &s.seed, "SEED", "of the contents (default 1)"},
        {"json", OPTION_FLAG, &s.json, NULL, "one JSON object a line"},
        {"svg", OPTION_TEXT, &s.svg, "FILE", "write a plot"},
        {"over", OPTION_TEXT, &s.over_text, "WHAT", "nodes (default), chunk, slots, arity or size"},
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
        status = find_orders(&s);
    if (status == STATUS_OK)
        status = find_network(&s);
    if (status != STATUS_OK)
        return status;
    fill_in(&s);
    return run_all(&s);
}

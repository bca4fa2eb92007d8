/* SPDX-License-Identifier: MIT */
/* storm model: how long a launch takes, by formula: no cluster, nothing measured.
 *
 * Here is the command line; the formulas are in sim/analytic.c, what is shown in model_show.c. */
#include "cli/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/complain.h"

/* As typed; what was not is NULL, 0 or NOT_SAID. */
struct typed {
    bool table, figure, launcher, json;
    const char *network, *image, *svg;
    struct number_list nodes;
    uint64_t arity, lambda_ns, exec_ns, timeslice_ns, host_bytes_per_s;
};
#define NOT_SAID UINT64_MAX

static void print_help(const struct option *table) {
    puts(
        "usage: storm model [OPTIONS]\n"
        "       storm model --table\n"
        "       storm model --figure [--svg FILE] [OPTIONS]\n"
        "       storm model --launcher [--lambda TIME] [--arity K] [--nodes LIST]\n"
        "\n"
        "How long a launch takes on a cluster that is not here, by formula: the model of the STORM\n"
        "paper, with its constants or those of other networks, part by part. It needs no cluster\n"
        "and measures nothing; `storm bench` does that.\n"
        "\n"
        "networks (bandwidth of a link, latency, processor time for a message):");
    const struct analytic_network *n;
    for (uint32_t i = 0; (n = analytic_at(i)) != NULL; i++) {
        char link[96] = "cables and switches count", latency[UNITS_TEXT_MAX], cpu[UNITS_TEXT_MAX];
        units_format_duration(n->latency_ns, latency, sizeof latency);
        units_format_duration(n->message_ns, cpu, sizeof cpu);
        if (!n->hardware)
            snprintf(link, sizeof link, "%5" PRIu64 " MB/s, %6s, %6s",
                     n->link_bytes_per_s / 1000000, latency, cpu);
        printf("  %-7s %-27s %s\n", n->name, link, n->words);
    }
    options_print(table, stdout);
}

/* ---- which options go together ---- */

static int find_view(const struct typed *t, enum model_view *view) {
    if (t->table + t->figure + t->launcher > 1)
        return complain("model", "--table, --figure and --launcher are different things; give one");
    *view = t->table      ? MODEL_TABLE
            : t->figure   ? MODEL_FIGURE
            : t->launcher ? MODEL_LAUNCHER
                          : MODEL_LAUNCH;
    return STATUS_OK;
}

/* An option that changes nothing is a mistake of whoever gives it. */
static int check_together(const struct typed *t, enum model_view view) {
    static const char *const views[MODEL_VIEWS] = {"a launch", "--table", "--figure", "--launcher"};
    const bool launch = view == MODEL_LAUNCH || view == MODEL_FIGURE;
    const struct {
        const char *name;
        bool given, fits;
        const char *advice;
    } options[] = {
        {"network", t->network != NULL, launch, "leave it out"},
        {"nodes", t->nodes.count > 0, view != MODEL_TABLE, "leave it out"},
        {"image", t->image != NULL, launch, "leave it out"},
        {"arity", t->arity != NOT_SAID, view != MODEL_TABLE, "leave it out"},
        {"host", t->host_bytes_per_s != NOT_SAID, launch, "leave it out"},
        {"exec", t->exec_ns != NOT_SAID, launch, "leave it out"},
        {"timeslice", t->timeslice_ns != NOT_SAID, launch, "leave it out"},
        {"lambda", t->lambda_ns != NOT_SAID, view == MODEL_LAUNCHER, "it is for --launcher"},
        {"svg", t->svg != NULL, view == MODEL_FIGURE, "it is for --figure"},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && !options[i].fits)
            return complain("model", "--%s means nothing to %s; %s", options[i].name, views[view],
                            options[i].advice);
    return STATUS_OK;
}

/* ---- values ---- */

static int complain_network(const char *name) {
    char names[128] = "";
    const struct analytic_network *n;
    size_t len = 0;
    for (uint32_t i = 0; (n = analytic_at(i)) != NULL && len < sizeof names; i++)
        len +=
            (size_t)snprintf(names + len, sizeof names - len, "%s%s", i > 0 ? ", " : "", n->name);
    return complain("model", "there is no network \"%s\"; there are: %s", name, names);
}

static int find_network(const struct typed *t, struct model_settings *s) {
    const struct analytic_network *n = analytic_at(0);
    if (t->network != NULL)
        n = analytic_find(t->network);
    if (n == NULL)
        return complain_network(t->network);
    s->network = *n;
    if (t->host_bytes_per_s == 0)
        return complain("model", "--host: nothing would ever arrive; give more, such as 5GB");
    if (t->host_bytes_per_s != NOT_SAID)
        s->network.host_bytes_per_s = t->host_bytes_per_s;
    if (t->exec_ns != NOT_SAID)
        s->network.exec_ns = t->exec_ns;
    if (t->timeslice_ns != NOT_SAID)
        s->network.timeslice_ns = t->timeslice_ns;
    s->changed = s->network.host_bytes_per_s != n->host_bytes_per_s ||
                 s->network.exec_ns != n->exec_ns || s->network.timeslice_ns != n->timeslice_ns;
    if (s->network.exec_ns > ANALYTIC_LAMBDA_MAX_NS ||
        s->network.timeslice_ns > ANALYTIC_LAMBDA_MAX_NS)
        return complain("model", "--exec and --timeslice: at most an hour; give less");
    return STATUS_OK;
}

static int find_image(const struct typed *t, struct model_settings *s) {
    s->image_bytes = 12 * MIB; /* the paper's */
    if (t->image != NULL && units_parse_size(t->image, &s->image_bytes) < 0)
        return complain("model", "--image: \"%s\" will not do; for example --image 12MB", t->image);
    if (s->image_bytes < 1 || s->image_bytes > ANALYTIC_IMAGE_MAX_BYTES)
        return complain("model", "--image %s: give a byte to 1 TiB", t->image);
    return STATUS_OK;
}

static int find_nodes(const struct typed *t, struct model_settings *s) {
    static const char *const usual[MODEL_VIEWS] = {[MODEL_LAUNCH] = "1,16,64,256,1024,4096,16384",
                                                   [MODEL_TABLE] = "4,16,64,256,1024,4096",
                                                   [MODEL_FIGURE] = "1..16384",
                                                   [MODEL_LAUNCHER] = "4,16,64,256,1024"};
    s->nodes = t->nodes;
    if (s->nodes.count == 0)
        options_list(usual[s->view], &s->nodes);
    for (uint32_t i = 0; i < s->nodes.count; i++)
        if (s->nodes.at[i] < 1 || s->nodes.at[i] > ANALYTIC_NODES_MAX)
            return complain("model", "--nodes %" PRIu64 ": give 1 to %d", s->nodes.at[i],
                            ANALYTIC_NODES_MAX);
    return STATUS_OK;
}

static int find_trees(const struct typed *t, struct model_settings *s) {
    s->lambda_ns = t->lambda_ns != NOT_SAID ? t->lambda_ns : 100 * NS_PER_MS;
    if (s->lambda_ns < 1 || s->lambda_ns > ANALYTIC_LAMBDA_MAX_NS)
        return complain("model", "--lambda: give more than nothing and at most an hour");
    if (t->arity == NOT_SAID)
        return STATUS_OK;
    if (t->arity < 1 || t->arity > ANALYTIC_ARITY_MAX)
        return complain("model", "--arity %" PRIu64 ": give 1 to %d", t->arity, ANALYTIC_ARITY_MAX);
    if (s->view != MODEL_LAUNCHER && s->network.hardware)
        return complain(
            "model", "--arity: %s broadcasts in hardware, without a tree; give another --network",
            s->network.name);
    s->arity = (uint32_t)t->arity;
    return STATUS_OK;
}

static int find_all(const struct typed *t, struct model_settings *s) {
    int (*const steps[])(const struct typed *, struct model_settings *) = {find_network, find_image,
                                                                           find_nodes, find_trees};
    int status = find_view(t, &s->view);
    if (status == STATUS_OK)
        status = check_together(t, s->view);
    for (size_t i = 0; i < sizeof steps / sizeof *steps && status == STATUS_OK; i++)
        status = steps[i](t, s);
    s->svg = t->svg;
    s->json = t->json;
    return status;
}

int model_main(int argc, char **argv) {
    struct typed t = {.arity = NOT_SAID,
                      .lambda_ns = NOT_SAID,
                      .exec_ns = NOT_SAID,
                      .timeslice_ns = NOT_SAID,
                      .host_bytes_per_s = NOT_SAID};
    struct model_settings s = {0};
    const struct option table[] = {
        {"network", OPTION_TEXT, &t.network, "NAME", "one of the above (default qsnet)"},
        {"nodes", OPTION_LIST, &t.nodes, "LIST", "64,1024 or doubling 1..16384"},
        {"image", OPTION_TEXT, &t.image, "SIZE", "of the program's file (default 12MB)"},
        {"arity", OPTION_NUMBER, &t.arity, "K", "of the tree (default: the fastest shape)"},
        {"host", OPTION_RATE, &t.host_bytes_per_s, "RATE",
         "what a host can read, pass on and write, such as 5GB"},
        {"exec", OPTION_DURATION, &t.exec_ns, "TIME", "of a process on its node"},
        {"timeslice", OPTION_DURATION, &t.timeslice_ns, "TIME", "lost to waiting for time slices"},
        {"table", OPTION_FLAG, &t.table, NULL, "table 3 of the paper: bandwidth by cable length"},
        {"figure", OPTION_FLAG, &t.figure, NULL, "figure 8: hosts as they are, and ideal ones"},
        {"svg", OPTION_TEXT, &t.svg, "FILE", "--figure: write a plot"},
        {"launcher", OPTION_FLAG, &t.launcher, NULL, "trees of remote executions instead"},
        {"lambda", OPTION_DURATION, &t.lambda_ns, "TIME", "--launcher: of one (default 100ms)"},
        {"json", OPTION_FLAG, &t.json, NULL, "as one JSON object"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        print_help(table);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count > 0)
        return complain("model", "what is \"%s\" for? see: storm help model", argv[1]);
    int status = find_all(&t, &s);
    return status == STATUS_OK ? model_show(&s) : status;
}

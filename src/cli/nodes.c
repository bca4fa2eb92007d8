/* SPDX-License-Identifier: MIT */
/* storm nodes, drain, undrain: which nodes there are, and which of them get jobs. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/jobs.h"
#include "cli/listing.h"
#include "cli/nodes.h"
#include "cli/options.h"
#include "cli/use.h"
#include "client/hostsfile.h"
#include "client/nodespec.h"

int nodes_read(const struct cluster *c, const char *command, char **argv, struct nodeset *set) {
    struct cluster_trouble trouble;
    void *storage = malloc(2 * nodeset_bytes(c->nodes));
    struct nodeset one;
    ASSERT(storage != NULL);
    nodeset_init(set, c->nodes, storage);
    nodeset_init(&one, c->nodes, (uint8_t *)storage + nodeset_bytes(c->nodes));
    for (; *argv != NULL; argv++) {
        int r = cluster_nodes(c, *argv, &one, &trouble);
        if (r == -ENOENT) {
            complain(trouble.words, "there is no such node in cluster `%s`; see: storm nodes",
                     c->name);
            return STATUS_STORM;
        }
        if (r < 0)
            return complain(command, "%s", trouble.words);
        nodeset_unite(set, &one);
    }
    return 0;
}

/* ---- showing ---- */

static void print_jobs(const struct node_row *r, char *out, size_t cap) {
    struct text t;
    text_init(&t, out, cap);
    for (size_t at = 0; at < r->jobs.len; at += 4) {
        text_str(&t, at > 0 ? "," : "");
        text_u64(&t, load_le32(r->jobs.at + at));
    }
}

/* How they are shown. */
struct manner {
    bool json;
    bool wide; /* also their load and memory */
};

static void add_row(struct table *t, const struct node_row *r, const struct nodespec *spec,
                    bool wide) {
    char jobs[TABLE_CELL_MAX];
    print_jobs(r, jobs, sizeof jobs);
    table_cell(t, "%.*s", (int)r->name.len, (const char *)r->name.at);
    table_cell(t, "%s", node_state_name((enum node_state)r->state));
    table_cell(t, "%" PRIu32, r->used);
    table_cell(t, "%" PRIu32, r->pes);
    if (spec->switch_count > 0) {
        const char *name = nodespec_switch(spec, r->node);
        table_cell(t, "%s", name != NULL ? name : "-");
    }
    if (wide)
        use_node_cells(t, r);
    table_cell(t, "%s", moment_of(r->since_ns).text);
    table_cell(t, "%s", jobs);
    table_cell(t, "%.*s", (int)r->reason.len, (const char *)r->reason.at);
}

static void add_json(struct json *j, const struct node_row *r, const struct nodespec *spec) {
    json_open(j, NULL, '{');
    json_text(j, "name", r->name);
    json_word(j, "state", node_state_name((enum node_state)r->state));
    json_number(j, "pes", r->pes);
    json_number(j, "used", r->used);
    if (nodespec_switch(spec, r->node) != NULL)
        json_word(j, "switch", nodespec_switch(spec, r->node));
    json_time(j, "since", r->since_ns);
    json_text(j, "reason", r->reason);
    json_open(j, "jobs", '[');
    for (size_t at = 0; at < r->jobs.len; at += 4)
        json_number(j, NULL, load_le32(r->jobs.at + at));
    json_close(j, ']');
    use_node_json(j, r);
    json_close(j, '}');
}

static const char *const *titles_of(const struct nodespec *spec, bool wide) {
    static const char *const plain[] = {"NODE",  "STATE", ">USED",  ">PES",
                                        "SINCE", "JOBS",  "REASON", NULL};
    static const char *const switched[] = {"NODE",  "STATE", ">USED",  ">PES", "SWITCH",
                                           "SINCE", "JOBS",  "REASON", NULL};
    static const char *const wide_plain[] = {"NODE",  "STATE", ">USED",  ">PES", USE_NODE_TITLES,
                                             "SINCE", "JOBS",  "REASON", NULL};
    static const char *const wide_switched[] = {
        "NODE",          "STATE", ">USED", ">PES",   "SWITCH",
        USE_NODE_TITLES, "SINCE", "JOBS",  "REASON", NULL};
    if (spec->switch_count > 0)
        return wide ? wide_switched : switched;
    return wide ? wide_plain : plain;
}

static int print(const struct contact_rows *rows, const struct nodeset *set,
                 const struct nodespec *spec, struct manner m) {
    struct node_row row;
    struct listing l;
    size_t at = 0;
    int r;
    listing_begin(&l, titles_of(spec, m.wide), m.json);
    while ((r = node_row_next(bytes_of(rows->at, rows->len), &at, &row)) == 1)
        if (!nodeset_empty(set) && !nodeset_has(set, row.node))
            continue;
        else if (m.json)
            add_json(&l.json, &row, spec);
        else
            add_row(&l.table, &row, spec, m.wide);
    listing_end(&l, NULL);
    return r < 0 ? STATUS_STORM : STATUS_OK;
}

static int fetch(struct contact *c, struct contact_rows *rows) {
    struct message_ask ask = {.subject = SUBJECT_NODES};
    int r;
    do {
        struct node_row row;
        size_t at = 0;
        r = contact_ask(c, &ask, rows);
        while (r == 0 && node_row_next(bytes_of(rows->at, rows->len), &at, &row) == 1)
            ask.job = row.node + 1;
    } while (r == 0 && !rows->last);
    return r;
}

/* What cannot be read is as if it were not there: the manager has it in its log. */
static struct nodespec load_spec(const struct cluster *c) {
    char path[CLUSTER_PATH_MAX], file[CLUSTER_PATH_MAX + 16];
    struct cluster_trouble trouble;
    struct hosts hosts = {0};
    struct nodespec spec = {0};
    if (nodespec_path(c, path, sizeof path) == 0 && nodespec_load(c, path, &spec, &trouble) < 0)
        nodespec_free(&spec);
    if (c->hosts != NULL && cluster_folder(c->name, path, sizeof path) == 0 &&
        hosts_path(path, file, sizeof file) == 0 &&
        hosts_read(&hosts, c->nodes, file, &trouble) == 0)
        (void)hosts_switches(&hosts, &spec);
    hosts_free(&hosts);
    return spec;
}

static int show(const char *cluster, char **argv, struct manner m) {
    struct session_config callbacks = {.patience_ns = PATIENCE_ASKING};
    struct contact c;
    struct nodeset set;
    struct contact_rows rows = {0};
    int r = contact_open(&c, cluster, &callbacks);
    if (r != 0)
        return r;
    r = nodes_read(&c.cluster, "nodes", argv, &set);
    if (r == 0)
        r = fetch(&c, &rows);
    struct nodespec spec = load_spec(&c.cluster);
    contact_close(&c);
    if (r == 0)
        r = print(&rows, &set, &spec, m);
    nodespec_free(&spec);
    free(rows.at);
    free(set.storage);
    return r;
}

int nodes_main(int argc, char **argv) {
    struct manner m = {0};
    const char *cluster = NULL;
    const struct option table[] = {
        {"long,l", OPTION_FLAG, &m.wide, NULL, "also load and memory"},
        {"json", OPTION_FLAG, &m.json, NULL, "as one JSON list"},
        {"cluster", OPTION_TEXT, &cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts("usage: storm nodes [OPTIONS] [NODES]\n\nShows nodes, what they do and since when.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    return count == OPTIONS_WRONG ? STATUS_USAGE : show(cluster, argv + 1, m);
}

/* ---- draining ---- */

static int act(const char *cluster, char **argv, const char *reason) {
    struct session_config callbacks = {.patience_ns = PATIENCE_ASKING};
    struct contact c;
    struct contact_answer a;
    struct nodeset set;
    int r = contact_open(&c, cluster, &callbacks);
    if (r != 0)
        return r;
    r = nodes_read(&c.cluster, argv[0], argv + 1, &set);
    struct message_act m = {.verb = reason != NULL ? VERB_DRAIN : VERB_UNDRAIN, .nodes = &set};
    if (reason != NULL)
        m.text = bytes_from_str(reason);
    if (r == 0)
        r = contact_act(&c, &m, &a);
    contact_close(&c);
    free(set.storage);
    if (r != 0 || a.code == ANSWER_DONE)
        return r;
    struct message_answer plain = {.code = a.code, .text = bytes_from_str(a.text)};
    return contact_refused(argv[0], &plain);
}

int drain_main(int argc, char **argv) {
    const char *cluster = NULL, *reason = NULL;
    const struct option table[] = {
        {"reason", OPTION_TEXT, &reason, "TEXT", "why, for those who look later"},
        {"cluster", OPTION_TEXT, &cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts("usage: storm drain NODES --reason TEXT\n\n"
             "These nodes get no more jobs; those that run there go on.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count == 0)
        return complain("drain", "which nodes? see: storm nodes");
    if (reason == NULL)
        return complain("drain", "say why: storm drain %s --reason TEXT", argv[1]);
    return act(cluster, argv, reason);
}

int undrain_main(int argc, char **argv) {
    const char *cluster = NULL;
    const struct option table[] = {
        {"cluster", OPTION_TEXT, &cluster, "NAME", "which; otherwise STORM_CLUSTER"}, {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts("usage: storm undrain NODES\n\nThese nodes get jobs again.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count == 0)
        return complain("undrain", "which nodes? see: storm nodes");
    return act(cluster, argv, NULL);
}

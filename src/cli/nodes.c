/* SPDX-License-Identifier: MIT */
/* storm nodes, drain, undrain: which nodes there are, and which of them get jobs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "cli/contact.h"
#include "cli/nodes.h"
#include "cli/nodetable.h"
#include "cli/options.h"
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

/* What is asked for, and how it is shown. */
struct view {
    const char *cluster;
    const char *need;
    bool json, whole;
};

/* What cannot be read is as if it were not there: the manager has it in its log. */
static struct nodespec load_spec(const struct cluster *c) {
    char folder[CLUSTER_PATH_MAX], why[NODESPEC_WHY_MAX];
    struct nodespec spec = {0};
    if (cluster_folder(c->name, folder, sizeof folder) == 0 &&
        hosts_nodespec(c, folder, &spec, why) < 0)
        nodespec_free(&spec);
    return spec;
}

static int print(const struct cluster *c, const struct contact_rows *rows,
                 const struct nodeset *set, const struct view *v) {
    struct nodespec spec = load_spec(c);
    struct nodetable t;
    int r = nodetable_init(&t, &spec, bytes_of(rows->at, rows->len), set);
    if (r == 0 && v->json)
        nodetable_print_json(&t, stdout);
    else if (r == 0)
        r = v->whole ? nodetable_print_long(&t, stdout) : nodetable_print_folded(&t, stdout);
    nodetable_fini(&t);
    nodespec_free(&spec);
    if (r == 0)
        return STATUS_OK;
    complain("nodes", "they cannot be shown: %s", strerror(-r));
    return STATUS_STORM;
}

static int fetch(struct contact *c, const struct view *v, struct contact_rows *rows) {
    struct message_ask ask = {.subject = SUBJECT_NODES, .whole = v->whole || v->json};
    size_t at = 0;
    int r;
    if (v->need != NULL)
        ask.need = bytes_from_str(v->need);
    do {
        struct node_row row;
        r = contact_ask(c, &ask, rows);
        while (r == 0 && node_row_next(bytes_of(rows->at, rows->len), &at, &row) == 1)
            ask.job = row.node + 1;
    } while (r == 0 && !rows->last);
    return r;
}

static int show(const struct view *v, char **argv) {
    struct session_config callbacks = {.patience_ns = PATIENCE_ASKING};
    struct contact c;
    struct nodeset set;
    struct contact_rows rows = {0};
    int r = contact_open(&c, v->cluster, &callbacks);
    if (r != 0)
        return r;
    r = nodes_read(&c.cluster, "nodes", argv, &set);
    if (r == 0)
        r = fetch(&c, v, &rows);
    if (r == 0)
        r = print(&c.cluster, &rows, &set, v);
    contact_close(&c);
    free(rows.at);
    free(set.storage);
    return r;
}

int nodes_main(int argc, char **argv) {
    struct view v = {0};
    const struct option table[] = {
        {"need", OPTION_TEXT, &v.need, "EXPR", "only those that have this: MEM>=512MB, NIC=FAST"},
        {"long,l", OPTION_FLAG, &v.whole, NULL, "a row for each, and all attributes"},
        {"json", OPTION_FLAG, &v.json, NULL, "as one JSON list"},
        {"cluster", OPTION_TEXT, &v.cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm nodes [OPTIONS] [NODES]\n\n"
            "Shows nodes, what they do and since when, and what they are like; those that are alike in "
            "one row.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (v.need != NULL && strlen(v.need) > NEED_TEXT_MAX)
        return complain("nodes", "--need is too long (at most %d characters)", NEED_TEXT_MAX);
    return show(&v, argv + 1);
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

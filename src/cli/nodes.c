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
#include "sched/traits.h"

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

/* What is asked for, and how it is shown. */
struct view {
    const char *cluster;
    const char *need;
    bool json, whole;
};

static void add_row(struct table *t, const struct node_row *r, const struct nodespec *spec,
                    bool whole) {
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
    if (whole)
        use_node_cells(t, r);
    table_cell(t, "%s", moment_of(r->since_ns).text);
    table_cell(t, "%s", jobs);
    table_cell(t, "%.*s", (int)r->reason.len, (const char *)r->reason.at);
}

/* "NAME=VALUE NAME=VALUE ..." as an object: values are as people read and write them. */
static void add_traits(struct json *j, struct bytes traits) {
    const char *at = (const char *)traits.at, *end = at + traits.len;
    json_open(j, "attributes", '{');
    while (at < end) {
        const char *is = memchr(at, '=', (size_t)(end - at));
        const char *next = is == NULL ? NULL : memchr(is, ' ', (size_t)(end - is));
        char name[TRAITS_WORD_MAX];
        if (is == NULL || (size_t)(is - at) >= sizeof name)
            break;
        next = next == NULL ? end : next;
        memcpy(name, at, (size_t)(is - at));
        name[is - at] = '\0';
        json_text(j, name, bytes_of(is + 1, (size_t)(next - is) - 1));
        at = next + 1;
    }
    json_close(j, '}');
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
    add_traits(j, r->traits);
    json_close(j, '}');
}

static const char *const *titles(const struct nodespec *spec, bool whole) {
    static const char *all[16];
    static const char *const used[] = {USE_NODE_TITLES};
    unsigned n = 0;
    all[n++] = "NODE";
    all[n++] = "STATE";
    all[n++] = ">USED";
    all[n++] = ">PES";
    if (spec->switch_count > 0)
        all[n++] = "SWITCH";
    for (size_t i = 0; whole && i < sizeof used / sizeof *used; i++)
        all[n++] = used[i];
    all[n++] = "SINCE";
    all[n++] = "JOBS";
    all[n++] = "REASON";
    all[n] = NULL;
    return all;
}

static bool is_shown(const struct nodeset *set, const struct node_row *r) {
    return nodeset_empty(set) || nodeset_has(set, r->node);
}

/* Nodes that have the same stand together, where the first of them is. `alike` is room for a set. */
static void print_alike(const struct cluster *c, const struct contact_rows *rows,
                        const struct nodeset *set, struct nodeset *done, struct nodeset *alike) {
    struct bytes all = bytes_of(rows->at, rows->len);
    struct node_row one, other;
    char names[1024];
    for (size_t at = 0; node_row_next(all, &at, &one) == 1;) {
        if (nodeset_has(done, one.node) || !is_shown(set, &one))
            continue;
        nodeset_clear(alike);
        for (size_t k = 0; node_row_next(all, &k, &other) == 1;)
            if (is_shown(set, &other) && bytes_equal(other.traits, one.traits))
                nodeset_add(alike, other.node);
        nodeset_unite(done, alike);
        cluster_format_nodes(c, alike, names, sizeof names);
        printf("%s: %.*s\n", names, (int)one.traits.len, (const char *)one.traits.at);
    }
}

static void print_attributes(const struct cluster *c, const struct contact_rows *rows,
                             const struct nodeset *set) {
    size_t each = nodeset_bytes(c->nodes);
    uint8_t *storage = malloc(2 * each);
    struct nodeset done, alike;
    if (storage == NULL)
        return;
    nodeset_init(&done, c->nodes, (void *)storage);
    nodeset_init(&alike, c->nodes, (void *)(storage + each));
    putchar('\n');
    print_alike(c, rows, set, &done, &alike);
    free(storage);
}

static int print(const struct cluster *c, const struct contact_rows *rows,
                 const struct nodeset *set, const struct nodespec *spec, const struct view *v) {
    struct node_row row;
    struct listing l;
    size_t at = 0;
    int r;
    listing_begin(&l, titles(spec, v->whole), v->json);
    while ((r = node_row_next(bytes_of(rows->at, rows->len), &at, &row)) == 1)
        if (!is_shown(set, &row))
            continue;
        else if (v->json)
            add_json(&l.json, &row, spec);
        else
            add_row(&l.table, &row, spec, v->whole);
    listing_end(&l, NULL);
    if (v->whole && !v->json && rows->len > 0)
        print_attributes(c, rows, set);
    return r < 0 ? STATUS_STORM : STATUS_OK;
}

static int fetch(struct contact *c, const struct view *v, struct contact_rows *rows) {
    struct message_ask ask = {.subject = SUBJECT_NODES, .whole = v->whole || v->json};
    int r;
    if (v->need != NULL)
        ask.need = bytes_from_str(v->need);
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
    char folder[CLUSTER_PATH_MAX], why[NODESPEC_WHY_MAX];
    struct nodespec spec = {0};
    if (cluster_folder(c->name, folder, sizeof folder) == 0 &&
        hosts_nodespec(c, folder, &spec, why) < 0)
        nodespec_free(&spec);
    return spec;
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
    struct nodespec spec = load_spec(&c.cluster);
    if (r == 0)
        r = print(&c.cluster, &rows, &set, &spec, v);
    contact_close(&c);
    nodespec_free(&spec);
    free(rows.at);
    free(set.storage);
    return r;
}

int nodes_main(int argc, char **argv) {
    struct view v = {0};
    const struct option table[] = {
        {"need", OPTION_TEXT, &v.need, "EXPR", "only those that have this: MEM>=512MB, NIC=FAST"},
        {"long,l", OPTION_FLAG, &v.whole, NULL, "also load, memory and attributes"},
        {"json", OPTION_FLAG, &v.json, NULL, "as one JSON list"},
        {"cluster", OPTION_TEXT, &v.cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts("usage: storm nodes [OPTIONS] [NODES]\n\n"
             "Shows nodes, what they do and since when, and what they are like.");
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

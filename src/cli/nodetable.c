/* SPDX-License-Identifier: MIT */
/* Nodes as people see them: see nodetable.h. */
#include "cli/nodetable.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/hostlist.h"
#include "base/text.h"
#include "cli/fold.h"
#include "cli/jobs.h"
#include "cli/listing.h"
#include "cli/use.h"
#include "sched/traits.h"

enum { JOBS_TEXT_MAX = 1024 }; /* the manager tells of 64 */

struct nodeline {
    struct node_row row;
    const char *name;
};

/* ---- which nodes ---- */

static bool is_shown(const struct nodeset *only, const struct node_row *r) {
    return nodeset_empty(only) || nodeset_has(only, r->node);
}

static int take_rows(struct nodetable *t, struct bytes rows, const struct nodeset *only) {
    struct node_row row;
    uint32_t cap = 0;
    int r;
    for (size_t at = 0; (r = node_row_next(rows, &at, &row)) == 1;) {
        if (!is_shown(only, &row))
            continue;
        if (t->count == cap) {
            cap = cap == 0 ? 64 : 2 * cap;
            struct nodeline *lines = reallocarray(t->lines, cap, sizeof *lines);
            if (lines == NULL)
                return -ENOMEM;
            t->lines = lines;
        }
        t->lines[t->count++] = (struct nodeline){.row = row};
        t->featured = t->featured || row.traits.len > 0;
    }
    return r;
}

static void keep_names(struct nodetable *t) {
    char *at = t->names;
    for (uint32_t i = 0; i < t->count; i++) {
        struct bytes name = t->lines[i].row.name;
        t->lines[i].name = memcpy(at, name.at, name.len);
        at[name.len] = '\0';
        at += name.len + 1;
    }
}

int nodetable_init(struct nodetable *t, const struct nodespec *spec, struct bytes rows,
                   const struct nodeset *only) {
    *t = (struct nodetable){.spec = spec};
    int r = take_rows(t, rows, only);
    t->names = malloc(rows.len + t->count + 1); /* no more than the rows have, and NULs */
    if (t->names == NULL)
        r = -ENOMEM;
    if (r == 0)
        keep_names(t);
    return r;
}

void nodetable_fini(struct nodetable *t) {
    free(t->lines);
    free(t->names);
    *t = (struct nodetable){0};
}

/* ---- which of them are alike ---- */

static const char *switch_of(const struct nodetable *t, const struct node_row *r) {
    const char *name = nodespec_switch(t->spec, r->node);
    return name != NULL ? name : "-";
}

/* Its owner works there: nothing that is lent is put there. */
static bool is_owned(const struct node_row *r) {
    return r->owner == NODE_OWNER_ACTIVE;
}

static uint64_t hash_line(const void *context, uint32_t i) {
    const struct nodetable *t = context;
    const struct nodeline *l = &t->lines[i];
    const char *on = switch_of(t, &l->row);
    struct hash h;
    hash_init(&h, l->row.state);
    hash_u64(&h, l->row.pes);
    hash_u64(&h, l->row.used);
    hash_u64(&h, is_owned(&l->row));
    hash_bytes(&h, on, strlen(on));
    hash_bytes(&h, l->row.reason.at, l->row.reason.len);
    hash_bytes(&h, l->row.jobs.at, l->row.jobs.len);
    hash_bytes(&h, l->row.traits.at, l->row.traits.len);
    return hash_done(&h);
}

static bool same_line(const void *context, uint32_t i, uint32_t k) {
    const struct nodetable *t = context;
    const struct nodeline *a = &t->lines[i], *b = &t->lines[k];
    return a->row.state == b->row.state && a->row.pes == b->row.pes && a->row.used == b->row.used &&
           is_owned(&a->row) == is_owned(&b->row) &&
           strcmp(switch_of(t, &a->row), switch_of(t, &b->row)) == 0 &&
           bytes_equal(a->row.reason, b->row.reason) && bytes_equal(a->row.jobs, b->row.jobs) &&
           bytes_equal(a->row.traits, b->row.traits);
}

static uint64_t hash_traits(const void *context, uint32_t i) {
    const struct nodetable *t = context;
    return hash_once(t->lines[i].row.traits.at, t->lines[i].row.traits.len);
}

static bool same_traits(const void *context, uint32_t i, uint32_t k) {
    const struct nodetable *t = context;
    return bytes_equal(t->lines[i].row.traits, t->lines[k].row.traits);
}

/* ---- names of many ---- */

/* Names of a group, and room to fold them. */
struct names {
    const char **all; /* as many as there are lines */
    uint64_t *scratch;
    size_t scratch_len;
    char *text;
    size_t cap;
};

static void names_fini(struct names *n) {
    free(n->all);
    free(n->scratch);
    free(n->text);
}

/* At least so much room, with nothing in it. */
static void *grown(void *at, size_t *cap, size_t want) {
    if (*cap >= want)
        return at;
    free(at);
    at = malloc(want);
    *cap = at == NULL ? 0 : want;
    return at;
}

/* The names of these, folded and never cut, into n->text. -ENOMEM; -EINVAL: one is none. */
static int names_fold(struct names *n, const struct nodetable *t, const struct fold *f,
                      const struct fold_group *g) {
    uint32_t count = 0;
    size_t len = 0;
    FOLD_EACH (i, f, g)
        n->all[count++] = t->lines[i].name;
    n->scratch = grown(n->scratch, &n->scratch_len, hostlist_fold_bytes(n->all, count));
    if (n->scratch == NULL)
        return -ENOMEM;
    int r = hostlist_fold(n->all, count, n->scratch, n->scratch_len, n->text, n->cap, &len, NULL);
    if (r < 0 || len < n->cap)
        return r;
    n->text = grown(n->text, &n->cap, len + 1);
    if (n->text == NULL)
        return -ENOMEM;
    return hostlist_fold(n->all, count, n->scratch, n->scratch_len, n->text, n->cap, &len, NULL);
}

typedef void show_group(const struct nodetable *t, const struct fold *f, const struct fold_group *g,
                        const char *names, void *out);

static int each_group(const struct nodetable *t, const struct fold_rule *rule, show_group *show,
                      void *out) {
    struct names names = {.all = calloc((size_t)t->count + 1, sizeof *names.all)};
    struct fold f = {0};
    int r = names.all == NULL ? -ENOMEM : fold_make(&f, t->count, rule);
    for (uint32_t i = 0; r == 0 && i < f.count; i++) {
        r = names_fold(&names, t, &f, &f.groups[i]);
        if (r == 0)
            show(t, &f, &f.groups[i], names.text, out);
    }
    fold_fini(&f);
    names_fini(&names);
    return r;
}

/* ---- tables ---- */

static const char *const *titles(const struct nodetable *t, bool folded) {
    static const char *all[TABLE_COLUMNS_MAX];
    static const char *const used[] = {USE_NODE_TITLES};
    unsigned n = 0;
    all[n++] = folded ? "NODES" : "NODE";
    if (folded)
        all[n++] = ">COUNT";
    all[n++] = "STATE";
    all[n++] = ">USED";
    all[n++] = ">PES";
    if (t->spec->switch_count > 0)
        all[n++] = "SWITCH";
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        all[n++] = used[i];
    if (folded && t->featured)
        all[n++] = "ATTRIBUTES";
    all[n++] = "SINCE";
    all[n++] = "JOBS";
    all[n++] = "REASON";
    all[n] = NULL;
    return all;
}

static void jobs_cell(struct table *out, const struct node_row *r) {
    char jobs[JOBS_TEXT_MAX];
    struct text t;
    text_init(&t, jobs, sizeof jobs);
    for (size_t at = 0; at < r->jobs.len; at += 4) {
        text_str(&t, at > 0 ? "," : "");
        text_u64(&t, load_le32(r->jobs.at + at));
    }
    table_whole(out, jobs);
}

/* What they do, all in the same way. */
static void state_cells(struct table *out, const struct nodetable *t, const struct node_row *r) {
    table_cell(out, "%s", node_state_name((enum node_state)r->state));
    table_cell(out, "%" PRIu32, r->used);
    table_cell(out, "%" PRIu32, r->pes);
    if (t->spec->switch_count > 0)
        table_cell(out, "%s", switch_of(t, r));
}

static void last_cells(struct table *out, const struct node_row *r, uint64_t since_ns) {
    table_cell(out, "%s", moment_of(since_ns).text);
    jobs_cell(out, r);
    table_cell(out, "%.*s%s%s", (int)r->reason.len, (const char *)r->reason.at,
               r->reason.len > 0 && is_owned(r) ? "; " : "", is_owned(r) ? "owner active" : "");
}

/* They all are in this state since the last of them is. */
static void add_group(const struct nodetable *t, const struct fold *f, const struct fold_group *g,
                      const char *names, void *to) {
    const struct nodeline *first = &t->lines[g->first];
    struct use_nodes use = {0};
    struct table *out = to;
    uint64_t since_ns = 0;
    FOLD_EACH (i, f, g) {
        const struct node_row *r = &t->lines[i].row;
        use_nodes_add(&use, r);
        since_ns = r->since_ns > since_ns ? r->since_ns : since_ns;
    }
    table_whole(out, names);
    table_cell(out, "%" PRIu32, g->count);
    state_cells(out, t, &first->row);
    use_nodes_cells(out, &use);
    if (t->featured)
        table_cell(out, "%.*s", (int)first->row.traits.len, (const char *)first->row.traits.at);
    last_cells(out, &first->row, since_ns);
}

int nodetable_print_folded(const struct nodetable *t, FILE *to) {
    struct fold_rule rule = {.context = t, .hash = hash_line, .alike = same_line};
    struct table out;
    table_init(&out, titles(t, true));
    int r = each_group(t, &rule, add_group, &out);
    table_print(&out, to);
    table_fini(&out);
    return r;
}

static void add_line(struct table *out, const struct nodetable *t, const struct node_row *r) {
    struct use_nodes use = {0};
    use_nodes_add(&use, r);
    table_cell(out, "%.*s", (int)r->name.len, (const char *)r->name.at);
    state_cells(out, t, r);
    use_nodes_cells(out, &use);
    last_cells(out, r, r->since_ns);
}

static void print_traits(const struct nodetable *t, const struct fold *f,
                         const struct fold_group *g, const char *names, void *to) {
    struct bytes traits = t->lines[g->first].row.traits;
    (void)f;
    fprintf(to, "%s: %.*s\n", names, (int)traits.len, (const char *)traits.at);
}

int nodetable_print_long(const struct nodetable *t, FILE *to) {
    struct fold_rule rule = {.context = t, .hash = hash_traits, .alike = same_traits};
    struct table out;
    table_init(&out, titles(t, false));
    for (uint32_t i = 0; i < t->count; i++)
        add_line(&out, t, &t->lines[i].row);
    table_print(&out, to);
    table_fini(&out);
    if (t->count > 0)
        fputc('\n', to);
    return each_group(t, &rule, print_traits, to);
}

/* ---- JSON ---- */

/* As an object: values are as people read and write them. */
static void add_traits(struct json *j, struct bytes traits) {
    struct bytes of, value;
    json_open(j, "attributes", '{');
    while (node_row_trait(&traits, &of, &value)) {
        char name[TRAITS_WORD_MAX];
        if (of.len >= sizeof name)
            break;
        memcpy(name, of.at, of.len);
        name[of.len] = '\0';
        json_text(j, name, value);
    }
    json_close(j, '}');
}

static void add_object(struct json *j, const struct nodetable *t, const struct node_row *r) {
    json_open(j, NULL, '{');
    json_text(j, "name", r->name);
    json_word(j, "state", node_state_name((enum node_state)r->state));
    json_number(j, "pes", r->pes);
    json_number(j, "used", r->used);
    if (nodespec_switch(t->spec, r->node) != NULL)
        json_word(j, "switch", nodespec_switch(t->spec, r->node));
    json_time(j, "since", r->since_ns);
    json_text(j, "reason", r->reason);
    if (r->owner != NODE_OWNER_NONE)
        json_word(j, "owner", node_owner_name((enum node_owner)r->owner));
    json_open(j, "jobs", '[');
    for (size_t at = 0; at < r->jobs.len; at += 4)
        json_number(j, NULL, load_le32(r->jobs.at + at));
    json_close(j, ']');
    use_node_json(j, r);
    add_traits(j, r->traits);
    json_close(j, '}');
}

void nodetable_print_json(const struct nodetable *t, FILE *to) {
    struct json j = {.out = to};
    json_open(&j, NULL, '[');
    for (uint32_t i = 0; i < t->count; i++)
        add_object(&j, t, &t->lines[i].row);
    json_close(&j, ']');
    fputc('\n', to);
}

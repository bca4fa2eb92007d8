/* SPDX-License-Identifier: MIT */
/* What jobs have used: see use.h. */
#include "cli/use.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/when.h"

struct amount {
    char text[UNITS_TEXT_MAX];
};

static struct amount time_of(uint64_t ns) {
    struct amount a;
    units_format_duration(ns, a.text, sizeof a.text);
    return a;
}

static struct amount size_of(uint64_t bytes) {
    struct amount a;
    units_format_size(bytes, a.text, sizeof a.text);
    return a;
}

static void add_where(struct text *t, struct bytes where) {
    if (where.len == 0)
        return;
    text_str(t, " on ");
    text_strn(t, (const char *)where.at, where.len);
}

static void add_memory(struct text *t, const struct usage *u, struct bytes peak_where,
                       struct bytes node_where) {
    text_str(t, ", up to ");
    text_str(t, size_of(u->peak_bytes).text);
    text_str(t, " of memory in one process");
    add_where(t, peak_where);
    if (u->node_bytes == 0)
        return;
    text_str(t, " and ");
    text_str(t, size_of(u->node_bytes).text);
    text_str(t, " in all");
    add_where(t, node_where);
}

void use_text(const struct usage *u, struct bytes peak_where, struct bytes node_where,
              char out[USE_TEXT_MAX]) {
    struct text t;
    text_init(&t, out, USE_TEXT_MAX);
    text_str(&t, time_of(u->user_ns + u->system_ns).text);
    text_str(&t, " of processors (");
    text_str(&t, time_of(u->user_ns).text);
    text_str(&t, " user, ");
    text_str(&t, time_of(u->system_ns).text);
    text_str(&t, " system)");
    add_memory(&t, u, peak_where, node_where);
    text_str(&t, ", ");
    text_str(&t, size_of(u->read_bytes).text);
    text_str(&t, " read from storage, ");
    text_str(&t, size_of(u->written_bytes).text);
    text_str(&t, " written");
}

static void json_seconds(struct json *j, const char *key, uint64_t ns) {
    json_decimal(j, key, (double)ns / (double)NS_PER_S, 6);
}

static void json_most(struct json *j, const char *key, uint64_t bytes, const char *where_key,
                      struct bytes where) {
    if (bytes == 0) {
        json_null(j, key);
        json_null(j, where_key);
        return;
    }
    json_number(j, key, bytes);
    json_text(j, where_key, where);
}

void use_json(struct json *j, const struct job_row *r) {
    if (!r->measured) {
        json_null(j, "usage");
        return;
    }
    bool over = state_over((enum job_state)r->state);
    json_open(j, "usage", '{');
    json_bool(j, "final", over);
    json_time(j, "as_of", r->measured_ns);
    if (!over)
        json_number(j, "running_nodes", r->measured_nodes);
    json_seconds(j, "user_s", r->usage.user_ns);
    json_seconds(j, "system_s", r->usage.system_ns);
    json_most(j, "process_memory", r->usage.peak_bytes, "process_memory_node", r->peak_where);
    json_most(j, "node_memory", r->usage.node_bytes, "node_memory_node", r->node_where);
    json_number(j, "read_bytes", r->usage.read_bytes);
    json_number(j, "written_bytes", r->usage.written_bytes);
    json_close(j, '}');
}

void use_cells(struct table *t, const struct job_row *r) {
    const struct usage *u = &r->usage;
    for (int i = 0; !r->measured && i < 4; i++)
        table_cell(t, "-");
    if (!r->measured)
        return;
    table_cell(t, "%s", time_of(u->user_ns + u->system_ns).text);
    table_cell(t, "%s", size_of(u->peak_bytes).text);
    table_cell(t, "%s", size_of(u->read_bytes).text);
    table_cell(t, "%s", size_of(u->written_bytes).text);
}

struct use_age use_age(const struct job_row *r) {
    struct use_age age = {""};
    uint64_t now = when_now();
    if (r->measured && !state_over((enum job_state)r->state))
        snprintf(age.text, sizeof age.text, "%s ago",
                 time_of(now > r->measured_ns ? now - r->measured_ns : 0).text);
    return age;
}

/* ---- nodes ---- */

static void widen(struct use_span *s, bool first, uint64_t value) {
    s->least = first || value < s->least ? value : s->least;
    s->most = first || value > s->most ? value : s->most;
}

void use_nodes_add(struct use_nodes *u, const struct node_row *r) {
    if (r->seen_ns == 0)
        return;
    bool first = u->told++ == 0;
    widen(&u->load_x100, first, r->load_x100);
    widen(&u->used, first, r->memory_used);
    widen(&u->memory, first, r->memory_bytes);
}

static struct amount load_of(uint64_t x100) {
    struct amount a;
    snprintf(a.text, sizeof a.text, "%" PRIu64 ".%02" PRIu64, x100 / 100, x100 % 100);
    return a;
}

/* The unit once if both have the same; one of them if they look the same. */
static void span_cell(struct table *t, const struct use_span *s,
                      struct amount (*text_of)(uint64_t)) {
    struct amount least = text_of(s->least), most = text_of(s->most);
    const char *unit = strchr(least.text, ' '), *other = strchr(most.text, ' ');
    bool one = unit != NULL && other != NULL && strcmp(unit, other) == 0;
    int len = one ? (int)(unit - least.text) : (int)strlen(least.text);
    if (strcmp(least.text, most.text) == 0)
        table_cell(t, "%s", most.text);
    else
        table_cell(t, "%.*s-%s", len, least.text, most.text);
}

void use_nodes_cells(struct table *t, const struct use_nodes *u) {
    if (u->told == 0) {
        for (int i = 0; i < 3; i++)
            table_cell(t, "-");
        return;
    }
    span_cell(t, &u->load_x100, load_of);
    span_cell(t, &u->used, size_of);
    span_cell(t, &u->memory, size_of);
}

void use_node_json(struct json *j, const struct node_row *r) {
    json_time(j, "seen", r->seen_ns);
    if (r->seen_ns == 0) {
        json_null(j, "load");
        json_null(j, "memory_used");
        json_null(j, "memory");
        return;
    }
    json_decimal(j, "load", (double)r->load_x100 / 100, 2);
    json_number(j, "memory_used", r->memory_used);
    json_number(j, "memory", r->memory_bytes);
}

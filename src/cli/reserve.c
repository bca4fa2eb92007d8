/* SPDX-License-Identifier: MIT */
/* storm reserve: nodes that are kept for some jobs for a while, or for nobody. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "cli/jobs.h"
#include "cli/listing.h"
#include "cli/nodes.h"
#include "cli/options.h"
#include "cli/when.h"

struct plan {
    const char *from, *name, *cancel, *cluster;
    uint64_t for_ns;
    bool json;
};

/* ---- showing ---- */

static void add_row(struct table *t, const struct reservation_row *r) {
    table_cell(t, "%.*s", (int)r->name.len, (const char *)r->name.at);
    table_cell(t, "%s", r->open ? "open" : "to come");
    table_cell(t, "%s", moment_of(r->from_ns).text);
    table_cell(t, "%s", moment_of(r->to_ns).text);
    table_cell(t, "%" PRIu32, r->waiting);
    table_cell(t, "%" PRIu32, r->running);
    table_cell(t, "%.*s", (int)r->node_list.len, (const char *)r->node_list.at);
}

static void add_json(struct json *j, const struct reservation_row *r) {
    json_open(j, NULL, '{');
    json_text(j, "name", r->name);
    json_bool(j, "open", r->open != 0);
    json_time(j, "start_time", r->from_ns);
    json_time(j, "end_time", r->to_ns);
    json_number(j, "nodes", r->nodes);
    json_text(j, "node_list", r->node_list);
    json_number(j, "waiting", r->waiting);
    json_number(j, "running", r->running);
    json_close(j, '}');
}

static int print(const struct contact_rows *rows, bool json) {
    static const char *const titles[] = {"NAME",     "STATE",    "FROM",  "UNTIL",
                                         ">WAITING", ">RUNNING", "NODES", NULL};
    struct reservation_row row;
    struct listing l;
    size_t at = 0;
    int r;
    listing_begin(&l, titles, json);
    while ((r = reservation_row_next(bytes_of(rows->at, rows->len), &at, &row)) == 1)
        if (json)
            add_json(&l.json, &row);
        else
            add_row(&l.table, &row);
    listing_end(&l, "no reservations");
    return r < 0 ? STATUS_STORM : STATUS_OK;
}

static int show(struct contact *c, bool json) {
    struct message_ask ask = {.subject = SUBJECT_RESERVATIONS};
    struct contact_rows rows = {0};
    int r = contact_ask(c, &ask, &rows);
    if (r == 0)
        r = print(&rows, json);
    free(rows.at);
    return r;
}

/* ---- changing ---- */

static int ask_for(struct contact *c, const struct message_reserve *m, const char *what) {
    struct contact_answer a;
    int r = contact_reserve(c, m, &a);
    if (r != 0)
        return r;
    if (a.code != ANSWER_DONE) {
        struct message_answer plain = {.code = a.code, .text = bytes_from_str(a.text)};
        return contact_refused(what, &plain);
    }
    if (!m->cancel)
        puts(a.text);
    if (!m->cancel && a.count > 0)
        fprintf(stderr,
                "storm: reserve: %" PRIu32 " %s there that may not be over when it begins; "
                "see: storm nodes\n",
                a.count, a.count == 1 ? "job runs" : "jobs run");
    return STATUS_OK;
}

static int make(struct contact *c, const struct plan *p, char **argv) {
    struct nodeset set = {0};
    struct message_reserve m = {.from_ns = when_now(), .nodes = &set};
    int r = when_option("--from", p->from, &m.from_ns);
    if (r != 0)
        return r;
    r = nodes_read(&c->cluster, "reserve", argv + 1, &set);
    m.to_ns = units_after(m.from_ns, p->for_ns);
    m.name = bytes_from_str(p->name != NULL ? p->name : "");
    if (r == 0)
        r = ask_for(c, &m, p->name != NULL ? p->name : "reserve");
    free(set.storage);
    return r;
}

static int check(const struct plan *p, int count) {
    if (p->cancel != NULL && (count > 0 || p->from != NULL || p->for_ns != 0 || p->name != NULL))
        return complain("reserve", "--cancel needs nothing but the name");
    if (count == 0 && (p->from != NULL || p->for_ns != 0 || p->name != NULL))
        return complain("reserve", "which nodes? see: storm nodes");
    if (count > 0 && p->for_ns == 0)
        return complain("reserve", "for how long? for example --from 14:00 --for 2h");
    const char *name = p->name != NULL ? p->name : p->cancel;
    if (name != NULL && (*name == '\0' || strlen(name) > RESERVATION_NAME_MAX))
        return complain("reserve", "a name has 1 to %d characters", RESERVATION_NAME_MAX);
    return 0;
}

static int act(const struct plan *p, int count, char **argv) {
    struct session_config callbacks = {.patience_ns = PATIENCE_ASKING};
    struct contact c;
    int r = contact_open(&c, p->cluster, &callbacks);
    if (r != 0)
        return r;
    if (p->cancel != NULL) {
        struct message_reserve m = {.cancel = true, .name = bytes_from_str(p->cancel)};
        r = ask_for(&c, &m, p->cancel);
    } else if (count > 0) {
        r = make(&c, p, argv);
    } else {
        r = show(&c, p->json);
    }
    contact_close(&c);
    return r;
}

int reserve_main(int argc, char **argv) {
    struct plan p = {0};
    const struct option table[] = {
        {"from", OPTION_TEXT, &p.from, "TIME", "when it begins: 14:05, tomorrow, +90m; else now"},
        {"for", OPTION_DURATION, &p.for_ns, "TIME", "how long: 90, 1:30:00, 2d"},
        {"name", OPTION_TEXT, &p.name, "NAME", "for --reservation of run, submit and alloc"},
        {"cancel", OPTION_TEXT, &p.cancel, "NAME", "take one back"},
        {"json", OPTION_FLAG, &p.json, NULL, "as one JSON list"},
        {"cluster", OPTION_TEXT, &p.cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm reserve [NODES --from TIME --for TIME] [OPTIONS]\n\n"
            "Keeps nodes for jobs that name the reservation (--reservation), or for nobody: before it\n"
            "nothing starts there that would not be over when it begins. Without nodes shows what is\n"
            "reserved.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    int r = check(&p, count);
    return r == 0 ? act(&p, count, argv) : r;
}

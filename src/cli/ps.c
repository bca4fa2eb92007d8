/* SPDX-License-Identifier: MIT */
/* storm ps: the jobs that wait and run. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/jobs.h"
#include "cli/listing.h"
#include "cli/options.h"
#include "cli/past.h"
#include "cli/pids.h"
#include "cli/swf.h"
#include "cli/use.h"
#include "cli/when.h"

enum { ROWS_SHOWN = 100 };

#define CENSUS_NS       (5 * NS_PER_S)
#define CENSUS_AGAIN_NS (250 * NS_PER_MS)

/* Of one that waits: when it will start, and why it has not. */
static const char *words_of(const struct job_row *r, char out[2 * WHEN_WORDS_MAX]) {
    char why[WHEN_WORDS_MAX];
    uint64_t now = when_now();
    const char *words = when_words(r->why, now, why);
    if (r->expected_ns == 0)
        snprintf(out, 2 * WHEN_WORDS_MAX, "%s", words);
    else
        snprintf(out, 2 * WHEN_WORDS_MAX, "by %s; %s", when_text(r->expected_ns, now).text, words);
    return out;
}

static void add_row(struct table *t, const struct job_row *r, bool all) {
    bool waits = r->state == STATE_QUEUED;
    char words[2 * WHEN_WORDS_MAX];
    struct bytes where = waits ? bytes_from_str(words_of(r, words)) : r->node_list;
    table_cell(t, "%" PRIu32, r->job);
    if (r->parent != 0)
        table_cell(t, "%" PRIu32 ".%.*s", r->parent, (int)r->name.len, (const char *)r->name.at);
    else
        table_cell(t, "%.*s", (int)r->name.len, (const char *)r->name.at);
    table_cell(t, "%s", state_name((enum job_state)r->state));
    table_cell(t, "%" PRIu32, r->procs);
    table_cell(t, "%" PRIu32, r->nodes);
    table_cell(t, "%s", job_duration(r).text);
    if (all) {
        use_cells(t, r);
        table_cell(t, "%s", use_age(r).text);
    }
    table_cell(t, "%.*s", (int)where.len, (const char *)where.at);
}

/* How they are shown. */
struct manner {
    bool json;
    bool wide; /* also what they have used */
};

static int print(const struct contact_rows *rows, struct manner m, bool all) {
    static const char *const titles[] = {">JOB",   "NAME",  "STATE", ">PROCS",
                                         ">NODES", ">TIME", "WHERE", NULL};
    static const char *const wide[] = {">JOB",  "NAME",     "STATE",    ">PROCS", ">NODES",
                                       ">TIME", USE_TITLES, "MEASURED", "WHERE",  NULL};
    struct job_row row;
    struct listing l;
    size_t at = 0;
    uint32_t count = 0;
    int r;
    listing_begin(&l, m.wide ? wide : titles, m.json);
    for (; (r = job_row_next(bytes_of(rows->at, rows->len), &at, &row)) == 1; count++)
        if (m.json)
            job_json(&l.json, &row);
        else
            add_row(&l.table, &row, m.wide);
    listing_end(&l, "no jobs");
    if (!m.json && count > 0 && count < rows->total)
        printf("%s %" PRIu32 " of %" PRIu32 " jobs; all with: storm ps %s--json\n",
               all ? "last" : "first", count, rows->total, all ? "-a " : "");
    return r < 0 ? STATUS_STORM : STATUS_OK;
}

/* The number behind the last row, for the next question. */
static uint32_t next_number(const struct contact_rows *rows) {
    struct job_row row;
    size_t at = 0;
    uint32_t next = 0;
    while (job_row_next(bytes_of(rows->at, rows->len), &at, &row) == 1)
        next = row.job + 1;
    return next;
}

static int fetch(struct contact *c, bool all, struct contact_rows *rows) {
    struct message_ask ask = {.subject = SUBJECT_JOBS, .most = all ? 0 : ROWS_SHOWN};
    int r = contact_ask(c, &ask, rows);
    uint32_t total = rows->total;
    while (r == 0 && all && !rows->last) {
        ask.job = next_number(rows);
        r = contact_ask(c, &ask, rows);
    }
    rows->total = total;
    return r;
}

static int fetch_some(struct contact *c, const struct joblist *l, struct contact_rows *rows) {
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < l->count; i++) {
        struct message_ask ask = {.subject = SUBJECT_JOB, .job = l->at[i], .most = 1};
        size_t before = rows->len;
        r = contact_ask(c, &ask, rows);
        if (r == 0 && rows->len == before) {
            complain(NULL, "there is no job %" PRIu32 "; see: storm ps", l->at[i]);
            r = STATUS_STORM;
        }
    }
    rows->total = l->count;
    return r;
}

/* Those that are over too. */
static int show_all(const char *cluster, struct manner m) {
    struct contact_rows rows = {0};
    int r = past_fetch(cluster, m.json ? 0 : ROWS_SHOWN, &rows);
    if (r == 0)
        r = print(&rows, m, true);
    free(rows.at);
    return r;
}

/* What has run, as a trace; whether the cluster runs or not. */
static int show_swf(const char *cluster, const struct joblist *l, uint64_t scale_x1000) {
    char folder[CLUSTER_PATH_MAX];
    const char *name = cluster_pick(cluster);
    struct contact_rows rows = {0};
    struct cluster_trouble trouble;
    struct cluster c = {0};
    struct swf swf;
    int r = past_fetch(cluster, 0, &rows);
    if (r != 0) {
        free(rows.at);
        return r;
    }
    if (cluster_folder(name, folder, sizeof folder) < 0 || cluster_load(&c, folder, &trouble) < 0)
        c = (struct cluster){0};
    struct swf_config config = {.only = l->count > 0 ? l : NULL,
                                .nodes = cluster_count(&c),
                                .node_pes = c.pes,
                                .scale_x1000 = scale_x1000};
    int e = swf_collect(&swf, bytes_of(rows.at, rows.len), &config);
    if (e == 0)
        swf_print(&swf, name, &config, stdout);
    else
        complain("ps", "%s", strerror(-e));
    swf_fini(&swf);
    cluster_free(&c);
    free(rows.at);
    return e == 0 ? STATUS_OK : STATUS_STORM;
}

static int show(const char *cluster, const struct joblist *l, struct manner m) {
    struct session_config callbacks = {.patience_ns = PATIENCE_ASKING};
    struct contact c;
    struct contact_rows rows = {0};
    int r = contact_open(&c, cluster, &callbacks);
    if (r != 0)
        return r;
    r = l->count > 0 ? fetch_some(&c, l, &rows) : fetch(&c, m.json, &rows);
    contact_close(&c);
    if (r == 0)
        r = print(&rows, m, false);
    free(rows.at);
    return r;
}

/* --pids: where the processes of a job are. */
struct census {
    struct contact contact;
    struct pids pids;
    bool refused;
    int status;
};

static struct census *census_of(struct contact *c) {
    return CONTAINER_OF(c, struct census, contact);
}

static void on_news(void *context, const struct message_news *n) {
    struct census *c = census_of(context);
    if (n->run != c->pids.run)
        pids_begin(&c->pids, n->run, n->procs);
}

static void on_pids(void *context, const struct message_pids *m) {
    pids_take(&census_of(context)->pids, m);
}

static void on_asked(void *context, const struct message_answer *a) {
    struct census *c = context;
    char what[24];
    if (a->code == ANSWER_DONE || c->refused)
        return;
    snprintf(what, sizeof what, "job %" PRIu32, a->job);
    c->refused = true;
    c->status = contact_refused(what, a);
}

/* Nodes that are away do not answer; those that have ended their part have nothing to say. */
static void count(struct census *c, uint32_t job) {
    struct loop *loop = &c->contact.loop;
    uint64_t end = clock_ns() + CENSUS_NS, again = 0;
    session_follow(c->contact.session, job, 0, false, on_asked, c);
    while (!c->refused && !c->contact.lost && !pids_complete(&c->pids) && clock_ns() < end) {
        if (clock_ns() >= again) {
            session_do(c->contact.session, job, VERB_PIDS, 0, on_asked, c);
            again = clock_ns() + CENSUS_AGAIN_NS;
        }
        loop_wake_at(loop, again < end ? again : end);
        session_turn(c->contact.session);
    }
}

static int print_pids(const struct pids *p, bool json) {
    static const char *const titles[] = {">RANK", "NODE", "HOST", ">PID", NULL};
    struct listing l;
    listing_begin(&l, titles, json);
    for (uint32_t rank = 0; rank < p->procs; rank++) {
        const struct pids_row *row = &p->rows[rank];
        if (row->pid == 0)
            continue;
        if (json) {
            json_open(&l.json, NULL, '{');
            json_number(&l.json, "rank", rank);
            json_word(&l.json, "node", row->node);
            json_word(&l.json, "host", row->host);
            json_number(&l.json, "pid", row->pid);
            json_close(&l.json, '}');
        } else {
            table_cell(&l.table, "%" PRIu32, rank);
            table_cell(&l.table, "%s", row->node);
            table_cell(&l.table, "%s", row->host);
            table_cell(&l.table, "%" PRIu32, row->pid);
        }
    }
    listing_end(&l, "no processes");
    if (pids_complete(p))
        return STATUS_OK;
    complain("ps",
             "%" PRIu32 " of %" PRIu32 " processes: the others have ended, or their nodes do "
             "not answer",
             pids_running(p), p->procs);
    return STATUS_STORM;
}

static int show_pids(const char *cluster, uint32_t job, bool json) {
    struct census c = {0};
    struct session_config callbacks = {
        .patience_ns = PATIENCE_ASKING, .news = on_news, .pids = on_pids};
    int r = contact_open(&c.contact, cluster, &callbacks);
    if (r != 0)
        return r;
    count(&c, job);
    contact_close(&c.contact);
    r = c.refused ? c.status : c.contact.lost ? STATUS_STORM : print_pids(&c.pids, json);
    pids_fini(&c.pids);
    return r;
}

int ps_main(int argc, char **argv) {
    bool all = false, swf = false, pids = false;
    struct manner m = {0};
    const char *cluster = NULL, *scale = NULL;
    uint64_t scale_x1000 = SWF_SCALE_ONE;
    struct joblist l = {0};
    const struct option table[] = {
        {"all,a", OPTION_FLAG, &all, NULL, "those that are over too, newest last"},
        {"long,l", OPTION_FLAG, &m.wide, NULL, "also what they have used"},
        {"pids", OPTION_FLAG, &pids, NULL, "the processes of a job: rank, node, process number"},
        {"json", OPTION_FLAG, &m.json, NULL, "as one JSON list"},
        {"swf", OPTION_FLAG, &swf, NULL, "those that are over, in the Standard Workload Format"},
        {"scale", OPTION_TEXT, &scale, "X", "--swf: times are X times as long, as before a replay"},
        {"cluster", OPTION_TEXT, &cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm ps [OPTIONS] [JOB...]\n\nShows the jobs that wait and run, or those that are named.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (scale != NULL && (!swf || !swf_scale(scale, &scale_x1000)))
        return complain("ps",
                        swf ? "--scale: \"%s\" will not do; for example --scale 60"
                            : "--scale %s is for --swf",
                        scale);
    if (swf && m.json)
        return complain("ps", "--swf or --json, not both");
    int r = count > 0 ? joblist_read(&l, "ps", argv + 1) : 0;
    if (r == 0 && pids && (l.count != 1 || swf || all))
        r = complain("ps", "--pids is of one job: storm ps --pids JOB");
    if (r == 0 && pids)
        r = show_pids(cluster, l.at[0], m.json);
    else if (r == 0 && swf)
        r = show_swf(cluster, &l, scale_x1000);
    else if (r == 0)
        r = all && l.count == 0 ? show_all(cluster, m) : show(cluster, &l, m);
    joblist_fini(&l);
    return r;
}

/* SPDX-License-Identifier: MIT */
/* storm policy: who starts when, shown and changed while the cluster runs. */
#include "cli/policy.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/contact.h"
#include "cli/listing.h"
#include "cli/options.h"
#include "os/companion.h"
#include "os/errand.h"
#include "sched/policies.h"
#include "wire/row.h"

#define QUANTUM_LEAST_NS (300 * NS_PER_US)
#define QUANTUM_MOST_NS  (3600 * NS_PER_S)

enum { NAMES_MAX = 16, DURATION_MAX = 32 };

/* ---- names ---- */

int policy_turns(const char *command, uint64_t *mpl, uint64_t *quantum_ns) {
    if (*mpl == POLICY_UNSAID)
        *mpl = 0;
    else if (*mpl < 1 || *mpl > STORM_SLOTS_MAX)
        return complain(command, "--mpl %" PRIu64 ": give 1 to %d", *mpl, STORM_SLOTS_MAX);
    if (*quantum_ns == POLICY_UNSAID)
        *quantum_ns = 0;
    else if (*quantum_ns < QUANTUM_LEAST_NS || *quantum_ns > QUANTUM_MOST_NS)
        return complain(command, "--quantum: give 300us to 1h");
    return 0;
}

static int unknown(const char *command, const char *typed) {
    const char *names[NAMES_MAX];
    uint32_t count = 0;
    const struct storm_policy *p;
    for (; count < NAMES_MAX && (p = policies_at(count)) != NULL; count++)
        names[count] = p->name;
    const char *near = nearest_name(typed, names, count);
    if (near != NULL)
        return complain(command, "there is no policy \"%s\"; did you mean %s?", typed, near);
    return complain(command,
                    "there is no policy \"%s\"; give fcfs, easy, easy-sjbf, conservative, "
                    "gang, gang-backfill, local, or a file with a / in it",
                    typed);
}

/* This program is static and cannot load anything: the manager's tries, and says what is wrong. */
static int try_file(const char *command, const char *path) {
    char program[PATH_MAX];
    if (companion_find("storm-mm", program, sizeof program) < 0)
        return 0;
    const char *argv[] = {program, "--try", path, NULL};
    struct errand e = {.argv = argv};
    int r = errand_run(&e);
    if (r < 0)
        return complain(command, "%s: %s", program, strerror(-r));
    return e.status == 0 ? 0 : STATUS_USAGE; /* it has complained */
}

int policy_name(const char *command, const char *typed, char *out, size_t cap) {
    char whole[PATH_MAX];
    if (strchr(typed, '/') == NULL) {
        if (policies_find(typed) == NULL)
            return unknown(command, typed);
        snprintf(out, cap, "%s", typed);
        return 0;
    }
    if (realpath(typed, whole) == NULL)
        return complain(command, "%s: %s", typed, strerror(errno));
    if (strlen(whole) >= cap || strchr(whole, '\n') != NULL)
        return complain(command, "%s: its path is too long", typed);
    memcpy(out, whole, strlen(whole) + 1);
    return try_file(command, whole);
}

/* ---- showing ---- */

static const char *duration(uint64_t ns, char text[DURATION_MAX]) {
    units_format_duration(ns, text, DURATION_MAX);
    return text;
}

static void show_turns(const struct policy_row *r) {
    char a[DURATION_MAX], b[DURATION_MAX];
    printf("\n%" PRIu32 " jobs share a processor at most, in turns of %s; now %" PRIu32 "%s\n",
           r->slots, duration(r->quantum_ns, a), r->rows, r->rows == 1 ? " does" : " do");
    if (r->samples == 0)
        return;
    printf("nodes switch within %s of each other (99 %%: %s), ", duration(r->skew_ns, a),
           duration(r->skew99_ns, b));
    printf("%s after the manager's word (99 %%: %s)\n", duration(r->reach_ns, a),
           duration(r->reach99_ns, b));
    if (r->missed > 0)
        printf("%" PRIu64 " of its words were missed\n", r->missed);
    if (r->unwhole != NO_NODE)
        puts("without cgroups jobs are switched by stopping their processes: from 10ms up");
    if (r->unprompt != NO_NODE)
        puts("without real-time priority turns are punctual from 10ms up");
}

static void add_row(struct table *t, const struct policy_row *r) {
    table_cell(t, "%s", r->chosen ? "*" : "");
    table_cell(t, "%.*s", (int)r->name.len, (const char *)r->name.at);
    table_cell(t, "%.*s", (int)r->words.len, (const char *)r->words.at);
}

static void add_json(struct json *j, const struct policy_row *r) {
    json_open(j, NULL, '{');
    json_text(j, "name", r->name);
    json_text(j, "words", r->words);
    json_bool(j, "chosen", r->chosen);
    json_bool(j, "shares_time", r->sliced);
    if (r->chosen) {
        json_number(j, "mpl", r->slots);
        json_number(j, "quantum_ns", r->quantum_ns);
        json_number(j, "rows", r->rows);
        json_text(j, "fault", r->fault);
        json_number(j, "samples", r->samples);
        json_number(j, "skew_ns", r->skew_ns);
        json_number(j, "skew_p99_ns", r->skew99_ns);
        json_number(j, "reach_ns", r->reach_ns);
        json_number(j, "reach_p99_ns", r->reach99_ns);
        json_number(j, "missed", r->missed);
        json_bool(j, "real_time", r->unprompt == NO_NODE);
        json_bool(j, "cgroups", r->unwhole == NO_NODE);
    }
    json_close(j, '}');
}

static int print(const struct contact_rows *rows, bool json) {
    static const char *const titles[] = {"", "POLICY", "WHAT IT DOES", NULL};
    struct policy_row row, chosen = {0};
    struct listing l;
    size_t at = 0;
    int r;
    listing_begin(&l, titles, json);
    while ((r = policy_row_next(bytes_of(rows->at, rows->len), &at, &row)) == 1) {
        if (json)
            add_json(&l.json, &row);
        else
            add_row(&l.table, &row);
        if (row.chosen)
            chosen = row;
    }
    listing_end(&l, NULL);
    if (!json && (chosen.sliced || chosen.rows > 1))
        show_turns(&chosen);
    if (!json && chosen.fault.len > 0)
        printf("\n%.*s\n", (int)chosen.fault.len, (const char *)chosen.fault.at);
    return r < 0 ? STATUS_STORM : STATUS_OK;
}

static int show(struct contact *c, bool json) {
    struct message_ask ask = {.subject = SUBJECT_POLICIES};
    struct contact_rows rows = {0};
    int r = contact_ask(c, &ask, &rows);
    if (r == 0)
        r = print(&rows, json);
    free(rows.at);
    return r;
}

/* ---- changing ---- */

struct change {
    const char *name; /* NULL: the same */
    uint64_t mpl, quantum_ns;
};

static int check(struct change *w) {
    if (w->name != NULL && *w->name == '\0')
        return complain("policy", "which one? storm policy tells which there are");
    if (w->name != NULL && strchr(w->name, '/') != NULL)
        return complain("policy",
                        "%s: a file is loaded when the cluster is brought up: storm up "
                        "--policy FILE; give its policy's name here",
                        w->name);
    return policy_turns("policy", &w->mpl, &w->quantum_ns);
}

static int change(struct contact *c, const struct change *w) {
    struct contact_answer a;
    struct nodeset none;
    uint64_t storage[4] = {0};
    nodeset_init(&none, 1, storage);
    struct message_act m = {.verb = VERB_POLICY,
                            .value = (uint32_t)w->mpl,
                            .more = (uint32_t)(w->quantum_ns / NS_PER_US),
                            .nodes = &none};
    if (w->name != NULL)
        m.text = bytes_from_str(w->name);
    int r = contact_act(c, &m, &a);
    if (r != 0 || a.code == ANSWER_DONE)
        return r;
    struct message_answer plain = {.code = a.code, .text = bytes_from_str(a.text)};
    return contact_refused(w->name != NULL ? w->name : "policy", &plain);
}

int policy_main(int argc, char **argv) {
    bool json = false;
    const char *cluster = NULL;
    struct change w = {.mpl = POLICY_UNSAID, .quantum_ns = POLICY_UNSAID};
    const struct option table[] = {
        {"quantum", OPTION_DURATION, &w.quantum_ns, "T", "of turns, where jobs share processors"},
        {"mpl", OPTION_NUMBER, &w.mpl, "N", "jobs that share a processor at most, if they do"},
        {"json", OPTION_FLAG, &json, NULL, "as one JSON list"},
        {"cluster", OPTION_TEXT, &cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm policy [NAME] [OPTIONS]\n\n"
            "Shows which scheduling policies there are and how it goes, or changes to another: the\n"
            "jobs stay as they are.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count > 1)
        return complain("policy", "what is \"%s\" for? one name is enough", argv[2]);
    w.name = count == 1 ? argv[1] : NULL;
    int r = check(&w);
    struct session_config callbacks = {.patience_ns = PATIENCE_ASKING};
    struct contact c;
    if (r == 0)
        r = contact_open(&c, cluster, &callbacks);
    if (r != 0)
        return r;
    bool changes = w.name != NULL || w.mpl > 0 || w.quantum_ns > 0;
    if (changes)
        r = change(&c, &w);
    if (r == 0 && (!changes || json))
        r = show(&c, json);
    contact_close(&c);
    return r;
}

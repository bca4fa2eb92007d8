/* SPDX-License-Identifier: MIT */
/* storm show: one job in full. storm why: why it waits, in words. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "cli/jobs.h"
#include "cli/options.h"
#include "cli/use.h"
#include "cli/when.h"

static void line(const char *key, struct bytes text) {
    if (text.len > 0)
        printf("%-10s %.*s\n", key, (int)text.len, (const char *)text.at);
}

static void word(const char *key, const char *text) {
    line(key, bytes_from_str(text));
}

static void print_flags(uint32_t flags) {
    static const struct {
        uint32_t flag;
        const char *words;
    } names[] = {{JOB_DETACHED, "goes on without its client"},
                 {JOB_REQUEUE, "starts again when a node is lost"},
                 {JOB_BAD_EXIT, "a nonzero status ends it"},
                 {JOB_EXCLUSIVE, "shares no node"},
                 {JOB_SCRIPT, "a script, on its first node"},
                 {JOB_LENT, "lent: who waits for its processors can have them back"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (flags & names[i].flag)
            word("", names[i].words);
}

static void print_use(const struct job_row *r) {
    char used[USE_TEXT_MAX];
    if (!r->measured)
        return;
    use_text(&r->usage, r->peak_where, r->node_where, used);
    word("used", used);
    if (!state_over((enum job_state)r->state))
        word("", use_age(r).text);
}

static void print_job(const struct job_row *r) {
    char text[96], words[WHEN_WORDS_MAX];
    snprintf(text, sizeof text, "%" PRIu32, r->job);
    word("job", text);
    line("name", r->name);
    word("state", state_name((enum job_state)r->state));
    word("why", when_words(r->why, when_now(), words));
    if (r->expected_ns != 0)
        word("expected", moment_of(r->expected_ns).text);
    line("inside", r->reservation);
    if (r->parent != 0) {
        snprintf(text, sizeof text, "%" PRIu32, r->parent);
        word("host of", text);
    }
    if (r->hosts != 0) {
        snprintf(text, sizeof text, "%" PRIu32, r->hosts);
        word("hosts", text);
    }
    snprintf(text, sizeof text,
             "%" PRIu32 " processes on %" PRIu32 " nodes, at most %" PRIu32 " each", r->procs,
             r->nodes, r->ppn);
    word("size", text);
    line("nodes", r->node_list);
    word("submitted", moment_of(r->submitted_ns).text);
    if (r->begin_ns != 0)
        word("not before", moment_of(r->begin_ns).text);
    word("started", moment_of(r->started_ns).text);
    word("ended", moment_of(r->ended_ns).text);
    word("ran", job_duration(r).text);
    print_use(r);
    if (r->limit_ns != 0) {
        units_format_duration(r->limit_ns, text, sizeof text);
        word("limit", text);
    }
    snprintf(text, sizeof text, "%" PRId32, r->priority);
    word("priority", text);
    if (state_over((enum job_state)r->state)) {
        snprintf(text, sizeof text, "%" PRIu32, r->status);
        word("status", text);
    }
    print_flags(r->flags);
}

static void print_why(const struct job_row *r) {
    char words[WHEN_WORDS_MAX];
    printf("job %" PRIu32 " is %s", r->job, state_name((enum job_state)r->state));
    if (r->why.len > 0)
        printf(": %s\n", when_words(r->why, when_now(), words));
    else if (r->state == STATE_RUNNING)
        printf(" on %.*s\n", (int)r->node_list.len, (const char *)r->node_list.at);
    else
        putchar('\n');
    if (r->expected_ns != 0)
        printf("expected to start by %s\n", when_text(r->expected_ns, when_now()).text);
}

static int show(const char *cluster, const char *command, const char *typed, bool json) {
    struct session_config callbacks = {.patience_ns = PATIENCE_ASKING};
    bool why = command[0] == 'w';
    struct contact c;
    struct contact_rows rows;
    struct job_row row;
    uint32_t job;
    int r = contact_job(command, typed, &job);
    if (r == 0)
        r = contact_open(&c, cluster, &callbacks);
    if (r != 0)
        return r;
    r = job_fetch(&c, job, why ? SUBJECT_WHY : SUBJECT_JOB, &rows, &row);
    contact_close(&c);
    if (r == 0 && json) {
        struct json j = {.out = stdout};
        job_json(&j, &row);
        putchar('\n');
    } else if (r == 0 && why) {
        print_why(&row);
    } else if (r == 0) {
        print_job(&row);
    }
    free(rows.at);
    return r;
}

int show_main(int argc, char **argv) {
    bool json = false, why = argv[0][0] == 'w';
    const char *cluster = NULL;
    const struct option table[] = {
        {"json", OPTION_FLAG, &json, NULL, "as one JSON object"},
        {"cluster", OPTION_TEXT, &cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(why ? "usage: storm why [OPTIONS] JOB\n\nSays why a job waits, or what became of it."
                 : "usage: storm show [OPTIONS] JOB\n\nShows one job in full.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count != 1)
        return complain(argv[0], "one job, please; see: storm ps");
    return show(cluster, argv[0], argv[1], json);
}

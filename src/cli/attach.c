/* SPDX-License-Identifier: MIT */
/* storm attach: the output of a job that runs already, from what nobody has taken on. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "cli/follow.h"

static void on_attached(void *context, const struct message_answer *a) {
    struct follow *f = context;
    if (f->done)
        return;
    if (a->code == ANSWER_DONE) {
        output_gather(f->output);
        return;
    }
    char job[24];
    snprintf(job, sizeof job, "job %" PRIu32, f->job);
    f->status = contact_refused(job, a);
    f->done = true;
}

/* Debuggers want to know which program it is. */
static void on_spec(void *context, const struct message_rows *m) {
    struct follow *f = context;
    struct spec spec;
    if (f->done)
        return;
    if (m->rows.len > 0 && spec_decode(m->rows, &spec) == 0)
        snprintf(f->debug.file, sizeof f->debug.file, "%.*s", (int)spec.program.len,
                 (const char *)spec.program.at);
    f->debug.program = f->debug.file;
    session_follow(f->contact.session, f->job, 1, false, on_attached, f);
}

static int attach(struct follow *f, const struct wish *w, const char *typed) {
    uint32_t job;
    int r = contact_job("attach", typed, &job);
    if (r == 0)
        r = contact_find(&f->contact.cluster, w->cluster);
    if (r == 0)
        r = follow_connect(f, w);
    if (r == 0)
        r = follow_begin(f, NULL);
    if (r != 0)
        return r;
    signal(SIGPIPE, SIG_IGN);
    f->job = job;
    f->keep = true;
    output_job(f->output, job);
    if (f->debug.asked) {
        struct message_ask ask = {.subject = SUBJECT_SPEC, .job = job, .most = 1};
        session_ask(f->contact.session, &ask, on_spec, f);
    } else {
        session_follow(f->contact.session, job, 1, false, on_attached, f);
    }
    return follow_until_over(f);
}

int attach_main(int argc, char **argv) {
    struct wish w = {0};
    bool debug = false;
    const struct option table[] = {
        {"label,l", OPTION_FLAG, &w.label, NULL, "each line behind its rank"},
        {"output,o", OPTION_TEXT, &w.output, "FILE", "%j job, %r rank, %n node"},
        {"error,e", OPTION_TEXT, &w.error, "FILE", "errors; otherwise with the output"},
        {"debug", OPTION_FLAG, &debug, NULL, "tell when debuggers can find its processes here"},
        {"cluster", OPTION_TEXT, &w.cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm attach [OPTIONS] JOB\n\n"
            "Shows the output of a job that runs, from what nobody has taken yet, and waits for its\n"
            "end. Ctrl-C leaves it alone again.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count != 1)
        return complain("attach", "to which job? see: storm ps");
    struct follow *f = calloc(1, sizeof *f);
    if (f == NULL)
        return STATUS_STORM;
    f->began_ns = clock_ns();
    f->debug.asked = debug;
    int status = attach(f, &w, argv[1]);
    cluster_free(&f->contact.cluster);
    free(f);
    return status;
}

/* SPDX-License-Identifier: MIT */
/* storm kill, suspend, resume: something is done with jobs. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "cli/jobs.h"
#include "cli/options.h"

/* Bytes of numbers of jobs in one request: the manager logs every one. */
enum { PORTION = 512 * 4 };

/* "9", "KILL", "SIGKILL"; 0 if there is none. */
static int signal_number(const char *text) {
    uint64_t number;
    if (options_number(text, &number))
        return number < (uint64_t)SIGRTMAX ? (int)number : 0;
    if (strncmp(text, "SIG", 3) == 0)
        text += 3;
    for (int i = 1; i < SIGRTMIN; i++) {
        const char *name = sigabbrev_np(i);
        if (name != NULL && strcmp(name, text) == 0)
            return i;
    }
    return 0;
}

static int act(const char *cluster, struct message_act *m, const struct joblist *l) {
    struct session_config callbacks = {.patience_ns = PATIENCE_ASKING};
    struct contact c;
    struct contact_answer a;
    char what[24];
    int r = contact_open(&c, cluster, &callbacks);
    if (r != 0)
        return r;
    struct bytes jobs = joblist_bytes(l);
    a.code = ANSWER_DONE;
    for (size_t at = 0; at < jobs.len && r == 0 && a.code == ANSWER_DONE; at += PORTION) {
        size_t left = jobs.len - at;
        m->jobs = bytes_of(jobs.at + at, left < PORTION ? left : PORTION);
        r = contact_act(&c, m, &a);
    }
    contact_close(&c);
    free((void *)jobs.at);
    if (r != 0 || a.code == ANSWER_DONE)
        return r;
    snprintf(what, sizeof what, "job %" PRIu32, a.job != 0 ? a.job : l->at[0]);
    struct message_answer plain = {.code = a.code, .text = bytes_from_str(a.text)};
    return contact_refused(what, &plain);
}

static int run(int argc, char **argv, const struct option *table, const char *words,
               struct message_act *m, const char **cluster, const char **signal) {
    struct joblist l;
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        printf("usage: storm %s [OPTIONS] JOB...\n\n%s\n", argv[0], words);
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (*signal != NULL) {
        int number = signal_number(*signal);
        if (number == 0)
            return complain(argv[0], "\"%s\" is no signal; for example -s INT", *signal);
        m->verb = number == SIGKILL ? VERB_KILL : VERB_SIGNAL;
        m->value = (uint32_t)number;
    }
    int r = joblist_read(&l, argv[0], argv + 1);
    if (r == 0)
        r = act(*cluster, m, &l);
    joblist_fini(&l);
    return r;
}

int kill_main(int argc, char **argv) {
    const char *cluster = NULL, *signal = NULL;
    struct message_act m = {.verb = VERB_END, .value = SIGTERM};
    const struct option table[] = {
        {"signal,s", OPTION_TEXT, &signal, "SIG", "send this signal only: INT, 10"},
        {"cluster", OPTION_TEXT, &cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    return run(
        argc, argv, table,
        "Ends jobs: their processes get SIGTERM, and SIGKILL if they are still there 5 s later.",
        &m, &cluster, &signal);
}

static int plain(int argc, char **argv, enum verb verb, const char *words) {
    const char *cluster = NULL, *signal = NULL;
    struct message_act m = {.verb = (uint8_t)verb};
    const struct option table[] = {
        {"cluster", OPTION_TEXT, &cluster, "NAME", "which; otherwise STORM_CLUSTER"}, {0}};
    return run(argc, argv, table, words, &m, &cluster, &signal);
}

int suspend_main(int argc, char **argv) {
    return plain(argc, argv, VERB_SUSPEND, "Stops all processes of jobs where they are.");
}

int resume_main(int argc, char **argv) {
    return plain(argc, argv, VERB_RESUME, "Lets suspended jobs go on.");
}

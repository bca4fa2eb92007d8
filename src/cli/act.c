/* SPDX-License-Identifier: MIT */
/* storm kill, suspend, resume: something is done with jobs. */
#include <errno.h>
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

/* "0,3-5": the signal goes to these alone. */
static int read_ranks(const char *text, const char *command, uint8_t out[RANKS_BYTES_MAX],
                      struct message_act *m) {
    int r = ranks_parse(text, out, &m->ranks);
    if (r == -E2BIG)
        return complain(command, "--ranks: more than %d ranges; send it in parts",
                        RANKS_RANGES_MAX);
    if (r < 0)
        return complain(command, "--ranks: \"%.40s\" is no list of ranks; for example 0,3-5", text);
    m->verb = VERB_SIGNAL;
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

/* What was said beside the jobs; each may be NULL. */
struct words {
    const char *cluster, *signal, *ranks;
};

static int run(int argc, char **argv, const struct option *table, const char *words,
               struct message_act *m, const struct words *w) {
    struct joblist l;
    uint8_t ranks[RANKS_BYTES_MAX];
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        printf("usage: storm %s [OPTIONS] JOB...\n\n%s\n", argv[0], words);
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (w->signal != NULL) {
        int number = signal_number(w->signal);
        if (number == 0)
            return complain(argv[0], "\"%s\" is no signal; for example -s INT", w->signal);
        m->verb = number == SIGKILL ? VERB_KILL : VERB_SIGNAL;
        m->value = (uint32_t)number;
    }
    int r = w->ranks != NULL ? read_ranks(w->ranks, argv[0], ranks, m) : 0;
    if (r != 0)
        return r;
    r = joblist_read(&l, argv[0], argv + 1);
    if (r == 0)
        r = act(w->cluster, m, &l);
    joblist_fini(&l);
    return r;
}

int kill_main(int argc, char **argv) {
    struct words w = {0};
    struct message_act m = {.verb = VERB_END, .value = SIGTERM};
    const struct option table[] = {
        {"signal,s", OPTION_TEXT, &w.signal, "SIG", "send this signal only: INT, 10"},
        {"ranks", OPTION_TEXT, &w.ranks, "LIST", "a signal to these processes only: 0,3-5"},
        {"cluster", OPTION_TEXT, &w.cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    return run(
        argc, argv, table,
        "Ends jobs: their processes get SIGTERM, and SIGKILL if they are still there 5 s later.\n"
        "With -s or --ranks nothing but that signal (SIGTERM) is sent.",
        &m, &w);
}

static int plain(int argc, char **argv, enum verb verb, const char *words) {
    struct words w = {0};
    struct message_act m = {.verb = (uint8_t)verb};
    const struct option table[] = {
        {"cluster", OPTION_TEXT, &w.cluster, "NAME", "which; otherwise STORM_CLUSTER"}, {0}};
    return run(argc, argv, table, words, &m, &w);
}

int suspend_main(int argc, char **argv) {
    return plain(argc, argv, VERB_SUSPEND, "Stops all processes of jobs where they are.");
}

int resume_main(int argc, char **argv) {
    return plain(argc, argv, VERB_RESUME, "Lets suspended jobs go on.");
}

/* SPDX-License-Identifier: MIT */
/* storm down: ends a cluster. Jobs are ended first; then the watcher ends the daemons, and the sweeper
 * takes away what is left. A manager that does not answer delays this by a few seconds. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/options.h"
#include "cli/pulse.h"
#include "cli/terminal.h"
#include "os/claim.h"
#include "os/loop.h"
#include "os/remains.h"
#include "os/watch.h"

/* For the manager to answer; for jobs that ignore SIGTERM to be killed. */
#define ANSWER_NS (3 * NS_PER_S)
#define JOBS_NS   (20 * NS_PER_S)
#define ASK_NS    (20 * NS_PER_MS)

static void print_help(const struct option *table) {
    puts(
        "usage: storm down [--keep-jobs] [--cluster NAME]\n"
        "\n"
        "Ends a cluster: its jobs first, then its daemons. What it must remember and its log stay.\n"
        "Returns when nothing of it is left.\n");
    options_print(table, stdout);
}

/* Asks the manager to end all jobs and waits until it has. Gives up on one that does not answer. */
static void end_jobs(struct pulse *p) {
    struct cluster_row row;
    uint64_t until = clock_ns() + JOBS_NS;
    bool answers = pulse_stop(p, clock_ns() + ANSWER_NS);
    while (answers && clock_ns() < until && pulse_ask(p, clock_ns() + ANSWER_NS, &row) &&
           row.running > 0) {
        char words[64];
        snprintf(words, sizeof words, "%" PRIu32 " jobs are ending", row.running);
        terminal_progress(words);
        pulse_rest(p, ASK_NS);
    }
    terminal_progress(NULL);
}

static int refuse(const char *name, const struct cluster_row *row) {
    complain(name, "%" PRIu32 " jobs run and %" PRIu32 " wait; leave --keep-jobs out to end them",
             row->running, row->queued);
    return STATUS_STORM;
}

static int end_well(const char *name, const char *folder, bool keep_jobs) {
    struct cluster cluster;
    struct cluster_trouble trouble;
    struct cluster_row row;
    int status = STATUS_OK;
    if (cluster_load(&cluster, folder, &trouble) < 0)
        return STATUS_OK; /* then it can only be ended */
    struct pulse *p = pulse_new(&cluster);
    bool answers = p != NULL && pulse_ask(p, clock_ns() + ANSWER_NS, &row);
    if (!answers && keep_jobs) {
        complain(name, "its manager does not say whether there are jobs; leave --keep-jobs out");
        status = STATUS_STORM;
    } else if (!answers) {
        complain(name, "its manager does not answer; its daemons are ended all the same");
    } else if (keep_jobs && row.running + row.queued > 0) {
        status = refuse(name, &row);
    } else {
        end_jobs(p);
    }
    pulse_free(p);
    return status;
}

/* What a crash may have left. */
static void sweep(const char *folder) {
    int claim = claim_take(folder);
    if (claim < 0)
        return;
    remains_folder(folder);
    claim_remove(folder);
    close(claim);
}

static int bring_down(const char *name, const char *folder, bool keep_jobs) {
    struct claim_holder holder;
    int r = claim_look(folder, &holder);
    if (r == 0) {
        sweep(folder);
        printf("storm: no cluster %s runs\n", name);
        return STATUS_OK;
    }
    int status = r < 0 ? STATUS_OK : end_well(name, folder, keep_jobs);
    if (status != STATUS_OK)
        return status;
    if (r > 0)
        r = watch_end(folder);
    if (r < 0) {
        complain(name, "it cannot be ended: %s", strerror(-r));
        return STATUS_STORM;
    }
    printf("storm: cluster %s is down\n", name);
    return STATUS_OK;
}

int down_main(int argc, char **argv) {
    bool keep_jobs = false;
    const char *asked = NULL;
    char folder[CLUSTER_PATH_MAX];
    const struct option table[] = {
        {"keep-jobs", OPTION_FLAG, &keep_jobs, NULL, "not if there are jobs"},
        {"cluster", OPTION_TEXT, &asked, "NAME", "its name (default: STORM_CLUSTER, or local)"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        print_help(table);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count > 0)
        return complain("down", "what is \"%s\" for? leave it out", argv[1]);
    const char *name = cluster_pick(asked);
    int r = cluster_folder(name, folder, sizeof folder);
    if (r < 0)
        return complain(name, "%s", strerror(-r));
    return bring_down(name, folder, keep_jobs);
}

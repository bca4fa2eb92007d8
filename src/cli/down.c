/* SPDX-License-Identifier: MIT */
/* storm down: ends a cluster. Jobs are ended first; then the watcher ends the daemons, and the sweeper
 * takes away what is left. A manager that does not answer delays this by a few seconds. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/contact.h"
#include "cli/down.h"
#include "cli/hosting.h"
#include "cli/options.h"
#include "cli/pulse.h"
#include "cli/terminal.h"
#include "cli/turnout.h"
#include "os/claim.h"
#include "os/files.h"
#include "os/loop.h"
#include "os/remains.h"
#include "os/watch.h"

/* For the manager to answer; for jobs that ignore SIGTERM to be killed. */
#define ANSWER_NS (3 * NS_PER_S)
#define JOBS_NS   (20 * NS_PER_S)
#define ASK_NS    (20 * NS_PER_MS)

/* For the next host to end. */
#define HOST_NS (90 * NS_PER_S)

static void print_help(const struct option *table) {
    puts(
        "usage: storm down [--keep-jobs] [--cluster NAME]\n"
        "\n"
        "Ends a cluster: its jobs first, then its daemons, on all its hosts, where nothing is left. What it\n"
        "must remember and its log stay. Hosts that cannot be reached are named.\n"
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
    struct session_other other;
    struct pulse *p = pulse_new(&cluster);
    bool answers = p != NULL && pulse_ask(p, clock_ns() + ANSWER_NS, &row);
    if (!answers && keep_jobs) {
        complain(name, "its manager does not say whether there are jobs; leave --keep-jobs out");
        status = STATUS_STORM;
    } else if (!answers && p != NULL && pulse_other(p, &other)) {
        contact_other(name, &other, "its daemons are ended all the same");
    } else if (!answers) {
        complain(name, "its manager does not answer; its daemons are ended all the same");
    } else if (keep_jobs && row.running + row.queued > 0) {
        status = refuse(name, &row);
    } else {
        end_jobs(p);
    }
    pulse_free(p);
    cluster_free(&cluster);
    return status;
}

/* ---- hosts ---- */

static bool is_there(const char *folder, const char *name) {
    char path[CLUSTER_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static uint32_t count_left(const struct turnout *t) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < t->capacity; i++)
        left += t->at[i].state == TURNOUT_UP || t->at[i].state == TURNOUT_TRYING;
    return left;
}

/* The tender ends them; it says so when there is none left. */
static void await_hosts(const char *folder, struct turnout *t) {
    struct claim_holder holder;
    uint32_t last = UINT32_MAX;
    uint64_t until = clock_ns() + HOST_NS;
    while (!is_there(folder, TENDER_ENDED) && clock_ns() < until &&
           claim_look(folder, &holder) == 1) {
        char words[64];
        struct timespec moment = {.tv_nsec = (long)ASK_NS};
        nanosleep(&moment, NULL);
        turnout_read(t, folder);
        uint32_t left = count_left(t);
        if (left != last)
            until = clock_ns() + HOST_NS;
        last = left;
        snprintf(words, sizeof words, "%" PRIu32 " hosts are ending", left);
        terminal_progress(words);
    }
    terminal_progress(NULL);
    turnout_read(t, folder);
}

/* How many there are that could not be ended: they are named. */
static uint32_t name_failed(const struct turnout *t) {
    uint32_t failed = 0;
    for (uint32_t i = 0; i < t->capacity; i++) {
        if (t->at[i].state == TURNOUT_NONE || t->at[i].state == TURNOUT_ENDED)
            continue;
        failed++;
        complain(t->at[i].name, "it could not be ended: %s", t->at[i].words);
    }
    return failed;
}

/* How many could not be ended; UINT32_MAX: the tender does not do it. */
static uint32_t end_hosts(const struct cluster *c, const char *folder) {
    char path[CLUSTER_PATH_MAX + 16];
    struct turnout t;
    uint32_t failed = UINT32_MAX;
    snprintf(path, sizeof path, "%s/" TENDER_ENDING, folder);
    int r = turnout_init(&t, c->nodes);
    r = r < 0 ? r : files_replace(path, bytes_of(NULL, 0));
    if (r < 0)
        complain(path, "%s", strerror(-r));
    else
        await_hosts(folder, &t);
    if (r == 0 && is_there(folder, TENDER_ENDED))
        failed = name_failed(&t);
    turnout_free(&t);
    return failed;
}

/* After a crash nobody is left who could do it: then we do. */
uint32_t down_forsaken(const char *name, const char *folder) {
    static struct tender_config config;
    struct cluster cluster;
    if (!is_there(folder, TENDER_BERTHS))
        return 0;
    if (tender_load(&config, folder, &cluster) < 0) {
        complain(
            name,
            "there may be something left on its hosts, but how they were reached cannot be read; "
            "look there, then remove %s/" TENDER_BERTHS,
            folder);
        return 1;
    }
    uint32_t failed = reach_helper(&config.reach, "down") != 0 ? 1 : 0;
    return failed != 0 ? failed : (uint32_t)tender_end(&config, &cluster);
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

static int bring_down_nothing(const char *name, const char *folder) {
    uint32_t failed = down_forsaken(name, folder);
    sweep(folder);
    hosting_forget(folder, failed == 0);
    printf("storm: no cluster %s runs\n", name);
    return failed == 0 ? STATUS_OK : STATUS_FAILED;
}

/* As end_hosts. A cluster of virtual nodes may have had hosts in a former life, and nobody tends those now. */
static uint32_t end_its_hosts(const char *folder) {
    struct cluster cluster;
    struct cluster_trouble trouble;
    if (!is_there(folder, TENDER_WORDS) || cluster_load(&cluster, folder, &trouble) < 0)
        return is_there(folder, TENDER_BERTHS) ? UINT32_MAX : 0;
    uint32_t failed = cluster.port_first != 0 ? end_hosts(&cluster, folder) : UINT32_MAX;
    cluster_free(&cluster);
    return failed;
}

/* What makes it known here is not ours to take away. */
int down_cluster(const char *name, const char *folder, bool keep_jobs) {
    struct claim_holder holder;
    if (cluster_folder_is_elsewhere(folder)) {
        complain(name, "it was brought up on another machine, and is ended there");
        return STATUS_STORM;
    }
    int r = claim_look(folder, &holder);
    if (r == 0)
        return bring_down_nothing(name, folder);
    int status = r < 0 ? STATUS_OK : end_well(name, folder, keep_jobs);
    if (status != STATUS_OK)
        return status;
    uint32_t failed = r > 0 ? end_its_hosts(folder) : 0;
    if (r > 0)
        r = watch_end(folder);
    if (r < 0) {
        complain(name, "it cannot be ended: %s", strerror(-r));
        return STATUS_STORM;
    }
    if (failed == UINT32_MAX)
        failed = down_forsaken(name, folder);
    hosting_forget(folder, failed == 0);
    printf("storm: cluster %s is down\n", name);
    return failed == 0 ? STATUS_OK : STATUS_FAILED;
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
    return down_cluster(name, folder, keep_jobs);
}

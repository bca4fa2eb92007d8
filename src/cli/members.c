/* SPDX-License-Identifier: MIT */
/* storm add, storm remove: who belongs to a cluster of hosts that runs.
 *
 * They change the file `hosts` in the cluster's folder, and wait for what the tender makes of it. A host that is removed gets no
 * more jobs, and those that it has may end first. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "cli/contact.h"
#include "cli/options.h"
#include "cli/roll.h"
#include "cli/tender.h"
#include "cli/terminal.h"
#include "cli/turnout.h"
#include "client/hostsfile.h"
#include "client/keys.h"
#include "wire/row.h"

#define LOOK_NS     (50 * NS_PER_MS)
#define PATIENCE_NS (90 * NS_PER_S) /* for the next host */

#define REASON "it is being removed"

struct change {
    const char *command;
    struct contact contact;
    char folder[CLUSTER_PATH_MAX], path[CLUSTER_PATH_MAX];
    int lock;
    struct roll roll;
    struct hosts hosts;
    uint32_t *numbers; /* of those that are typed */
    struct nodeset set;
    uint64_t version; /* of the file, as we have written it */
};

static void pause_for(uint64_t ns) {
    struct timespec moment = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    nanosleep(&moment, NULL);
}

/* ---- the file ---- */

/* Nobody else changes it meanwhile. */
static int lock_folder(struct change *c) {
    c->lock = open(c->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (c->lock >= 0 && flock(c->lock, LOCK_EX) < 0)
        if (errno != EINTR)
            return -errno;
    return c->lock < 0 ? -errno : 0;
}

static void unlock_folder(struct change *c) {
    if (c->lock >= 0)
        close(c->lock);
    c->lock = -1;
}

static int load(struct change *c) {
    struct cluster_trouble trouble = {""};
    hosts_free(&c->hosts);
    int r = lock_folder(c);
    r = r < 0 ? r : hosts_read(&c->hosts, c->contact.cluster.nodes, c->path, &trouble);
    if (r == 0)
        return 0;
    if (r == -ENOENT)
        complain(c->command, "cluster `%s` is of virtual nodes, not of hosts",
                 c->contact.cluster.name);
    else
        complain(c->path, "%s", *trouble.words != '\0' ? trouble.words : strerror(-r));
    return STATUS_STORM;
}

static int store(struct change *c) {
    int r = hosts_write(&c->hosts, c->path);
    c->version = turnout_version(c->folder);
    unlock_folder(c);
    if (r == 0)
        return 0;
    complain(c->path, "%s", strerror(-r));
    return STATUS_STORM;
}

/* ---- both ---- */

/* Finds the cluster, and reads what is typed. */
static int open_change(struct change *c, const char *cluster, char **argv) {
    struct session_config callbacks = {.patience_ns = PATIENCE_ASKING};
    c->command = argv[0];
    c->lock = -1;
    int r = contact_open(&c->contact, cluster, &callbacks);
    if (r != 0)
        return r;
    const struct cluster *k = &c->contact.cluster;
    if (cluster_is_elsewhere(k))
        return complain(c->command, "cluster `%s` was brought up on another machine; do it there",
                        k->name);
    if (cluster_folder(k->name, c->folder, sizeof c->folder) < 0 ||
        hosts_path(c->folder, c->path, sizeof c->path) < 0)
        return complain(c->command, "the name of the folder is too long");
    r = roll_read(&c->roll, c->command, argv[1], NULL);
    if (r != 0)
        return r;
    c->numbers = calloc(c->roll.count, sizeof *c->numbers);
    void *storage = malloc(nodeset_bytes(k->nodes));
    if (c->numbers == NULL || storage == NULL)
        return complain(c->command, "there is no memory");
    nodeset_init(&c->set, k->nodes, storage);
    return load(c);
}

static void close_change(struct change *c) {
    unlock_folder(c);
    if (c->contact.session != NULL)
        contact_close(&c->contact);
    cluster_free(&c->contact.cluster);
    hosts_free(&c->hosts);
    roll_free(&c->roll);
    free(c->numbers);
    free(c->set.storage);
}

/* What the tender says of the host that we mean, not of another who had its number, nor before it knew what we want. */
static enum turnout_state state_of(const struct change *c, const struct turnout *t, uint32_t i) {
    const struct turnout_host *h = &t->at[c->numbers[i]];
    bool meant = t->seen >= c->version && strcmp(h->name, c->roll.names[i]) == 0;
    return meant ? h->state : TURNOUT_NONE;
}

static uint32_t count_over(const struct change *c, const struct turnout *t,
                           enum turnout_state good) {
    uint32_t over = 0;
    for (uint32_t i = 0; i < c->roll.count; i++) {
        enum turnout_state s = state_of(c, t, i);
        over += s == good || s == TURNOUT_FAILED;
    }
    return over;
}

/* Until all have come so far, or have failed: those are named. How many have come. */
static uint32_t await(const struct change *c, enum turnout_state good, const char *what) {
    struct turnout t;
    uint32_t over = 0, fine = 0;
    uint64_t until = clock_ns() + PATIENCE_NS;
    if (turnout_init(&t, c->contact.cluster.nodes) < 0)
        return 0;
    while (over < c->roll.count && clock_ns() < until) {
        char words[96];
        uint32_t before = over;
        turnout_read(&t, c->folder);
        over = count_over(c, &t, good);
        until = over > before ? clock_ns() + PATIENCE_NS : until;
        snprintf(words, sizeof words, "%" PRIu32 " of %" PRIu32 " hosts %s", over, c->roll.count,
                 what);
        terminal_progress(words);
        if (over < c->roll.count)
            pause_for(LOOK_NS);
    }
    terminal_progress(NULL);
    for (uint32_t i = 0; i < c->roll.count; i++) {
        bool came = state_of(c, &t, i) == good;
        fine += came;
        if (!came)
            complain(c->roll.names[i], "%s",
                     state_of(c, &t, i) == TURNOUT_FAILED ? t.at[c->numbers[i]].words
                                                          : "it takes too long; see the log");
    }
    turnout_free(&t);
    return fine;
}

static int act(struct change *c, enum verb verb, const char *text) {
    struct contact_answer a;
    struct message_act m = {.verb = (uint8_t)verb, .nodes = &c->set, .text = bytes_from_str(text)};
    int r = contact_act(&c->contact, &m, &a);
    if (r != 0 || a.code == ANSWER_DONE)
        return r;
    struct message_answer plain = {.code = a.code, .text = bytes_from_str(a.text)};
    return contact_refused(c->command, &plain);
}

/* ---- add ---- */

/* Hosts on which something of ours may be left. None, if that cannot be read. */
static int read_berths(const struct change *c, struct hosts *ret) {
    char path[CLUSTER_PATH_MAX + 16];
    struct cluster_trouble trouble;
    snprintf(path, sizeof path, "%s/" TENDER_BERTHS, c->folder);
    if (hosts_read(ret, c->hosts.capacity, path, &trouble) == 0)
        return 0;
    hosts_free(ret);
    return hosts_init(ret, c->hosts.capacity);
}

/* Nobody gets the number of another who could not be ended yet: it says what is to be ended there. */
static int enter_all(struct change *c, const struct hosts *berths) {
    for (uint32_t i = 0; i < c->roll.count; i++) {
        const char *name = c->roll.names[i];
        uint32_t number = hosts_room(&c->hosts, berths, name);
        uint16_t crate = c->roll.crates[i];
        if (hosts_find(&c->hosts, name, &number))
            return complain(name, "it belongs to the cluster already; see: storm nodes");
        if (number == c->hosts.capacity) {
            complain(name,
                     "the cluster has room for %" PRIu32
                     " nodes, and all are taken; remove some, or bring it up anew with --max-nodes",
                     number);
            return STATUS_STORM;
        }
        if (hosts_add(&c->hosts, number, name, crate > 0 ? c->roll.switches[crate - 1] : NULL) < 0)
            return complain(name, "this cannot be the name of a node");
        int r = c->contact.cluster.sealed ? keys_raise(c->folder, number) : 0;
        if (r < 0)
            return complain(c->folder, "no key for %s can be made: %s", name, strerror(-r));
        c->numbers[i] = number;
    }
    return store(c);
}

static int enter(struct change *c) {
    struct hosts berths;
    int r = read_berths(c, &berths);
    r = r < 0 ? complain(c->command, "there is no memory") : enter_all(c, &berths);
    hosts_free(&berths);
    return r;
}

static int add(const char *cluster, char **argv) {
    struct change c = {0};
    int r = open_change(&c, cluster, argv);
    r = r != 0 ? r : enter(&c);
    if (r == 0) {
        uint32_t fine = await(&c, TURNOUT_UP, "are up");
        printf("storm: %" PRIu32 " of %" PRIu32 " host%s added to cluster %s\n", fine, c.roll.count,
               c.roll.count == 1 ? "" : "s", c.contact.cluster.name);
        r = fine == c.roll.count ? STATUS_OK : STATUS_FAILED;
    }
    close_change(&c);
    return r;
}

int add_main(int argc, char **argv) {
    const char *cluster = NULL;
    const struct option table[] = {
        {"cluster", OPTION_TEXT, &cluster, "NAME", "which; otherwise STORM_CLUSTER"}, {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm add HOSTS\n\n"
            "These hosts become nodes of a cluster that runs: h[32-63],@FILE. A host that cannot be\n"
            "reached now is tried again, as long as it belongs to the cluster.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count != 1)
        return complain("add", "which hosts? give one list of them: h[32-63],gate");
    return add(cluster, argv);
}

/* ---- remove ---- */

static int find_all(struct change *c) {
    for (uint32_t i = 0; i < c->roll.count; i++) {
        if (!hosts_find(&c->hosts, c->roll.names[i], &c->numbers[i]))
            return complain(c->roll.names[i],
                            "no such host belongs to cluster `%s`; see: storm nodes",
                            c->contact.cluster.name);
        nodeset_add(&c->set, c->numbers[i]);
    }
    return 0;
}

/* Jobs on the nodes that are meant. -1: nobody answers. */
static int count_jobs(struct change *c) {
    struct contact_rows rows = {0};
    struct message_ask ask = {.subject = SUBJECT_NODES};
    int r, jobs = 0;
    do {
        struct node_row row;
        size_t at = 0;
        rows.len = 0;
        r = contact_ask(&c->contact, &ask, &rows);
        while (r == 0 && node_row_next(bytes_of(rows.at, rows.len), &at, &row) == 1) {
            ask.job = row.node + 1;
            if (nodeset_has(&c->set, row.node))
                jobs += (int)(row.jobs.len / 4);
        }
    } while (r == 0 && !rows.last);
    free(rows.at);
    return r != 0 ? -1 : jobs;
}

/* They get no more jobs, and those that they have end. */
static int empty(struct change *c) {
    int jobs = -1, r = act(c, VERB_DRAIN, REASON);
    while (r == 0 && (jobs = count_jobs(c)) > 0) {
        char words[64];
        snprintf(words, sizeof words, "%d job%s still there", jobs, jobs == 1 ? " is" : "s are");
        terminal_progress(words);
        pause_for(LOOK_NS);
    }
    terminal_progress(NULL);
    return r != 0 ? r : jobs < 0 ? STATUS_STORM : 0;
}

/* Its key is void from now on. */
static void strike_one(struct change *c, uint32_t number) {
    int r = c->contact.cluster.sealed ? keys_raise(c->folder, number) : 0;
    if (r < 0)
        complain(c->folder, "a key stays good: %s", strerror(-r));
    hosts_remove(&c->hosts, number);
}

static int strike(struct change *c) {
    int r = load(c); /* others may have changed it since */
    for (uint32_t i = 0; r == 0 && i < c->roll.count; i++)
        if (strcmp(c->hosts.at[c->numbers[i]].name, c->roll.names[i]) == 0)
            strike_one(c, c->numbers[i]);
    return r != 0 ? r : store(c);
}

static int take_out(const char *cluster, char **argv, bool now) {
    struct change c = {0};
    int r = open_change(&c, cluster, argv);
    r = r != 0 ? r : find_all(&c);
    unlock_folder(&c);
    if (r == 0 && !now)
        r = empty(&c);
    r = r != 0 ? r : strike(&c);
    if (r == 0) {
        uint32_t fine = await(&c, TURNOUT_ENDED, "are ended");
        printf("storm: %" PRIu32 " host%s removed from cluster %s\n", c.roll.count,
               c.roll.count == 1 ? "" : "s", c.contact.cluster.name);
        r = fine == c.roll.count ? STATUS_OK : STATUS_FAILED;
    }
    close_change(&c);
    return r;
}

int remove_main(int argc, char **argv) {
    const char *cluster = NULL;
    bool now = false;
    const struct option table[] = {
        {"now", OPTION_FLAG, &now, NULL, "do not wait for their jobs: those are lost"},
        {"cluster", OPTION_TEXT, &cluster, "NAME", "which; otherwise STORM_CLUSTER"},
        {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm remove HOSTS [--now]\n\n"
            "These hosts get no more jobs; when those that they have are over, nothing of the cluster is\n"
            "left on them.");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count != 1)
        return complain("remove", "which hosts? give one list of them; see: storm nodes");
    return take_out(cluster, argv, now);
}

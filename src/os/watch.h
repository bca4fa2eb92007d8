/* SPDX-License-Identifier: MIT */
/* The watcher of a cluster on this machine: starts its daemons and starts again whichever dies.
 *
 *   sweeper ── watcher ─┬─ storm-mm                (executed; its listening socket stays with us)
 *                       ├─ storm-pl, one a node    (executed)
 *                       ├─ n0, n1, ...             (forked: they share this program's pages)
 *                       ├─ the scribe              (forked)
 *                       └─ the tender              (forked)
 *
 * A cluster of virtual nodes has all of them on one machine, but for the tender. One of many machines has manager, scribe
 * and tender where it was brought up, and a watcher with a node and its launcher on each host.
 *
 * The daemons do not depend on each other's lives, only on the watcher's: the kernel
 * kills them when it dies. The sweeper then takes away what is left, and only then is the claim on
 * the folder free. A daemon that dies young is started again after a pause that grows. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/roster.h"
#include "os/address.h"
#include "os/claim.h"
#include "os/confine.h"
#include "prim/prim.h"

/* What is known when all sockets listen and nothing runs yet. */
struct watch_news {
    pid_t watcher;
    const char *guarantee;         /* what holds the processes of a job together */
    const struct address *manager; /* where it listens, or is told to be */
};

struct watch_config {
    const char *folder; /* absolute; the working directory of all daemons */
    const char *name;   /* of the cluster */
    struct prim_config prim;
    uint32_t first, count; /* nodes that are ours */
    bool manager;          /* so is the machine manager, and the scribe */
    enum transport links;
    struct in_addr host; /* TCP links of virtual nodes; strobes by multicast. 0: none */
    /* Where sockets are bound before anything runs: at this address, each at the next free port of the range. They stay
     * with us, for all lives of a daemon. len 0: as plan.h has it. */
    struct address at;
    uint16_t port_first, port_last;
    struct address manager_at; /* len 0: as plan.h has it, or it is ours */
    /* Where others are is asked of the manager's lodge; `sealed`: by keys that are in the folder, the master's where the
     * manager is, else the node's own. */
    bool asks, sealed;
    uint64_t key[2];
    uint64_t lease_ns;
    enum confine confine;
    uint32_t pes;                /* of a node */
    uint32_t system_cores;       /* of its machine, that processes of jobs are kept off */
    const struct roster *roster; /* names of nodes */
    char manager_program[PATH_MAX];
    char launcher_program[PATH_MAX];
    char each_program[PATH_MAX]; /* to start each process by; empty: none */
    /* Once, before any daemon runs. 0 or -errno. */
    int (*announce)(void *context, const struct watch_news *news);
    /* Writes the output of submitted jobs, in a process of its own. Returns its exit status. */
    int (*scribe)(void *context);
    /* Looks after the hosts of the cluster, in a process of its own. NULL: there are none. */
    int (*tender)(void *context);
    void *context;
};

struct watch_trouble {
    char words[256];
};

/* In the command that brings the cluster up: daemonises sweeper and watcher, returns when all daemons
 * are started. `claim` is theirs from now on: the caller closes its own. -errno, with words for people. */
int watch_launch(const struct watch_config *c, int claim, struct watch_trouble *trouble);

/* Who runs it: as claim_look() has it, but waits for somebody who claims the folder and has not said yet who it is. 1, 0 or -errno. */
int watch_look(const char *folder, struct claim_holder *ret);

/* How a cluster that runs is ended: asks the watcher, insists if it does not listen, returns when the
 * claim is free and the folder swept. -EPERM: it is somebody else's. */
int watch_end(const char *folder);

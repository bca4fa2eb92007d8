/* SPDX-License-Identifier: MIT */
/* The watcher of a cluster on this machine: starts its daemons and starts again whichever dies.
 *
 *   sweeper ── watcher ─┬─ storm-mm                (executed; its listening socket stays with us)
 *                       ├─ storm-pl, one a node    (executed)
 *                       ├─ n0, n1, ...             (forked: they share this program's pages)
 *                       └─ the scribe              (forked)
 *
 * The daemons do not depend on each other's lives, only on the watcher's: the kernel
 * kills them when it dies. The sweeper then takes away what is left, and only then is the claim on
 * the folder free. A daemon that dies young is started again after a pause that grows. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "os/address.h"
#include "os/confine.h"
#include "prim/prim.h"

struct watch_config {
    const char *folder; /* absolute; the working directory of all daemons */
    const char *name;   /* of the cluster */
    struct prim_config prim;
    enum transport links;
    struct in_addr host; /* TCP links */
    uint64_t key[2];
    uint64_t lease_ns;
    enum confine confine;
    uint32_t pes;       /* of a node */
    const char *prefix; /* of node names */
    char manager_program[PATH_MAX];
    char launcher_program[PATH_MAX];
    char each_program[PATH_MAX]; /* to start each process by; empty: none */
    /* Once, before any daemon runs: who watches, and what holds the processes of a job together. 0 or
     * -errno. */
    int (*announce)(void *context, pid_t watcher, const char *guarantee);
    /* Writes the output of submitted jobs, in a process of its own. Returns its exit status. */
    int (*scribe)(void *context);
    void *context;
};

struct watch_trouble {
    char words[256];
};

/* In the command that brings the cluster up: daemonises sweeper and watcher, returns when all daemons
 * are started. `claim` is theirs from now on: the caller closes its own. -errno, with words for people. */
int watch_launch(const struct watch_config *c, int claim, struct watch_trouble *trouble);

/* How a cluster that runs is ended: asks the watcher, insists if it does not listen, returns when the
 * claim is free and the folder swept. -EPERM: it is somebody else's. */
int watch_end(const char *folder);

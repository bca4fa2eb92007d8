/* SPDX-License-Identifier: MIT */
/* The hosts of a cluster that is being brought up: which, how they are reached, and waiting for them. */
#pragma once

#include "cli/roll.h"
#include "cli/tender.h"
#include "client/cluster.h"
#include "client/hostsfile.h"
#include "os/address.h"

struct hosting {
    /* As the user says it; NULL, 0: not said. */
    const char *list, *connector, *user, *interface, *ports, *folder;
    uint64_t min_nodes, max_nodes;
    /* What follows from it. */
    const char *source; /* where the list is from, for people; NULL: there are no hosts */
    struct roll roll;
    uint32_t capacity;
    struct hosts hosts; /* who has which number, once that is known */
    uint32_t pes;       /* that whoever gave us the hosts speaks of; 0: nothing is known */
    uint16_t port_first, port_last;
    struct address at; /* of this machine, as hosts see it */
    struct tender_config tender;
};

/* Looks whether hosts are meant: --hosts, or an allocation that we are in. `local`: no, virtual nodes are. */
void hosting_find(struct hosting *h, bool local);

/* Reads all of it. 0, or the exit status after a complaint. */
int hosting_check(struct hosting *h);

/* What the cluster's file says because of it. */
void hosting_describe(const struct hosting *h, struct cluster *c);

/* Gives numbers to all, and names to the cluster. What a former life of it may have left on hosts keeps its number, so that the
 * tender ends it; if it was reached in another way, or lived elsewhere, it is ended first. 0, or the exit status after a
 * complaint. */
int hosting_number(struct hosting *h, struct cluster *c, const char *folder);

/* Writes what the tender needs into the cluster's folder. 0, or the exit status after a complaint. */
int hosting_prepare(struct hosting *h, const struct cluster *c, const char *folder);

/* Until every host is there or has failed; names those that have. How many are there, by their own and the manager's words. */
uint32_t hosting_await(const struct hosting *h, const struct cluster *c, const char *folder);

/* Takes away what was written, once the cluster has ended. `all`: not so if some hosts could not be ended: which, and how they are
 * reached, stays. */
void hosting_forget(const char *folder, bool all);

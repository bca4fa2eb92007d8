/* SPDX-License-Identifier: MIT */
/* The process of a node's manager: its machines in the real world, until the process ends. */
#pragma once

#include "base/roster.h"
#include "os/address.h"
#include "wire/keyfile.h"
#include "prim/prim.h"

struct node_config {
    struct prim_config prim;
    uint32_t self;
    const struct address *book; /* of all nodes and the manager */
    struct address launcher;
    int listener;
    int mover_listener; /* where other machines come to its file mover; -1: it makes one where plan.h has it */
    enum transport links;
    struct in_addr host; /* for TCP */
    uint64_t key[2];
    uint64_t lease_ns;
    const struct roster *roster; /* names of nodes */
    struct bytes report;         /* what the machine is like (sched/traits.h). Borrowed */
    /* Others are found by asking the manager's lodge: on many machines, or where links are sealed. */
    bool asks;
    bool alone;                   /* the machine is its own: paths of files are the machine's */
    const struct keyfile *secret; /* this node's; NULL: links are open */
    char address
        [INET6_ADDRSTRLEN]; /* IP address that it is found at; "": that which the lodge sees */
};

/* The working directory is the cluster's folder. */
_Noreturn void node_live(struct node_config *c);

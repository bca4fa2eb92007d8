/* SPDX-License-Identifier: MIT */
/* The process of a node's manager: its machines in the real world, until the process ends. */
#pragma once

#include "os/address.h"
#include "prim/prim.h"

struct node_config {
    struct prim_config prim;
    uint32_t self;
    const struct address *book; /* of all nodes and the manager */
    struct address launcher;
    int listener;
    enum transport links;
    struct in_addr host; /* for TCP */
    uint64_t key[2];
    uint64_t lease_ns;
    const char *prefix; /* of node names */
};

/* The working directory is the cluster's folder. */
_Noreturn void node_live(struct node_config *c);

/* SPDX-License-Identifier: MIT */
/* The process of a node's file mover: forked from the node's manager when there is something to move.
 *
 * Moving files takes memory, waits for disks and runs for long; none of that may happen where heartbeats are
 * answered. The manager holds the listening socket from its beginning, so whoever comes before the
 * process is there waits for it. It ends when the manager lets go of it, or ends. */
#pragma once

#include "os/address.h"
#include "os/loop.h"
#include "wire/keyfile.h"

struct mover_process_config {
    uint32_t self;
    uint32_t nodes; /* without the manager's seat */
    enum transport links;
    struct in_addr host;
    uint64_t key[2];
    uint64_t cache_bytes;
    const char *top; /* as depot.h has it */
    /* As node.h has them. Its own manager comes by a Unix socket then. */
    bool asks;
    const struct keyfile *secret;
    int far_listener;
    struct address manager;
};

struct mover_process {
    struct mover_process_config config;
    int listener;
    struct loop *loop;
    struct source pidfd; /* its end; -1: it does not run */
    bool asked;          /* while it was ending, perhaps: then it is started again */
    pid_t pid;
};

/* Listens, if that is possible yet. */
void mover_process_init(struct mover_process *p, const struct mover_process_config *c);
/* Starts it unless it runs. 0 or -errno. */
int mover_process_start(struct mover_process *p, struct loop *loop);

/* SPDX-License-Identifier: MIT */
/* A hop of a tree of remote shells in the real world: who started the command here, or a helper on a host.
 *
 * It reaches hosts (spread/hop.h decides which), runs the command if it is on one of them, and passes on what goes up and
 * down. What goes up is handed to its owner: a helper writes it to its parent, the root shows it. */
#pragma once

#include "os/parcels.h"
#include "os/shell.h"
#include "os/tool.h"
#include "spread/task.h"

struct limb;

struct limb_config {
    struct loop *loop;
    const struct task *task; /* stays, with all that it borrows */
    const struct shell_helper *helper;
    struct parcels *parcels; /* the root's: files for all. NULL: none */
    bool root;               /* runs no command itself */
    uint64_t files;          /* that what is started may have open; 0: as many as we */
    void *context;
    void (*up)(void *context, const struct frame *f);
    /* What went up waits: nothing more is read until limb_settle finds that it does not. */
    bool (*full)(void *context);
};

/* NULL: no memory. */
struct limb *limb_new(const struct limb_config *c);
/* Ends whatever is still there. */
void limb_free(struct limb *l);

/* Hosts to reach: any number, then limb_share(). -EPROTO, -ENOMEM. */
int limb_take(struct limb *l, const struct task_host *h);
void limb_share(struct limb *l);

/* A frame that goes down. False: none that a helper understands. */
bool limb_told(struct limb *l, const struct frame *f);

/* So many bytes of input were taken by all for whom it is. */
uint64_t limb_taken(const struct limb *l);
/* Every host was reached or given up. */
bool limb_complete(const struct limb *l);

/* A child of ours has ended. */
void limb_reaped(struct limb *l, pid_t pid, int status);
/* At the end of every turn; asks the loop for the next one. */
void limb_settle(struct limb *l);

/* Everything is to end, soon; hosts that were not reached never will be. */
void limb_stop(struct limb *l);

/* All hosts are over, the command too, and no process of ours is left. */
bool limb_over(const struct limb *l);

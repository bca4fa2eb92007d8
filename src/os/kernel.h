/* SPDX-License-Identifier: MIT */
/* Processes for a launcher: carries out its effects on groups and streams, and tells what happens.
 *
 * It belongs into a small process of one thread that has no other children: it reaps all there are,
 * takes SIGCHLD and SIGPIPE, and makes itself the reaper of what its children leave behind. Where
 * there are cgroups, a group is one: nothing gets out of it. Otherwise a group is a pid namespace, which
 * keeps together as well (pen.h). Where neither is allowed, a group is what descends from
 * its processes, found in /proc; that is good against everything but a process that hides its
 * origin while several groups run, or chains of processes that live shorter than a look takes.
 *
 * Calls count here more than anything, because every node of a launch makes them at the same time:
 * pipes, cgroups and namespaces are made ahead, when a group is closed, and closed then too; a process that says
 * nothing is started, waited for and known to be gone in six calls. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "machine/machine.h"
#include "os/confine.h"
#include "os/loop.h"

struct kernel_config {
    struct loop *loop;
    void (*feed)(void *context, const struct input *in);
    void *context;
    const char *cgroup; /* folder for this node's cgroups; NULL: none */
    enum confine confine;
    const char *rations; /* folder for this node's limits on memory: see ration.h; NULL: none */
    const char *each;    /* a program to start each process by; NULL: none */
    const char
        *at; /* IP address that others reach our processes by; NULL: all are on this machine */
    const char *objects;   /* folder of files that were sent to the node, absolute; NULL: none */
    const char *root;      /* folder that paths on the node are taken under, absolute; NULL: none */
    uint32_t home;         /* see home.h; 0: anywhere */
    bool hurry;            /* we go before those whom we start: see hurry.h */
    uint32_t first;        /* of this node's processors, see home_first; 0: none are its own */
    uint32_t pes;          /* so many */
    uint32_t system_cores; /* the first of the machine's, that processes are kept off */
    uint32_t groups;       /* their numbers are below this */
    uint32_t petitioners;  /* programs that talk to the manager: their places are below this */
    int bell; /* a descriptor of ours at whose number they find their bell; 0: there is none */
};

struct kernel;

/* NULL and -errno. What cannot be used to keep groups together is no error: see kernel_notice. */
struct kernel *kernel_new(const struct kernel_config *config, int *ret_error);

/* Ends all processes there are, and waits for them a while. */
void kernel_free(struct kernel *k);

bool kernel_wants(enum effect_kind kind);

/* Never feeds anything itself; may be called while something is being fed. */
void kernel_carry(struct kernel *k, const struct effect *e);

/* At the end of every turn of the loop: feeds what is due. Bytes that are fed are lent until the
 * next input is. */
void kernel_settle(struct kernel *k);

enum guarantee kernel_guarantee(const struct kernel *k);

/* Why the guarantee is weaker than what was asked for; NULL if it is not. */
const char *kernel_notice(const struct kernel *k);

/* SPDX-License-Identifier: MIT */
/* The life of a launcher in the real world: a process that runs the launcher's machine.
 *
 * Like a node's life (os/life.h) but smaller: one machine, links that only this node's manager may
 * open, no disk, no heap; and processes, which it has for the machine. It outlives its manager. */
#pragma once

#include "os/confine.h"
#include "os/links.h"
#include "pl/launcher.h"

struct shift;

struct shift_config {
    uint32_t node;
    uint64_t key[2];
    struct address address; /* where the manager comes */
    const char *strobe;     /* the path where strobes come past the manager. NULL: nowhere */
    const char *each;       /* a program to start each process by. NULL: none */
    const char
        *at; /* IP address that processes of other machines reach ours by. NULL: there are none */
    const char *cgroup;    /* a folder of ours in which groups can be made. NULL: do without */
    const char *rations;   /* see kernel.h */
    uint32_t home;         /* see home.h; 0: anywhere */
    uint32_t first, pes;   /* see kernel.h */
    uint32_t system_cores; /* see kernel.h */
    int bell;              /* see kernel.h */
    enum confine confine;  /* what keeps groups together; one that is named must be to be had */
    struct pl_config pl;
};

/* NULL and -errno on failure, with the reason on stderr. */
struct shift *shift_new(const struct shift_config *config, int *ret_error);
/* Ends its processes. */
void shift_free(struct shift *s);

/* Runs until shift_end. */
void shift_run(struct shift *s);
void shift_end(struct shift *s);

struct loop *shift_loop(struct shift *s); /* to add sources to */

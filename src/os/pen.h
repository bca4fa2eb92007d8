/* SPDX-License-Identifier: MIT */
/* Pens: pid namespaces for runs, where there are no cgroups; made ahead.
 *
 * A pen is held by its first process, the keeper, a child of ours that runs a few lines of our own code.
 * What a run starts cannot leave the pen; what loses its parent becomes the keeper's child. When
 * the keeper ends, by SIGKILL or because it was released and has no child left, the kernel ends all that
 * is in the pen, and the keeper's end is not told before that is done. So there is nothing to look for.
 *
 * A pen is empty, and serves the next run, when neither we nor its keeper have any child in it: who wants
 * to be somebody else's child must start as one of these. Keepers do not count among our children:
 * whoever waits for any child does not see them.
 *
 * Root may make pid namespaces. Others get a user namespace first, in which they are who they are. We
 * stay outside of both: a process that has entered a pid namespace could not make the next one.
 *
 * The keeper shares our memory, so it costs a page of stack. It dies when we do. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "os/loop.h"

enum { PEN_STACK_BYTES = 8 * 1024 };

struct pen {
    struct list link;  /* among spare ones */
    pid_t keeper;      /* 0: it has ended, and all in the pen with it */
    struct source end; /* of the keeper: a pidfd; and the door for those who start processes here */
    void *owner;       /* whoever watches that */
    bool watched;
    bool used;      /* something was started in it, and it was not seen empty after that */
    bool ending;    /* the keeper was killed or released */
    int children;   /* the kernel's list of the keeper's; -1: there is none */
    int launcher;   /* for the keeper: a pidfd of ours */
    char first[16]; /* for the keeper: process numbers begin after this one */
    _Atomic uint32_t word;
    _Alignas(16) uint8_t stack[PEN_STACK_BYTES];
};

/* Why there can be none, for people. */
struct pens_trouble {
    char words[120];
};

/* The pool. */
struct pens {
    bool open;
    bool plain;       /* no clone3 here */
    int user;         /* user namespace; -1: not needed */
    int self;         /* pidfd of this process */
    uint32_t numbers; /* of processes that there can be */
    uint32_t made;
    struct list spare;
};

/* Makes the first, to see whether it can be done. 0 or -errno, with words. */
int pens_init(struct pens *p, struct pens_trouble *t);
void pens_fini(struct pens *p);

/* Whether it could be done. Everything is as before. */
int pens_try(struct pens_trouble *t);

/* NULL and -errno if none can be made. */
struct pen *pens_take(struct pens *p, int *ret_error);
/* One whose keeper has ended, or that is empty. */
void pens_give(struct pens *p, struct pen *pen, struct loop *l);
void pens_stock(struct pens *p);

/* Is it a spare one's keeper? */
bool pens_keeps(const struct pens *p, pid_t pid);

/* We have no child but keepers: is nothing left in it, and the keeper as it was? */
bool pen_empty(struct pen *pen);
void pen_kill(struct pen *pen);
/* Our own processes in it have ended: the keeper ends when all others have. */
void pen_release(struct pen *pen);
/* Has the keeper ended? */
bool pen_ended(struct pen *pen);

/* SPDX-License-Identifier: MIT */
/* Starting processes, as cheaply as the kernel can.
 *
 * The new process shares our memory until it executes (as with vfork), so starting it costs the same
 * however large we are, and what went wrong on the way is in a struct of ours when the call is over.
 * It gets a process group of its own, signals as they are by default, the descriptors it is given as
 * 0 to 2 (and a bell, if it has one) and no others, and it dies when this process does. What it would inherit unchanged is not set.
 * A session costs more (Linux may make a scheduling group for each): it gets one for a terminal, and
 * where its session tells later what came from it. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "machine/machine.h"
#include "os/recipe.h"

/* What this process is, and its children would be. */
struct spawner {
    pid_t self;
    struct inherited inherited;
    uint64_t ignored; /* signals, as bits */
    uint8_t *stack;   /* for the moment between start and execution */
    bool plain;       /* no clone3 here */
    bool sparing; /* of descriptors: a process starts with ours, then takes copies of its three */
    int stdio[3]; /* copies of our own; -1: not open */
    bool hurried; /* we go before them: each gets the usual share again, */
    int usual;    /* this one */
    bool raised;  /* our limit on descriptors is not the inherited one any more */
};

/* What a process is given. */
struct place {
    int stdio[3];
    bool terminal;          /* stdio[0] is to be its controlling terminal */
    int cgroup;             /* folder to be born in; -1: where we are */
    int door;               /* of a pid namespace to be born in; -1: ours */
    int user;               /* the user namespace that owns it; -1: ours */
    const void *processors; /* to stay on, a set of the kernel's; NULL: as we do */
    size_t processors_bytes;
    int bell;   /* to be given at the number that is for bells (os/callers.h); 0: none */
    int ration; /* file to write to in order to have its memory limited; -1: none */
};

/* The kernel copies the first 64 descriptors whether we want them or not, so what is kept for long is
 * moved out of the way: the new descriptor, or the old one if that cannot be done. */
enum { SPAWN_LOW_END = 64 };
int spawn_aside(int fd);

int spawner_init(struct spawner *s);
void spawner_fini(struct spawner *s);

/* The process's pid, or -errno and the step that failed; then nothing of it is left. */
pid_t spawn(struct spawner *s, struct recipe *r, const struct place *p, uint32_t index,
            enum spawn_step *ret_step);

/* Can processes be born in its cgroup or pid namespace? 0 or -errno. */
int spawn_probe(struct spawner *s, const struct place *p);

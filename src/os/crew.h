/* SPDX-License-Identifier: MIT */
/* A cluster on this machine: a process for each node, started and watched by their parent.
 *
 * All sockets listen before the first process runs, so nobody finds a door closed at start; each
 * process inherits its own and nothing else. A process that dies is noticed; the root's is started
 * again at once, with the next epoch, after a pause if it does not live long. When the parent dies its
 * children die with it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "os/life.h"

struct crew_config {
    struct prim_config prim;
    enum transport links;
    const char *folder; /* NULL: a temporary one, removed in the end */
    bool keep_root;     /* start the root again when it dies */
    struct machine (*daemon)(void *context, uint32_t node, struct globals globals);
    void (*observe)(void *context, struct life *l);
    /* In the node's process, when the parent has poked it. May be NULL. */
    void (*poked)(void *context, struct life *l);
    void *context; /* what both sides must see lies in memory shared before crew_new */
};

struct crew;

/* NULL and -errno, with the reason on stderr. Nobody runs yet. */
struct crew *crew_new(const struct crew_config *config, int *ret_error);
/* Ends all processes that it has started. */
void crew_free(struct crew *c);

/* Starts a node that does not run, a seat as the root; the root first, then all. 0 or -errno. */
int crew_start(struct crew *c, uint32_t node);
int crew_start_all(struct crew *c);

pid_t crew_pid(const struct crew *c, uint32_t node);      /* 0 if it does not run */
uint32_t crew_lives(const struct crew *c, uint32_t node); /* processes started for it */
int crew_signal(struct crew *c, uint32_t node, int signal);
/* Ends it and waits until it is gone; it is not started again. */
void crew_kill(struct crew *c, uint32_t node);

/* Makes the node's process call `poked`. */
void crew_poke(struct crew *c, uint32_t node);
/* In a node's process: wakes the parent from crew_wait. */
void crew_ring(const struct crew *c);

/* Waits until somebody rings, a process ends, or the time is over (-1: for ever); reaps the dead and
 * starts the root again if that is due: call it often. Returns how many have died. */
int crew_wait(struct crew *c, int timeout_ms);

/* Shared with the node's process. */
const uint8_t *crew_heap(const struct crew *c, uint32_t node);
const struct life_counts *crew_counts(const struct crew *c, uint32_t node);
const struct address *crew_address(const struct crew *c, uint32_t node);
const uint64_t *crew_key(const struct crew *c);
const char *crew_folder(const struct crew *c);

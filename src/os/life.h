/* SPDX-License-Identifier: MIT */
/* One life of a node in the real world: a process that runs the node's machines.
 *
 * It boots them with what the store remembers, feeds them what links, timers, disk and the outside
 * bring, and carries out what they want. The machines are the very ones that the simulator runs. A
 * life ends with its process; the next one has a higher count of boots, a root's the next epoch. */
#pragma once

#include "machine/limits.h"
#include "machine/stack.h"
#include "os/address.h"
#include "os/links.h"
#include "os/loop.h"
#include "prim/prim.h"

struct life;
struct caster;
struct guide;
struct keyring;
struct sealer;

/* What a node lets others see; may lie in shared memory. One writer. */
struct life_counts {
    struct link_counts links;
    uint64_t turns; /* of the loop */
    uint64_t steps; /* of machines */
    uint64_t bytes_in, bytes_out;
};

/* What keeps the daemon's events: see EFFECT_LOG. It works with the loop that it is attached to and tells
 * from there, never from within a call. */
struct life_log {
    void *self;
    /* From now on; `logged` and `fetched` as the inputs of that name. */
    int (*attach)(void *self, struct loop *loop,
                  void (*logged)(void *context, uint64_t ticket, int error),
                  void (*fetched)(void *context, uint64_t ticket, struct bytes body),
                  void *context);
    /* Tells what former lives have logged, in order, but for keys that are over. */
    int (*replay)(void *self,
                  void (*event)(void *context, uint64_t key, bool over, struct bytes body),
                  void *context);
    void (*append)(void *self, const struct effect_log *event);
    void (*fetch)(void *self, uint64_t ticket, uint64_t key);
    /* The turn is over: what was appended in it belongs together. */
    void (*commit)(void *self);
};

struct life_config {
    struct prim_config prim;
    uint32_t self;
    bool root;                      /* to act as root */
    const struct address *book;     /* where each node listens, all of the universe */
    int listener;                   /* a socket that listens at our address, or -1 to make one */
    int near_listener;              /* as links.h has it */
    const struct address *launcher; /* of this node. NULL: it has none */
    const struct address *mover;    /* of this node. NULL: it has none */
    uint32_t accepts;               /* purposes, see links.h. 0: what the primitives need */
    /* On many machines. A node's guide, NULL: the book tells where everybody is. The manager's keys and the sealer over
     * them, NULL: links are open; `lodge`: it keeps one for those who ask. */
    struct guide *guide;
    const struct keyring *keys;
    const struct sealer *sealer;
    bool lodge;
    uint64_t near_client;       /* whose letters commands get that come by the near listener */
    struct caster *caster;      /* strobes past the tree. NULL: there is no such way */
    const struct life_log *log; /* NULL: the daemon logs nothing */
    uint64_t key[2];            /* of the cluster */
    const char *folder;         /* for what must be remembered */
    uint8_t *heap;              /* limits.heap_bytes, zeroed; may be shared. NULL: our own */
    struct life_counts *counts; /* zeroed. NULL: our own */
    /* Makes the daemon's machine. It may read the globals while it lives. */
    struct machine (*daemon)(void *context, uint32_t node, struct globals globals);
    /* Called after every turn in which a machine has made a step. May be NULL. */
    void (*observe)(void *context, struct life *l);
    /* A link to this node's file mover is about to be opened: it must be there. May be NULL. */
    void (*summon)(void *context, struct life *l);
    /* A note of the machines; it is printed in any case. May be NULL. */
    void (*note)(void *context, struct bytes note);
    void *context;
};

/* Boots the node: NULL and -errno on failure, with the reason on stderr. */
struct life *life_new(const struct life_config *config, int *ret_error);
void life_free(struct life *l);

/* Runs until life_end. */
void life_run(struct life *l);
void life_end(struct life *l);

/* Feeds an input that comes from outside: a child's end, a client, a test. */
void life_feed(struct life *l, enum layer layer, const struct input *in);

/* Keys have changed: links of those who have none that is good go. */
void life_review_keys(struct life *l);

struct loop *life_loop(struct life *l); /* to add sources to */
uint32_t life_node(const struct life *l);
uint64_t life_now(const struct life *l);
const struct prim *life_prim(const struct life *l);
struct globals life_globals(const struct life *l);
const uint8_t *life_heap(const struct life *l);
/* A buffer of the node, made if there is none of that number. NULL if there is no memory. */
uint8_t *life_buffer(struct life *l, uint32_t buffer, uint64_t bytes);

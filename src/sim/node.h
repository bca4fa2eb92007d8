/* SPDX-License-Identifier: MIT */
/* A simulated node: what it keeps for ever, what it has in one life, and what ails it.
 *
 * Its processor is serial: an input waits in the inbox until the node is neither busy nor paused.
 * The two lanes of its network interface have timelines of their own, so bulk never delays control.
 * Of a life nothing survives a crash but the disk: the count of boots, the persisted value and the
 * journal. A body (world.h) is a node without primitives and heap. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/idtable.h"
#include "machine/stack.h"
#include "prim/prim.h"
#include "sim/event.h"
#include "sim/journal.h"
#include "sim/timer.h"

struct end;

/* What a node's process is doing, where processors are shared. */
enum process_state {
    PROCESS_ASLEEP,
    PROCESS_READY,  /* waits for a processor */
    PROCESS_WAKING, /* has one; about to read its inbox */
    PROCESS_BUSY,   /* has read it */
    PROCESS_SINKING /* found it empty; about to give the processor back */
};

struct buffer {
    uint32_t number;
    uint32_t link; /* that may put into it */
    uint64_t bytes;
    uint8_t *at;          /* of a node */
    struct stamp *stamps; /* of a body: stamp.h */
    uint32_t stamp_count;
};

/* What every message touches comes first: with thousands of nodes the time goes into fetching them
 * from memory. */
struct node {
    uint32_t number;
    uint32_t boots; /* on the disk */
    bool up;
    uint64_t busy_until;
    uint64_t paused_until;
    struct list inbox;
    uint64_t ingress_at[LANES]; /* when the network interface is free again */

    uint64_t egress_at[LANES];
    uint64_t duplicate_until;
    void (*sink)(void *context, struct bytes record); /* of world_record */
    struct stack stack;

    struct idtable links; /* numbers of link ends */
    struct end **ends;    /* indexed alike; NULL where there is none */
    struct timers timers;
    struct event wake;

    uint8_t *heap;
    uint64_t heap_touched; /* bytes beyond are zero */
    struct buffer *buffers;
    uint32_t buffer_count, buffer_cap;
    struct prim *prim; /* NULL when down, or when another machine is in its place */
    struct globals globals;
    uint64_t persisted; /* on the disk */
    uint8_t *stowed;    /* for the next life */
    size_t stowed_len;
    struct journal journal;
    uint64_t full_until; /* the disk */
    uint64_t slow_until;
    uint32_t slow_factor;
    void *sink_context;

    /* where processors are shared */
    enum process_state process;
    struct list ready;  /* in the run queue */
    struct list unsent; /* link ends that have frames to send when the turn is over */
    uint64_t turn;      /* number of it */
};

void node_init(struct node *n, uint32_t number, uint8_t *heap);

/* The disk is gone, too. */
void node_fini(struct node *n);

/* Makes the machines of a fresh life; the caller boots them. */
void node_power_on(struct world *w, struct node *n);

/* Everything but the disk vanishes; peers will hear. Does nothing if it is off. */
void node_power_off(struct world *w, struct node *n);

/* For the next life; in place of what was there. */
void node_stow(struct node *n, struct bytes bytes);

/* Can it look at an input right now? */
bool node_idle(const struct world *w, const struct node *n);

/* Sees to it that the inbox will be looked at. */
void node_rouse(struct world *w, struct node *n);

/* How many times longer everything takes. */
uint64_t node_slowness(const struct world *w, const struct node *n);

/* Gives a link end a number, takes it back. The end holds a reference to its link meanwhile. */
void node_attach(struct node *n, struct end *e);
void node_detach(struct world *w, struct end *e);
struct end *node_end(const struct node *n, uint32_t number); /* NULL if there is none */

/* The pick'th of the live link ends, modulo their number; NULL if there is none. */
struct end *node_pick(const struct node *n, uint32_t pick);

struct buffer *node_buffer(const struct node *n, uint32_t number); /* NULL if there is none */
struct buffer *node_buffer_open(struct node *n, uint32_t number, uint64_t bytes, bool stamps);
void node_buffer_close(struct node *n, uint32_t number);

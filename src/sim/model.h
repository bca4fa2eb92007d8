/* SPDX-License-Identifier: MIT */
/* The second depth of simulation: a world under the primitives.
 *
 * Daemons run as they do everywhere, but no primitives' machine stands below them: the model itself
 * answers their requests, after times that a cost model predicts. Operations on global memory take
 * effect in one order, each everywhere at one moment; nodes join, crash and come back. There are no
 * links, frames or trees here, so a hundred thousand nodes and long traces are cheap. What is
 * faithful is the order and the outcome of operations and how long one takes by itself; how
 * operations get into each other's way is an approximation (ledger.c). Not modelled: paused or slow
 * nodes, broken links, and that the nodes of a set learn of an operation one after the other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "machine/machine.h"
#include "prim/prim.h"
#include "sim/cost.h"

struct model;

struct model_config {
    struct prim_config prim; /* limits, tree and times, as the real protocol would have them */
    struct cost cost;        /* of that tree */
    uint64_t seed;
    /* Makes the daemon's machine for a node that boots: see world.h. Idle ones are never stepped.
     */
    struct machine (*daemon)(void *context, uint32_t node, struct globals globals);
    void *context;
};

/* NULL if the system has no room for so large a model. */
struct model *model_new(const struct model_config *config);
void model_free(struct model *m);

/* Powers a node on; a seat that is to act as root gets the next epoch. */
void model_boot(struct model *m, uint32_t node, bool root);
void model_crash(struct model *m, uint32_t node);

/* Lets the next thing happen; false when there is none. */
bool model_step(struct model *m);
void model_run_until(struct model *m, uint64_t time);

uint64_t model_now(const struct model *m);

struct model_counts {
    uint64_t events;     /* things that happened */
    uint64_t steps;      /* of daemons */
    uint64_t operations; /* that got a place in the order */
    uint64_t messages;   /* that the protocol would have needed for them */
};
const struct model_counts *model_counts(const struct model *m);

/* What a client on a node could see. */
bool model_up(const struct model *m, uint32_t node);
bool model_member(const struct model *m, uint32_t node);
struct globals model_globals(const struct model *m, uint32_t node);
void model_heap(const struct model *m, uint32_t node, uint32_t offset, struct room to);
/* A buffer of the node, made if there is none of that number yet. */
uint8_t *model_buffer(struct model *m, uint32_t node, uint32_t buffer, uint64_t bytes);

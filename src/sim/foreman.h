/* SPDX-License-Identifier: MIT */
/* Whoever has files brought to all nodes and then starts something there: managers for measurements.
 *
 * It does what the machine manager and the node managers do for one launch on nodes where nothing goes wrong, in the same
 * steps and by the same messages, and takes the times: TRANSFER by XFER-AND-SIGNAL; each node hands it to
 * its mover, which it first opens a link to, and sets its variable when the files are here; a standing compare and
 * an ordinary one, then they are known to be everywhere. The command to start by XFER-AND-SIGNAL; each node
 * needs a while for it, sets another variable, and so their ends are known. Primitives and movers are the real
 * ones. */
#pragma once

#include "machine/machine.h"
#include "prim/prim.h"
#include "sim/world.h"

struct foreman;

struct foreman_config {
    uint32_t nodes;
    uint32_t order_bytes;   /* of the largest order */
    uint32_t command_bytes; /* of what is started; 0: nothing is */
    uint64_t exec_ns;       /* from the command to the end of its process, at a node */
};

/* Times, from whenever the world began; 0: not yet. */
struct foreman_times {
    uint64_t up_at;      /* all nodes are there */
    uint64_t asked_at;   /* the order was asked for */
    uint64_t ordered_at; /* it was known to have come everywhere */
    uint64_t heard_at;   /* the last mover had it */
    uint64_t known_at;   /* the files were known to be everywhere */
    uint64_t ended_at;   /* so were the ends of what was started */
};

struct foreman *foreman_new(const struct foreman_config *c);
void foreman_free(struct foreman *f);

/* For so many nodes, on such links. */
struct prim_config foreman_prim(const struct foreman_config *c, const struct link_model *link);

/* The daemon of node `who`; the context is the foreman. */
struct machine foreman_host(void *context, uint32_t who);

const struct foreman_times *foreman_times(const struct foreman *f);
/* Something did not come to a good end. */
bool foreman_failed(const struct foreman *f);

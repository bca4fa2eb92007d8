/* SPDX-License-Identifier: MIT */
/* The primitives' machine: XFER-AND-SIGNAL, TEST-EVENT and COMPARE-AND-WRITE over a tree of links.
 *
 * One on every node, one at the root. Its inputs and effects are those of machine/machine.h;
 * requests come from the daemon above, completions and notices go back to it. docs/protocol.md
 * describes the protocol, docs/decisions/ why it is so. */
#pragma once

#include "base/arena.h"
#include "machine/limits.h"
#include "machine/machine.h"
#include "prim/tree.h"

/* The usual period of the heartbeat wave. */
#define PRIM_PERIOD_NS 1000000000

/* Gathers that the root may have under way at once; further ones are refused. */
enum { PRIM_GATHERS_MAX = 4 };

struct prim;

struct prim_config {
    struct limits limits;
    struct tree tree;    /* its node count is limits.nodes */
    uint64_t period_ns;  /* of the heartbeat wave */
    uint64_t grace_ns;   /* for a node whose link broke to attach again */
    uint64_t attach_ns;  /* to wait for a parent's answer before trying the next */
    uint64_t settle_ns;  /* to gather joining nodes into one change of view */
    uint64_t collect_ns; /* for survivors to report to a new root */
    bool casts;          /* the world carries strobes to the nodes past the tree: EFFECT_CAST */
};

/* Sensible times for a wave period: the rest follows from it. */
void prim_config_times(struct prim_config *c, uint64_t period_ns);

/* Bytes of arena one machine needs; `seat` says whether the node may ever act as root. */
size_t prim_bytes(const struct prim_config *c, bool seat);
struct prim *prim_new(const struct prim_config *c, bool seat, struct arena *a);
struct machine prim_machine(struct prim *p);

/* What the daemon above may read. */
struct globals prim_globals(const struct prim *p);

/* For tests, benches and status displays. */
enum prim_phase {
    PHASE_QUIET,
    PHASE_PREPARING,  /* an operation is being prepared */
    PHASE_DECIDING,   /* one is decided and being applied or dropped */
    PHASE_VIEW,       /* membership is changing */
    PHASE_COLLECTING, /* a new root gathers survivors */
    PHASE_STREAMING,  /* a bulk transfer is under way */
    PHASES
};

struct prim_status {
    bool root;
    bool attached; /* confirmed by the root (always so at an active root) */
    bool member;
    uint32_t epoch;
    uint64_t incarnation;
    uint64_t view;
    uint32_t parent; /* node number, NO_NODE at the root or when seeking */
    uint32_t children;
    uint32_t in_flight;    /* at the root: operations not finished */
    uint32_t outstanding;  /* own requests not answered */
    enum prim_phase phase; /* as this node can see it */
    uint64_t refused[16];  /* by enum refusal: body, epoch, life */
};

void prim_status(const struct prim *p, struct prim_status *ret);
const char *phase_name(enum prim_phase phase);

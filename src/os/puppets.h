/* SPDX-License-Identifier: MIT */
/* A crew whose daemons do as they are told.
 *
 * The parent writes a request into memory that it shares with the node's process and pokes it; the
 * node's daemon asks the primitives, and what it hears goes back the same way. Beside that each
 * node shows its state: where it hangs, its variables and events. For demonstrations and tests; a
 * real daemon has clients instead. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/crew.h"

enum { PUPPET_OPS_MAX = 512, PUPPET_BODY_MAX = 4096, PUPPET_WORDS = 16 };

enum puppet_stage { PUPPET_TOLD = 1, PUPPET_ASKED, PUPPET_ANSWERED };

/* One request. Fields beside `stage` are written by the parent before TOLD, then by the node. */
struct puppet_op {
    _Atomic uint32_t stage;
    uint32_t node;
    struct primitive request; /* its set and body are kept beside it */
    uint64_t asked_ns, answered_ns;
    _Atomic uint32_t unknowns; /* how often the node was told so; the answer follows */
    _Atomic uint32_t answers;  /* final ones: never more than one, if all is well */
    struct completion completion;
    uint8_t body[PUPPET_BODY_MAX];
};

/* A node as it sees itself, as of its last turn. */
struct puppet {
    _Atomic uint32_t turns;              /* of the loop, in all lives */
    _Atomic uint32_t heard[INPUT_KINDS]; /* by its daemon, in all lives */
    bool attached, member;
    uint32_t parent;
    uint32_t epoch;
    uint64_t incarnation;
    uint64_t variables[PUPPET_WORDS];
    uint64_t events[PUPPET_WORDS];
};

struct puppets;

/* The crew's daemon, observe, poked and context are set here. Limits: at most PUPPET_WORDS
 * variables and events. NULL and -errno. */
struct puppets *puppets_new(const struct crew_config *config, int *ret_error);
void puppets_free(struct puppets *p);
struct crew *puppets_crew(const struct puppets *p);

/* Hands a request to a node; returns its number. A NULL set means all nodes and the root. */
uint32_t puppets_tell(struct puppets *p, uint32_t node, const struct primitive *request);
const struct puppet_op *puppets_op(const struct puppets *p, uint32_t number);

const struct puppet *puppets_node(const struct puppets *p, uint32_t node);
/* As the acting root has told its daemon. */
uint32_t puppets_up_count(const struct puppets *p);
bool puppets_up(const struct puppets *p, uint32_t node);

/* Waits until it holds; false if it does not in time. */
bool puppets_until(struct puppets *p, uint64_t limit_ns,
                   bool (*holds)(const struct puppets *p, void *what), void *what);
/* Waits for the final answer. */
bool puppets_await(struct puppets *p, uint32_t number, uint64_t limit_ns);

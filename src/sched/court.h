/* SPDX-License-Identifier: MIT */
/* The court: hosts a scheduling policy, and judges it.
 *
 * A machine inside a machine: its owner (the machine manager, the trace simulator, a test) tells it what
 * happens; the court tells the policy, asks it to decide, and keeps the books of jobs, nodes and slots that the
 * policy looks at (include/storm/policy.h). What was decided is taken with court_next().
 *
 * A decision is judged when it is made. The first wrong one ends the policy: the court says why (COURT_FAULT)
 * and goes on under fcfs with all jobs as they are. The same way a policy is exchanged on purpose.
 *
 * Slots take turns by themselves as soon as jobs are in two of them, whatever the policy is: so jobs that
 * another policy left in a slot still run. When there is nobody in the slot that runs, the next runs at once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/nodeset.h"
#include "sched/want.h"
#include "storm/policy.h"

enum { COURT_WORDS_MAX = 200, COURT_OWN_MAX = 64 };

#define COURT_NONE       UINT32_MAX /* no job */
#define COURT_MEMORY_ANY UINT32_MAX /* memory of a node that is not limited */

struct court_config {
    struct storm_limits limits;
    uint32_t universe; /* of node sets; 0: the nodes */
    uint32_t pes;      /* of every node at first; 0: pes_max */
    uint32_t running;  /* jobs that run at once; 0: as many as there are PEs and slots */
    uint32_t sections; /* of all jobs that run at once, as far as these have any; 0: none may */
    /* Nothing outlives its estimate: what has used it up counts as ended, even before that is told. So it is
     * in simulations; in the world it takes until it has ended. */
    bool ends_hold;
    /* Policies that want to be woken sooner are woken so long after; 0: a tick. Where a tick is a nanosecond, a job that outlasts its
     * estimate, and so is expected to end with the next tick, must not have them asked at each. */
    uint64_t wake_least;
    const struct storm_policy
        *guest; /* one that is not built in and may be chosen later; NULL: none */
};

/* What a job is. Node sets and sections are borrowed until it has ended; NULL or empty: no matter. */
struct court_order {
    uint64_t id;
    uint32_t nodes, ppn;
    uint32_t procs;  /* 0: nodes * ppn */
    uint32_t memory; /* MiB that it takes on each node; 0: nothing is said of it */
    bool exclusive;
    const struct nodeset *only, *exclude;
    /* Nodes that have what it needs; NULL: all do. Who is in it may change at any time, see court_met(). */
    const struct nodeset *meets;
    /* Nodes that it does not get for the time being; as `meets`. NULL: none. */
    const struct nodeset *avoid;
    /* Parts of different sizes and needs, that start together on different nodes; `nodes`, `ppn` and `memory` do not
     * count then. What else is said holds for all of them. */
    const struct court_section *sections;
    uint32_t section_count; /* at most COURT_SECTIONS_MAX; 0: it has none */
    int32_t priority;
    uint64_t estimate; /* STORM_NEVER: not known */
    uint64_t begin;    /* not before */
    uint32_t window;   /* it starts in this one only; 0: in none */
    uint64_t rank;     /* among those of its priority; 0: as it comes. All have one, or none has */
};

enum court_effect_kind {
    COURT_START, /* job: on court_nodes(), in its slots */
    COURT_STOP,  /* job: is to end */
    COURT_SLOTS, /* job: runs in other slots from now on */
    COURT_TURN,  /* slot: runs now */
    COURT_FAULT  /* words: the policy was wrong, and is fcfs now */
};

struct court_effect {
    enum court_effect_kind kind;
    uint32_t job;
    uint32_t slot;
    uint64_t slots;
    const char *words;
};

struct court;

size_t court_bytes(const struct court_config *c);

/* In the arena; `policy` is built in or the guest. No node is usable yet. */
struct court *court_new(const struct court_config *c, const struct storm_policy *policy,
                        struct arena *a);

/* ---- what happens; `now` never goes back ---- */

/* While it is held the policy is told, and not asked. */
void court_hold(struct court *c, uint64_t now, bool held);

/* Though it is held: asks the policy, if anything has happened since it was asked and it `may` decide; and sees to slots
 * that are empty, in any case. So its owner can gather what happens at once. */
void court_ask(struct court *c, uint64_t now, bool may);
void court_node_pes(
    struct court *c, uint32_t node,
    uint32_t pes); /* it is not usable; no more are held there, and nobody holds all of it */
/* How special it is, 0 at first: who can have others gets those of a lower rank, of these the narrower ones, of these the
 * lower ones. At any time. */
void court_node_rank(struct court *c, uint32_t node, uint8_t rank);
/* Its memory in MiB, not limited at first. At any time: if jobs have more nothing happens to them, and nothing comes that
 * takes any. What they hold is one book for all slots: a job keeps its memory while others have their turn. Who waits is
 * looked at with what happens next; court_met() is to be called if that is to be now. */
void court_node_memory(struct court *c, uint32_t node, uint32_t units);
void court_set_usable(struct court *c, uint64_t now, const struct nodeset *nodes, bool usable);

/* These nodes are kept from `from` until before `to` for jobs whose orders name the window: what runs there when it
 * begins goes on, and so does what its jobs leave running at its end. -ENOSPC: too many windows; -EINVAL: it would be over
 * at once, or has no node or no number; -EEXIST: one of the nodes is in another one at the same time. One that is over
 * is forgotten. */
int court_window_add(struct court *c, uint64_t now, uint32_t id, uint64_t from, uint64_t to,
                     const struct nodeset *nodes);
/* There is none of that number any more. Jobs that name it wait until they are withdrawn. */
void court_window_remove(struct court *c, uint64_t now, uint32_t id);

/* Is there one of that number; has it begun? */
bool court_window_known(const struct court *c, uint32_t id, bool *ret_open);
/* One that was given nodes: are these kept from it, if it started only now? */
bool court_window_bars(const struct court *c, uint32_t job);
/* Nodes where it could not begin now because of windows; NULL: none. False: nowhere. Valid until the court is called for something
 * else about windows. */
bool court_window_leaves(const struct court *c, uint32_t job, const struct nodeset **ret_barred);

/* Nodes are not any more what they were: sets of those that meet a need have changed. */
void court_met(struct court *c, uint64_t now);

/* Would all nodes (of its window) be enough for it, if they were usable, had what it needs, and nobody else were there? */
bool court_could(const struct court *c, const struct court_order *o);

/* -ENOSPC: too many jobs; -E2BIG: not even all nodes are enough for it, or have the memory. */
int court_arrive(struct court *c, uint64_t now, const struct court_order *o, uint32_t *ret_job);

/* Of a former life: it has been running there; one with sections on as many sets, one behind another. -EBUSY: another has
 * these PEs in that slot; -EINVAL: sections had other numbers of nodes, or some in common. */
int court_resume(struct court *c, uint64_t now, const struct court_order *o, uint64_t started,
                 const struct nodeset *nodes, uint32_t slot, uint32_t *ret_job);

/* It has ended, or does not want to start any more. Its number may be given to another from now on. */
void court_end(struct court *c, uint64_t now, uint32_t job);
/* What it has is about to be resumed by others, which take its place; then it ends. The policy hears of these first, so that
 * nobody is promised what is theirs. */
void court_hand_over(struct court *c, uint64_t now, uint32_t job);
void court_wants(struct court *c, uint64_t now, uint32_t job, uint32_t nodes);
void court_measured(struct court *c, uint64_t now, uint32_t job, const struct storm_measures *m);

/* Its time has come, see court_due(). */
void court_tick(struct court *c, uint64_t now);

/* Another policy, with the same jobs; and so many slots from now on, no more than there were at first. Jobs that are in
 * higher ones stay there and have their turns. */
void court_change(struct court *c, uint64_t now, const struct storm_policy *policy, uint32_t slots,
                  uint64_t quantum);

/* ---- what follows ---- */

/* The next effect; false: there is none. To be called after everything that has happened. */
bool court_next(struct court *c, struct court_effect *ret);

/* When court_tick() is to be called; STORM_NEVER: not. */
uint64_t court_due(const struct court *c);

/* Slots, as bits, that take turns in ascending order, each for a quantum; 0: none do, or the policy says whose turn it is. The tick
 * for their turns need not come each time: one that is late takes all turns that were due. */
uint64_t court_cycle(const struct court *c);
uint64_t court_turn_ends(const struct court *c); /* of the turn that is on; STORM_NEVER: not */
uint64_t court_due_but_turns(const struct court *c);

const struct storm_job *court_job(const struct court *c, uint32_t job);
const struct nodeset *court_nodes(const struct court *c, uint32_t job); /* of a job that runs */
/* Those of a section of it. */
const struct nodeset *court_section_nodes(const struct court *c, uint32_t job, uint32_t section);
const struct storm_policy *court_policy(const struct court *c);
uint32_t court_slot(const struct court *c); /* that runs now */
uint32_t court_rows(const struct court *c); /* slots with jobs of their own */
uint64_t court_free(const struct court *c, uint32_t slot);
const struct storm_limits *court_limits(const struct court *c); /* those of now */
uint32_t court_row_jobs(const struct court *c, uint32_t slot);
uint32_t court_node_pes_of(const struct court *c, uint32_t node);
uint32_t court_node_used(const struct court *c, uint32_t slot, uint32_t node);
uint32_t court_node_memory_of(const struct court *c, uint32_t node);
uint64_t court_node_memory_held(const struct court *c, uint32_t node); /* by jobs of all slots */
uint32_t court_queued(const struct court *c);
uint32_t court_running(const struct court *c);
uint32_t court_head(const struct court *c); /* the first that waits, COURT_NONE: nobody does */

/* Why a job waits, and until when. */
struct court_outlook {
    uint64_t at;           /* expected to start by then; STORM_NEVER: nobody knows */
    uint32_t slot;         /* that it can have first */
    uint64_t lacks;        /* PEs that are not free for it there */
    uint32_t lacks_memory; /* nodes that have the PEs, and not the memory, of those it needs more */
    uint64_t ends;         /* a job whose end makes room for it; 0: none */
    uint64_t endless;      /* a job that is in its way, and has no estimate; 0: none */
    uint32_t window;       /* that keeps nodes from it; 0: none */
    bool long_queue;       /* too many are before it to look at them all */
};

/* Of one that waits. Takes steps in proportion to nodes and to what runs, not to what waits. */
void court_outlook(struct court *c, uint32_t job, struct court_outlook *ret);

/* Reckons everything anew and compares. For tests and the simulator. */
bool court_conserved(const struct court *c);

/* SPDX-License-Identifier: MIT */
/* The scheduling plug-in: what a policy sees of the machine, and what it may decide.
 *
 * A policy is a table of functions and a piece of memory. It is told what happens (a job arrived, a job
 * ended, nodes came or went) and then asked to decide; it looks at the machine through the functions below
 * and says which job starts, and in which slot. It keeps no clock, makes no system call and allocates
 * nothing: time is a number of ticks, and all the memory it will ever have is reckoned from the limits before
 * it begins. So the same object serves the machine manager, the trace simulator and a test.
 *
 * The host judges every decision when it is made. A policy that breaks a rule (a job started twice, on
 * processors that are busy, on a node that is down) is told -EINVAL and is never called again: the host goes
 * on under first come, first served, and says why. No job is lost by it.
 *
 * A policy may be begun at any time: after init it is told every job that runs (`resumed`) and then every job
 * that waits (`arrived`), in the order of the queue. What it knows must follow from that.
 *
 * A machine is nodes 0 .. nodes-1 of some processors (PEs) each, times slots: the rows of the Ousterhout
 * matrix. A job holds the same number of PEs on each of its nodes, in its own slot. Policies that do not slice
 * time use slot 0. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STORM_POLICY_VERSION 1
#define STORM_POLICY_SYMBOL  "storm_policy" /* of a shared object: a const struct storm_policy */

#define STORM_NEVER       UINT64_MAX
#define STORM_SLOTS_MAX   64
#define STORM_WINDOWS_MAX 64

/* Fixed while a policy lives. */
struct storm_limits {
    uint32_t nodes;
    uint32_t pes_max; /* of a node */
    uint32_t jobs;    /* waiting and running, at once */
    uint32_t slots;   /* rows: the multiprogramming level (MPL), at least 1 */
    uint64_t quantum; /* ticks */
};

enum storm_job_state { STORM_WAITS, STORM_RUNS, STORM_OVER };

/* A job. The host keeps it up to date; a policy only reads it, from `arrived` or `resumed` until `ended`. */
struct storm_job {
    uint64_t id;         /* as users know it */
    uint32_t nodes, ppn; /* so many nodes with so many PEs on each */
    uint32_t procs;      /* processes: nodes <= procs <= nodes * ppn */
    uint32_t pes;        /* what it takes in all, for reckoning: nodes * ppn, or whole nodes */
    bool exclusive;      /* shares its nodes with nobody in its slot */
    bool chooses;        /* not every node will do for it: ask storm_fits, counting is not enough */
    uint8_t state;       /* enum storm_job_state */
    int32_t priority;    /* higher comes first */
    uint32_t slot;       /* its own, if it runs */
    uint64_t
        slots; /* all slots it runs in, a bit each: those that idle columns let it run in as well */
    uint64_t arrived;
    uint64_t estimate; /* ticks it needs at most on a machine of its own; STORM_NEVER: not known */
    uint64_t started;
    uint64_t
        ends; /* expected: started + estimate, times slots if time is sliced; STORM_NEVER: not known */
    uint64_t reserved; /* when it is expected to start, for who asks; STORM_NEVER: not known */
};

/* What was measured of a job since it was last told. */
struct storm_measures {
    uint64_t cpu;    /* ticks of all its processes */
    uint64_t waited; /* ticks they waited for each other */
};

struct storm_host;

/* What the host does for a policy. Called through the short forms below. */
struct storm_host_ops {
    uint32_t size; /* of this table: it may grow at its end */
    uint64_t (*now)(const struct storm_host *h);
    const struct storm_limits *(*limits)(const struct storm_host *h);
    void *(*own)(struct storm_host *h, const struct storm_job *j);
    const struct storm_job *(*queued)(struct storm_host *h, const struct storm_job *after);
    const struct storm_job *(*running)(struct storm_host *h, const struct storm_job *after);
    const struct storm_job *(*candidate)(struct storm_host *h, const struct storm_job *after,
                                         uint32_t slot);
    uint64_t (*pes)(const struct storm_host *h);
    uint64_t (*free)(const struct storm_host *h, uint32_t slot);
    uint32_t (*span)(const struct storm_host *h, const struct storm_job *j, uint32_t from,
                     uint32_t *ret_last);
    bool (*fits)(struct storm_host *h, const struct storm_job *j, uint32_t slot, uint32_t first,
                 uint32_t last);
    uint64_t (*earliest)(struct storm_host *h, const struct storm_job *j, uint32_t slot);
    uint64_t (*reserve)(struct storm_host *h, const struct storm_job *j, uint32_t slot);
    bool (*may)(struct storm_host *h, const struct storm_job *j, uint32_t slot);
    void (*expect)(struct storm_host *h, const struct storm_job *j, uint64_t start);
    int (*start)(struct storm_host *h, const struct storm_job *j, uint32_t slot, uint32_t first,
                 uint32_t last);
    int (*start_on)(struct storm_host *h, const struct storm_job *j, uint32_t slot,
                    const uint32_t *nodes, uint32_t count);
    int (*stop)(struct storm_host *h, const struct storm_job *j);
    int (*resize)(struct storm_host *h, const struct storm_job *j, uint32_t nodes);
    bool (*merge)(struct storm_host *h, uint32_t into, uint32_t from);
    int (*turn)(struct storm_host *h, uint32_t slot);
    int (*wake)(struct storm_host *h, uint64_t at);
    uint64_t (*window)(const struct storm_host *h, uint32_t index, uint64_t *ret_from,
                       uint64_t *ret_to);
    uint64_t (*held)(const struct storm_host *h, const struct storm_job *j);
};

struct storm_host {
    const struct storm_host_ops *ops;
};

/* ---- what a policy is ---- */

enum storm_policy_flags {
    STORM_SLICED = 1,      /* more than one slot: a job's estimate counts times the slots */
    STORM_ALTERNATIVE = 2, /* jobs run as well in slots that leave all their columns idle */
    STORM_UNCOORDINATED =
        4 /* slots are only places: no switching, nodes share their PEs as they like */
};

/* A function that is NULL is not missed. `self` is the policy's memory, zeroed before init. */
struct storm_policy {
    uint32_t version; /* STORM_POLICY_VERSION */
    uint32_t flags;
    const char *name;
    const char *words;                             /* what it does, in a line */
    size_t (*bytes)(const struct storm_limits *l); /* of its memory */
    uint32_t own; /* bytes it keeps for each job, zeroed: storm_own() */
    void (*init)(void *self, struct storm_host *h);
    void (*resumed)(void *self, struct storm_host *h, const struct storm_job *j);
    void (*arrived)(void *self, struct storm_host *h,
                    const struct storm_job *j); /* it may start from now on */
    void (*ended)(void *self, struct storm_host *h,
                  const struct storm_job *j); /* or was withdrawn */
    void (*nodes)(void *self,
                  struct storm_host *h); /* some came or went: all that was planned may be wrong */
    void (*wants)(void *self, struct storm_host *h, const struct storm_job *j, uint32_t nodes);
    void (*measured)(void *self, struct storm_host *h, const struct storm_job *j,
                     const struct storm_measures *m);
    void (*quantum)(void *self,
                    struct storm_host *h); /* the slice is over: storm_turn(); NULL: round robin */
    void (*decide)(void *self, struct storm_host *h); /* asked after everything that is told */
};

/* ---- looking ---- */

static inline uint64_t storm_now(const struct storm_host *h) {
    return h->ops->now(h);
}

static inline const struct storm_limits *storm_limits(const struct storm_host *h) {
    return h->ops->limits(h);
}

/* The policy's own bytes of this job, aligned to 8. */
static inline void *storm_own(struct storm_host *h, const struct storm_job *j) {
    return h->ops->own(h, j);
}

/* Jobs that wait, by priority and then as they came; NULL before the first and behind the last. The one it
 * goes on from may have been started meanwhile, but only since the last call. */
static inline const struct storm_job *storm_queued(struct storm_host *h,
                                                   const struct storm_job *after) {
    return h->ops->queued(h, after);
}

/* Jobs that run, by expected end and then as they started. None may start or stop in between. */
static inline const struct storm_job *storm_running(struct storm_host *h,
                                                    const struct storm_job *after) {
    return h->ops->running(h, after);
}

/* The next job that waits and may start in this slot now: storm_queued and storm_may in one, and fast. */
static inline const struct storm_job *storm_candidate(struct storm_host *h,
                                                      const struct storm_job *after,
                                                      uint32_t slot) {
    return h->ops->candidate(h, after, slot);
}

/* PEs of the nodes that can be used; those that are idle in a slot. */
static inline uint64_t storm_pes(const struct storm_host *h) {
    return h->ops->pes(h);
}

static inline uint64_t storm_free(const struct storm_host *h, uint32_t slot) {
    return h->ops->free(h, slot);
}

/* A run of nodes of a job that runs, or (in `ended`) has just ended, at or above `from`: its first and last; UINT32_MAX: there is
 * none. Until it is asked for, one that was started in this `decide` may be given other nodes if that makes room for another. */
static inline uint32_t storm_span(const struct storm_host *h, const struct storm_job *j,
                                  uint32_t from, uint32_t *ret_last) {
    return h->ops->span(h, j, from, ret_last);
}

/* PEs of those nodes that can be used: a node that is drained keeps its jobs, and nobody else gets it after them. */
static inline uint64_t storm_held(const struct storm_host *h, const struct storm_job *j) {
    return h->ops->held(h, j);
}

/* Could it start now in this slot, on any nodes; or on some of these, and not against storm_reserve? */
static inline bool storm_fits_in(struct storm_host *h, const struct storm_job *j, uint32_t slot,
                                 uint32_t first, uint32_t last) {
    return h->ops->fits(h, j, slot, first, last);
}

static inline bool storm_fits(struct storm_host *h, const struct storm_job *j, uint32_t slot) {
    return h->ops->fits(h, j, slot, 0, UINT32_MAX);
}

/* When it will fit there, by the expected ends of what runs. */
static inline uint64_t storm_earliest(struct storm_host *h, const struct storm_job *j,
                                      uint32_t slot) {
    return h->ops->earliest(h, j, slot);
}

/* Nodes may be reserved for a window of time, and for jobs that no policy sees: before it nothing may start there that
 * would not be over by then, and while it is open its nodes are as if they were down. A policy need not know: what the
 * functions here allow keeps out of them. One that plans ahead in PEs may ask how many will be missing: those of the
 * window at this index, from when to when; STORM_NEVER: there is none. */
static inline uint64_t storm_window(const struct storm_host *h, uint32_t index, uint64_t *ret_from,
                                    uint64_t *ret_to) {
    return h->ops->window(h, index, ret_from, ret_to);
}

/* ---- deciding ---- */

/* Holds the earliest time that the job can have in this slot, which is returned; STORM_NEVER: it cannot be
 * known. From now to the end of this `decide` nothing that storm_may allows delays it. One at a time. */
static inline uint64_t storm_reserve(struct storm_host *h, const struct storm_job *j,
                                     uint32_t slot) {
    return h->ops->reserve(h, j, slot);
}

/* Does it fit now, and would it be over by the reserved time or leave enough for it? */
static inline bool storm_may(struct storm_host *h, const struct storm_job *j, uint32_t slot) {
    return h->ops->may(h, j, slot);
}

/* When a waiting job is expected to start, for who asks. */
static inline void storm_expect(struct storm_host *h, const struct storm_job *j, uint64_t start) {
    h->ops->expect(h, j, start);
}

/* Starts it on the least special nodes that fit (and leave a reservation alone), where all are alike on the lowest: of all, of a
 * range, or on these. */
static inline int storm_start(struct storm_host *h, const struct storm_job *j, uint32_t slot) {
    return h->ops->start(h, j, slot, 0, UINT32_MAX);
}

static inline int storm_start_in(struct storm_host *h, const struct storm_job *j, uint32_t slot,
                                 uint32_t first, uint32_t last) {
    return h->ops->start(h, j, slot, first, last);
}

static inline int storm_start_on(struct storm_host *h, const struct storm_job *j, uint32_t slot,
                                 const uint32_t *nodes, uint32_t count) {
    return h->ops->start_on(h, j, slot, nodes, count);
}

/* Has it ended. It runs on until the host tells that it has. */
static inline int storm_stop(struct storm_host *h, const struct storm_job *j) {
    return h->ops->stop(h, j);
}

/* Gives it that many nodes: an answer to `wants`. -ENOTSUP where jobs cannot change. */
static inline int storm_resize(struct storm_host *h, const struct storm_job *j, uint32_t nodes) {
    return h->ops->resize(h, j, nodes);
}

/* Slot unification: if both have jobs and no PE is used in both, all jobs of the second slot move to the first. */
static inline bool storm_merge(struct storm_host *h, uint32_t into, uint32_t from) {
    return h->ops->merge(h, into, from);
}

/* This slot runs now. */
static inline int storm_turn(struct storm_host *h, uint32_t slot) {
    return h->ops->turn(h, slot);
}

/* Asks to be asked at this time even if nothing happens. Only the last one counts. */
static inline int storm_wake(struct storm_host *h, uint64_t at) {
    return h->ops->wake(h, at);
}

#ifdef __cplusplus
}
#endif

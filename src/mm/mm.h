/* SPDX-License-Identifier: MIT */
/* The machine manager: the daemon's machine at the root.
 *
 * It admits jobs, gives them nodes, launches them, gathers their ends and answers clients. What must
 * not be forgotten is logged, and an answer leaves only when its event is durable; after a crash the
 * same code replays the log. docs/jobs.md tells the whole way of a job. */
#pragma once

#include "base/arena.h"
#include "base/roster.h"
#include "machine/limits.h"
#include "machine/machine.h"
#include "storm/policy.h"
#include "wire/message.h"

struct mm_config {
    struct limits limits;
    uint32_t pes;     /* of each node of which nothing else is said */
    uint32_t pes_max; /* of any node ever; 0: the same */
    struct input_traits
        said; /* what the administrator says of nodes, until INPUT_TRAITS. Borrowed by mm_new */
    uint32_t jobs_max; /* that are remembered, queued and running ones and some that are over; a
                        * power of two */
    uint32_t clients_max;
    const struct roster
        *roster; /* who is there, and their names, until INPUT_ROSTER says so. Borrowed by mm_new */
    /* Who starts when; NULL: first come, first served. And one that is not built in, NULL: none. */
    const struct storm_policy *policy, *guest;
    const char *trouble; /* why it is not the one that was asked for; NULL: it is. Borrowed */
    uint32_t
        slots; /* jobs that share a processor at most, if the policy shares time; 0: as usual */
    uint64_t quantum_ns;  /* of their turns; 0: as usual */
    uint64_t bytes_per_s; /* of a node's link; 0: all are on one host */
    uint64_t lease_ns;    /* after which a node that was lost has ended its processes */
    uint64_t absent_ns;   /* for a node to come back before its jobs are lost */
    uint64_t orphan_ns;   /* for a client to come back before its job is ended */
    uint64_t grace_ns;  /* from the first death to SIGTERM for the rest, and from that to SIGKILL */
    uint64_t launch_ns; /* for a launch to be decided */
    uint64_t vacate_ns; /* from calling back what is lent to ending it */
    uint32_t hosts_each; /* that a job may have or wait for beyond its own nodes; 0: any number */
    uint32_t hosts_all;  /* the same of all jobs */
};

/* The usual times. */
void mm_config_times(struct mm_config *c);

struct mm;

size_t mm_bytes(const struct mm_config *c);
struct mm *mm_new(const struct mm_config *c, struct arena *a);
struct machine mm_machine(struct mm *m);

/* For tests and checkers. */
struct mm_counts {
    uint32_t queued, running;
    uint32_t nodes, nodes_up;  /* that there are: numbers that are vacant are not counted */
    uint64_t submitted, ended; /* in this life */
};

void mm_counts(const struct mm *m, struct mm_counts *ret);

struct mm_job {
    enum job_state state;
    enum job_kind kind;
    bool settled, logged;
    bool holds; /* nodes: it has been given some, and is not over */
    bool held;  /* and their processors are its own, or its allocation's */
    bool begun; /* its start is durable */
    bool suspended;
    bool asked; /* somebody wants it to end */
    uint16_t attempt;
    uint32_t status;
    uint32_t each; /* processors on each node, if that has as many as usual */
    uint32_t row;  /* of the matrix, if it is held */
    uint32_t inside;
    uint32_t parent; /* whose host it is; 0: it is none */
    uint64_t output;
    struct usage usage;            /* when it is over */
    const struct nodeset *nodes;   /* NULL: it has none */
    const struct nodeset *waiting; /* of them: have not told of their end */
    uint8_t phase, reason;         /* for people who look for a fault */
};

/* False if it is not known (any more). */
bool mm_job(const struct mm *m, uint32_t id, struct mm_job *ret);
/* Why it waits, in words; "": it does not. For people who look for a fault. */
void mm_why(const struct mm *m, uint32_t id, char *out, size_t cap);
uint32_t mm_next_job(const struct mm *m); /* higher than any that there was */

/* Is the log of former lives being read? What there is then is not the truth yet. */
bool mm_replaying(const struct mm *m);

/* Is everything durable, and nothing being started? */
bool mm_quiet(const struct mm *m);

/* Has a launch been asked of the primitives that is not decided, for all that is known here? */
bool mm_launching(const struct mm *m);

bool mm_drained(const struct mm *m, uint32_t node);

/* Until when it is reserved at the latest, of the calendar, as of then; 0: it is not. */
uint64_t mm_reserved(const struct mm *m, uint32_t node, uint64_t at_ns);
uint64_t mm_calendar(const struct mm *m);

/* Who starts when, for how long they share, and what was wrong with the policy before this ("": nothing). */
struct mm_policy {
    const struct storm_policy *policy;
    uint32_t slots, rows; /* rows: that have jobs */
    uint64_t quantum_ns;
    const char *fault;
};
void mm_policy(const struct mm *m, struct mm_policy *ret);

/* S9: reckons anew what is held for whom, in `scratch`, a word for each node. NULL, or what is wrong.
 * Places that were never taken have nothing in them: they are looked at only if `all`. */
const char *mm_wrong(const struct mm *m, uint32_t *scratch, bool all);

/* S10: is every table, ring and heap within its limit? NULL, or which is not. */
const char *mm_over_limit(const struct mm *m);

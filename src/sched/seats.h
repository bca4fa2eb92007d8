/* SPDX-License-Identifier: MIT */
/* Where a job sits in the matrix: what the policies that slice time have in common.
 *
 * A job goes to the least loaded block of its level that has room in some slot, the leftmost of these, in the
 * lowest such slot. If no block has room, though there are nodes enough in a slot, it takes those: an idle
 * processor is worth more than neighbours. */
#pragma once

#include "sched/buddy.h"
#include "storm/policy.h"

/* All that such a policy keeps. */
struct seats {
    bool left;  /* somebody has ended: rows may become one */
    bool exact; /* the tree has all who run, and no one else */
    struct buddy buddy;
    uint64_t words[];
};

struct seat {
    uint32_t slot, first, last;
};

/* Functions of the policy itself: its memory is a struct seats. */
size_t seats_bytes(const struct storm_limits *l);
void seats_init(void *self, struct storm_host *h);
void seats_resumed(void *self, struct storm_host *h, const struct storm_job *j);
void seats_ended(void *self, struct storm_host *h, const struct storm_job *j);

/* Is there room for anybody who waits? */
bool seats_wanted(struct storm_host *h);

/* The loads are those of what runs now. */
void seats_look(struct seats *s, struct storm_host *h);

/* A seat for it now, in a slot where storm_may allows it; false: there is none. */
bool seats_find(const struct seats *s, struct storm_host *h, const struct storm_job *j,
                struct seat *ret);

/* Starts it there. */
bool seats_start(struct seats *s, struct storm_host *h, const struct storm_job *j,
                 const struct seat *seat);

/* Starts whoever has a seat, in the order of the queue. */
void seats_fill(struct seats *s, struct storm_host *h);

/* Slot unification, if somebody has ended: rows that use no PE twice become one. */
void seats_unify(struct seats *s, struct storm_host *h);

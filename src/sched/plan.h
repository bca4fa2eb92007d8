/* SPDX-License-Identifier: MIT */
/* Reservations: how many processors are free from when to when.
 *
 * A function of time in steps; the last one lasts for ever. What is taken may exceed what there is (a machine
 * that has lost nodes): then so many are free less than none, and nobody else is put there. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "storm/policy.h"

struct plan_step {
    uint64_t at;
    int64_t free;
};

struct plan {
    struct plan_step *steps;
    uint32_t first, end; /* of those in use */
    uint32_t cap;
};

/* For so many reservations at once. */
size_t plan_steps(uint32_t reservations);

/* All free from `now` on. */
void plan_begin(struct plan *p, struct plan_step *steps, uint32_t cap, uint64_t now, int64_t pes);

/* So many more are free from then on, which is not before what is known. */
void plan_append(struct plan *p, uint64_t at, uint64_t pes);

/* The past is forgotten. */
void plan_pass(struct plan *p, uint64_t now);

/* The earliest time, not before `from`, from which so many are free for so long; STORM_NEVER: there is none. */
uint64_t plan_earliest(const struct plan *p, uint64_t from, uint64_t ticks, uint64_t pes);

/* From `from` until before `to` (STORM_NEVER: for ever), what lies in the past left out. */
void plan_take(struct plan *p, uint64_t from, uint64_t to, uint64_t pes);
void plan_give(struct plan *p, uint64_t from, uint64_t to, uint64_t pes);

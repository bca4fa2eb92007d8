/* SPDX-License-Identifier: MIT */
/* What the lengths of a cycle's steps say about workers: Graham's greedy order, longest first, and how many it takes.
 *
 * The paper, section 3.1: a cycle cannot be shorter than its longest step; beyond the number of workers that does all the
 * others in that time more are of no use. */
#pragma once

#include <stdint.h>

/* How long steps of these lengths, each given to who is free first, in this order, take on so many equal workers.
 * `scratch` has room for `workers` numbers. */
uint64_t order_makespan(const uint64_t *ns, uint32_t steps, uint32_t workers, uint64_t *scratch);

/* The fewest workers on which steps, sorted longest first, take no longer than the longest. `scratch` has room for `steps`
 * numbers. 0: there are no steps. */
uint32_t order_fewest(const uint64_t *ns_falling, uint32_t steps, uint64_t *scratch);

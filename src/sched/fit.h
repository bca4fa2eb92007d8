/* SPDX-License-Identifier: MIT */
/* Which nodes for which sections of a job: exact, by counting.
 *
 * A node will do for some of the sections: its mask, a bit each. All nodes of one mask are alike, so there are at most
 * 255 kinds. By Hall's theorem nodes are enough for all sections if for each set of sections those that will do for one
 * of them are as many as these want together. The other way round, nodes that were picked can all be used if for each
 * set of sections those that will do for no other are not more than these want: so nodes may be picked one by one, in
 * whatever order is preferred, each if that still holds, and whoever picks so ends with enough if there are enough. A
 * job without sections is one section. */
#pragma once

#include "sched/want.h"

enum { FIT_MASKS = 1 << COURT_SECTIONS_MAX };

struct fit {
    uint32_t sections, masks; /* 2 to the power of sections */
    uint32_t nodes;           /* wanted in all */
    uint32_t count;           /* of those that were told, or picked */
    uint32_t cap[FIT_MASKS];  /* nodes that a set of sections wants together */
    uint32_t have[FIT_MASKS]; /* by mask; while nodes are picked: of all masks within the set */
};

void fit_init(struct fit *f, const struct want *w);

#define FIT_MEMORY_ANY INT64_MAX

/* A node: its PEs, how many of them are free, and how much memory. */
struct fit_node {
    uint32_t pes, left;
    int64_t memory; /* FIT_MEMORY_ANY: no matter */
};

/* Sections that it will do for: by size alone, by name alone, and by need as well. */
uint32_t fit_mask_by_size(const struct want *w, const struct fit_node *is);
uint32_t fit_mask_by_name(const struct want *w, uint32_t node);
uint32_t fit_mask(const struct want *w, uint32_t node, const struct fit_node *is);

/* ---- are there enough? ---- */

/* There is one of this mask, there is not any more; 0 counts for nothing. */
static inline void fit_tell(struct fit *f, uint32_t mask) {
    f->have[mask]++;
    f->count += mask != 0;
}

static inline void fit_untell(struct fit *f, uint32_t mask) {
    f->have[mask]--;
    f->count -= mask != 0;
}

/* So many nodes are missing; 0: there are enough. */
uint32_t fit_missing(const struct fit *f);

/* ---- which? Begun anew with fit_init ---- */

/* Picks one of this mask, if all that were picked can still be used. */
bool fit_pick(struct fit *f, uint32_t mask);

static inline bool fit_picked(const struct fit *f) {
    return f->count == f->nodes;
}

/* One that was picked, all having been: the section it goes to. Each once. */
uint32_t fit_assign(struct fit *f, uint32_t mask);

/* SPDX-License-Identifier: MIT */
/* The Ousterhout matrix: rows are slots of time, columns the nodes with their processors (PEs).
 *
 * Each row has books of its own: in a row no PE has two jobs. A job gets the same number of PEs on each of its
 * nodes, all in one row. A node that is down keeps what is held there until that is given back; nothing new
 * is put on it, in no row.
 *
 * Where nodes have one PE (a machine of a trace) a row is a bitmap and nothing else, and what is done to a run of
 * nodes takes a step for 64 of them.
 *
 * Nodes need not be alike: each has a rank, how special it is, and PEs of its own number. Who takes nodes gets the
 * least special that fit, of these the narrowest, of these the lowest. Where all are alike that is the lowest, and
 * nothing of this is looked at. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bits.h"
#include "base/nodeset.h"
#include "sched/fit.h"

#define MATRIX_PES_MAX 4096 /* of a node */

struct matrix_config {
    uint32_t nodes;
    uint32_t universe; /* of node sets, at least `nodes` */
    uint32_t pes;      /* of every node at first */
    uint32_t pes_max;  /* of any node ever */
    uint32_t rows;
};

struct matrix_row {
    uint64_t *some; /* bitmap: usable, and a PE is free */
    uint64_t *
        whole; /* bitmap: usable, and all its PEs are free; the same array if all nodes have one PE */
    uint64_t *rich;  /* bitmaps: usable, and 2, 4, 8 ... PEs are free; if a node may have as many */
    uint64_t *taken; /* bitmap, if all nodes have one PE */
    uint16_t *used;  /* by node, if not */
    uint32_t some_count, whole_count;
    uint64_t free;  /* PEs of usable nodes */
    uint32_t jobs;  /* of the row; counted by whoever has them */
    uint64_t gives; /* how often more became free on a node: so many more at most fit who did not */
};

struct matrix {
    struct matrix_config config;
    uint32_t words;
    uint32_t levels;  /* bitmaps of the rich */
    uint16_t *pes;    /* by node, unless all have one */
    uint8_t *ranks;   /* by node */
    uint64_t *order;  /* nodes (the low half) by rank, PEs, number; if they are not alike */
    bool uneven;      /* they are not */
    bool stale;       /* which is to be found out anew */
    uint64_t *usable; /* bitmap */
    uint64_t *marked; /* bitmap, to reckon with */
    uint64_t pes_usable;
    struct matrix_row *rows;
};

/* Where in a row: nodes of a range; if `room` is not NULL those that have as much left there, too; none of `barred`, and
 * those of `coveted` only if the others are not enough. */
struct matrix_where {
    uint32_t row;
    uint32_t first, last;
    const uint16_t *room;
    const struct nodeset *barred;  /* NULL: no node is */
    const struct nodeset *coveted; /* NULL: no node is */
    const struct nodeset *up;      /* can be used, instead of those that the matrix has; NULL */
    /* Memory that is left on each node, and in the room: whoever keeps that book has it for all rows, as a job keeps its
     * memory while others have their turn. NULL: no matter. */
    const int64_t *memory, *memory_room;
};

size_t matrix_bytes(const struct matrix_config *c);

/* No node is usable yet. */
void matrix_init(struct matrix *m, const struct matrix_config *c, struct arena *a);

/* This node has another number of PEs; no more are held there, and nobody holds all of it. */
void matrix_set_pes(struct matrix *m, uint32_t node, uint32_t pes);
/* How special it is. Holds for what is taken from now on. */
void matrix_set_rank(struct matrix *m, uint32_t node, uint8_t rank);
void matrix_set_usable(struct matrix *m, const struct nodeset *set, bool usable);

bool matrix_fits(const struct matrix *m, const struct matrix_where *at, const struct want *w);
/* And if not: so many nodes more would have to fit at least, be it for the row alone; 0: that is not known. */
bool matrix_fits_or(const struct matrix *m, const struct matrix_where *at, const struct want *w,
                    uint32_t *ret_lacks);

/* Will this node do for it? */
bool matrix_suits(const struct matrix *m, const struct matrix_where *at, const struct want *w,
                  uint32_t node);

/* The first from this one on that will; UINT32_MAX: none does. */
uint32_t matrix_suiting(const struct matrix *m, const struct matrix_where *at, const struct want *w,
                        uint32_t from);

/* The first that will in the order in which nodes are taken, from this place on; `end`: none before that. */
uint32_t matrix_nth_suiting(const struct matrix *m, const struct matrix_where *at,
                            const struct want *w, uint32_t i, uint32_t end);

/* Sections of it that this node will do for, a bit each; of a job without sections the lowest. */
uint32_t matrix_mask(const struct matrix *m, const struct matrix_where *at, const struct want *w,
                     uint32_t node);

/* The least special nodes that fit. -EAGAIN: there are not enough; *ret is empty. */
int matrix_pick(struct matrix *m, const struct matrix_where *at, const struct want *w,
                struct nodeset *ret);
/* Which of them is for which section. -EINVAL: they will not do. */
int matrix_split(const struct matrix *m, const struct matrix_where *at, const struct want *w,
                 const struct nodeset *set, struct nodeset *const *parts);

/* Picks and takes them, for a job without sections. */
int matrix_take(struct matrix *m, const struct matrix_where *at, const struct want *w,
                struct nodeset *ret);

/* Takes exactly these: `each` PEs on every one, WANT_WHOLE: all. -EBUSY: somebody has them; -EHOSTDOWN: one
 * cannot be used, unless that does not matter; -EINVAL: there is no such node. Then nothing is taken and
 * *ret_node is the culprit. */
int matrix_hold(struct matrix *m, uint32_t row, const struct nodeset *set, uint32_t each,
                bool any_state, uint32_t *ret_node);
void matrix_give(struct matrix *m, uint32_t row, const struct nodeset *set, uint32_t each);

/* So many PEs of one node change hands, of a job that has others there or elsewhere. */
void matrix_shift(struct matrix *m, uint32_t row, uint32_t node, uint32_t each, bool take);

/* Are the nodes not alike? Then nodes are taken in another order than that of their numbers: the i'th of it. */
bool matrix_uneven(struct matrix *m);
static inline uint32_t matrix_nth(const struct matrix *m, uint32_t i) {
    return m->uneven ? (uint32_t)m->order[i] : i;
}

/* Are all these PEs idle in the row, whether the nodes are usable or not? */
bool matrix_idle(const struct matrix *m, uint32_t row, const struct nodeset *set, uint32_t each);

/* Is no PE used in both rows? */
bool matrix_disjoint(const struct matrix *m, uint32_t a, uint32_t b);
void matrix_copy_row(struct matrix *m, uint32_t to, uint32_t from);

static inline bool matrix_flat(const struct matrix *m) {
    return m->config.pes_max == 1;
}

static inline uint32_t matrix_node_pes(const struct matrix *m, uint32_t node) {
    return matrix_flat(m) ? 1 : m->pes[node];
}

static inline uint32_t matrix_node_used(const struct matrix *m, uint32_t row, uint32_t node) {
    const struct matrix_row *r = &m->rows[row];
    return r->taken ? bits_test(r->taken, node) : r->used[node];
}

/* Free PEs of a node in a row; 0 if it is down. */
static inline uint32_t matrix_node_free(const struct matrix *m, uint32_t row, uint32_t node) {
    return bits_test(m->usable, node) ? matrix_node_pes(m, node) - matrix_node_used(m, row, node)
                                      : 0;
}

/* Reckons every counter and bitmap anew and compares. For tests. */
bool matrix_conserved(const struct matrix *m);

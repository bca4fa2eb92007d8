/* SPDX-License-Identifier: MIT */
/* The file mover: takes bundles of files in, keeps them, and passes them on, piece by piece.
 *
 * A machine of its own in a process of its own beside a node's manager, started when there is something to
 * move; also inside a user's command that has files to give. Algorithms 6 and 7 of the STORM paper: a descriptor goes
 * first (TRANSFER, by the primitives), chunks go into a ring of slots at each receiver, and that all
 * have everything is known (by a compare) before anybody relies on it. Flow control is by
 * credits between neighbours: docs/files.md.
 *
 * What holds:
 *  - A piece is passed on only after it fitted its digest here, so whoever gets a wrong one knows whom to blame.
 *  - A taker never stops its giver: what it was too slow for is read again from what we keep.
 *  - A node asks for what it lacks, and for nothing else; so beginning again is no different from beginning. */
#pragma once

#include "base/arena.h"
#include "machine/machine.h"

struct mover;

struct mover_config {
    uint32_t universe;    /* numbers of nodes and seats */
    uint32_t self;        /* NO_NODE: a command's */
    uint32_t hauls;       /* transfers at once */
    uint32_t takers;      /* links of those who take from us */
    uint32_t pieces;      /* of the largest bundle */
    uint64_t slot_bytes;  /* most memory for the slots of one transfer */
    uint64_t beat_ns;     /* how often a giver that has nothing to send says that it is there */
    uint64_t patience_ns; /* without anything coming, from anybody: it is given up */
};

/* Set to the usual, but for `universe` and `self`. */
struct mover_config mover_usual(uint32_t universe, uint32_t self);

size_t mover_bytes(const struct mover_config *c);
struct mover *mover_new(const struct mover_config *c, struct arena *a);
struct machine mover_machine(struct mover *m);

/* How a transfer stands, for people who wait. */
struct mover_view {
    uint32_t pieces, here; /* of them, how many are here */
    uint32_t takers;       /* that take from us now */
    uint64_t bytes_put;    /* given to them */
    uint32_t furthest;     /* the piece that the foremost of them has got to */
    /* When the first of them had come, when it was given its first piece, and when the last so far had left;
     * 0: not yet. */
    uint64_t met_at, first_at, last_at;
    /* Of our own: has anybody said yet what it needs of a page behind the first, which has more than files? And did somebody have some of
     * that already? */
    bool asked, spared;
};

/* By number or, at its source, by offer. False if there is none. */
bool mover_look(const struct mover *m, uint64_t transfer, struct mover_view *ret);
/* Nothing is to be moved, and nobody waits. */
bool mover_idle(const struct mover *m);

/* SPDX-License-Identifier: MIT */
/* Where to cut a stream of bytes into pieces, as its contents say: bytes inserted or removed somewhere move
 * few of the cuts, and none far behind.
 *
 * A hash over the last sixteen bytes; a cut is where its upper bits are zero. The first part of a piece
 * is not looked at at all: that is most of the speed. */
#pragma once

#include "base/bytes.h"

struct cut {
    uint32_t least, most; /* bytes of a piece; the last one may have fewer */
    uint64_t mask;
};

/* Pieces of about this many bytes (4 KiB to 1 GiB), three quarters to seven quarters of it. */
void cut_init(struct cut *c, uint32_t bytes);

/* The length of the first piece of these bytes; all of them if no cut is found in fewer than `most`. Unless
 * `bytes` is the end of the stream there must be at least `most` of them. */
uint32_t cut_next(const struct cut *c, struct bytes bytes);

/* The same where a piece comes bit by bit: `had` bytes of it, fewer than `most` or as many, came before these. How many of
 * these it has, too; if that is not all of them it ends there. In memory, what came before them must lie before
 * them: CUT_BEFORE bytes of it. */
enum { CUT_BEFORE = 16 };
uint32_t cut_more(const struct cut *c, uint32_t had, struct bytes bytes);

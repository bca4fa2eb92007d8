/* SPDX-License-Identifier: MIT */
/* The files of a job of several programs: a bundle for each program, and the ranks that need it.
 *
 * Made by the client; the machine manager sends each bundle to the nodes that have such ranks, and to no other. Programs
 * that are one file share a crate. */
#pragma once

#include "wire/codec.h"

/* Ranks in a row: u32 first, u32 how many. */
enum { CRATE_RANGE_BYTES = 8 };

struct crate {
    struct bytes ranges;
    struct bytes copy; /* the body of a COPY */
};

struct rank_range {
    uint32_t first, count;
};

void crate_range_store(uint8_t out[CRATE_RANGE_BYTES], struct rank_range r);
bool crate_range_load(const struct crate *p, uint32_t index, struct rank_range *ret);

/* To be put behind those that are there. Length written, or -ENOBUFS. */
long crate_store(const struct crate *p, struct room out);

/* The one at *at, which moves on. 1, 0 at the end, or -EBADMSG. Views borrow. */
int crate_next(struct bytes crates, size_t *at, struct crate *ret);

/* The one with this number: as crate_next, 0: there are not so many. */
int crate_at(struct bytes crates, uint32_t number, struct crate *ret);

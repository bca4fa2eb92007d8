/* SPDX-License-Identifier: MIT */
/* What transfers carry in a simulation: real descriptors and tables, of contents that are only numbers.
 *
 * Every piece of contents that exists has a number of its own, its tag; pieces with the same tag are the same
 * bytes. Digests follow from tags. A stock is all cargoes that there are in one world. */
#pragma once

#include "base/random.h"
#include "wire/bundle.h"

/* Beside the tag of what was meant: what it was spoiled by. A tag has fewer bits. */
#define CARGO_SPOILED_ON_THE_WAY (UINT64_C(1) << 62)
#define CARGO_SPOILED_BY_GIVER   (UINT64_C(1) << 63)

struct cargo {
    struct bundle
        bundle; /* borrows from the descriptor; all its pieces, though one that is open says that there may be more */
    bool open;
    struct bytes descriptor;
    uint32_t pages;
    uint64_t *tags; /* of pieces; 0: a hole */
    uint32_t *lens; /* that are carried; 0 of a hole */
    uint8_t *table; /* all pages */
    uint8_t *memory;
};

struct stock {
    struct cargo **cargoes;
    uint32_t count;
    uint64_t tags; /* the highest that there is */
};

struct cargo_config {
    uint32_t pieces;
    uint32_t page_pieces;
    uint32_t piece_bytes;   /* of the longest */
    bool even;              /* all are as long, but for the last */
    uint64_t bytes;         /* even: of all; 0: as many as fit */
    const uint32_t *lens;   /* or all lengths, borrowed; then the three above are not used. NULL */
    uint32_t holes_percent; /* of pieces */
    bool open;              /* looked over while it is given, unless it is too small */
    uint32_t spare;         /* pieces that it could have, and has not */
    /* Shares all pieces with this one but for so many, here and there. NULL: none. */
    const struct cargo *like;
    uint32_t changes_percent;
};

/* Appends a cargo; returns its number. */
uint32_t stock_add(struct stock *f, const struct cargo_config *c, struct random *r);
void stock_fini(struct stock *f);

/* NULL if there is none with this descriptor. */
const struct cargo *stock_find(const struct stock *f, struct bytes descriptor);

struct bytes cargo_page(const struct cargo *c, uint32_t page);
/* Bytes of the pieces that are no holes. */
uint64_t cargo_bytes(const struct cargo *c);

/* SPDX-License-Identifier: MIT */
/* The table of a stream that is being cut: a row for each piece, in the order in which they come.
 *
 * Bytes are put into a room that is given for them, and cut and digested at once, as long as they are in a processor's cache:
 * of a piece that has not ended there is but its length so far and its digest. An end has to be told
 * before a hole or a file that is known already. */
#pragma once

#include "base/cut.h"
#include "wire/bundle.h"

/* Of pieces, about. Larger than the usual only where there would be too many. */
enum { PIECES_USUAL = 256 << 10, PIECES_USUAL_MIN = 4 << 10, PIECES_USUAL_MAX = 2 << 20 };
enum { PIECES_MAX = BUNDLE_PAGES_MAX * BUNDLE_PAGE_PIECES_MAX };

/* What suits so many bytes where they go from one process of this machine to others: longer pieces mean fewer turns, but the first must be
 * whole before it is passed on. */
uint32_t pieces_near(uint64_t bytes);
/* How long pieces are to be for so many bytes in so many files; `asked`: at least, 0: the usual. */
uint32_t pieces_usual(uint32_t asked, uint64_t bytes, uint64_t files);
/* How many go on a page. */
uint32_t pieces_of_page(uint32_t pieces);

struct pieces {
    enum digest_kind digest;
    uint32_t usual;
    uint32_t max;     /* of pieces */
    uint32_t count;   /* of rows */
    uint32_t longest; /* that carries bytes */
    uint8_t *rows;
    size_t rows_room;
    struct cut cut;
    uint8_t *buffer; /* comes with the first byte: what the last bytes were, then room for others */
    struct digesting *digesting; /* the same */
    uint32_t had;                /* bytes of a piece that has not ended */
    uint64_t before; /* bytes that were cut before it, without holes and rows of others */
    bool even;
};

void pieces_init(struct pieces *p, enum digest_kind digest, uint32_t usual);
void pieces_fini(struct pieces *p);
/* Gives the room for bytes back; it comes again if it is needed. Between pieces only. */
void pieces_trim(struct pieces *p);

/* From the next piece on their ends are where multiples of the usual length are among all bytes, whatever those bytes are: nobody has anything in
 * common with them, and to cut so costs nothing. */
void pieces_even(struct pieces *p);

/* Where the next bytes go; empty: no memory. As much of it as one likes. */
struct room pieces_room(struct pieces *p);
/* So many were put there. -ENOMEM, or -E2BIG: more pieces than there may be. The same of those below. */
int pieces_add(struct pieces *p, size_t len);
/* The same of bytes that lie elsewhere, and behind those that were added before, as far as these are of the same piece. */
int pieces_add_there(struct pieces *p, struct bytes bytes);
/* What was added ends here, and with it a piece. */
int pieces_end(struct pieces *p);

/* For whoever wants to see each cut: so many were put there, and are added as far as to the first cut: how many these are, or
 * -errno as above. After a cut nothing is left of a piece (`had` is 0), and the rest is gone with the next room. */
long pieces_add_one(struct pieces *p, size_t len);

/* These come between pieces only. */
int pieces_add_hole(struct pieces *p, uint64_t bytes);
/* Room for so many rows that somebody else fills; they count with pieces_take_rows, which says whether they
 * make sense and are so many bytes. Otherwise nothing has happened. */
uint8_t *pieces_row_room(struct pieces *p, uint32_t rows);
bool pieces_take_rows(struct pieces *p, uint32_t rows, uint64_t bytes);
/* All of another's rows, in front of ours. */
int pieces_put_before(struct pieces *p, const struct pieces *front);
/* Those of another from this one on, behind ours. */
int pieces_append(struct pieces *p, const struct pieces *from, uint32_t row);

/* The length of a piece. */
uint32_t pieces_bytes_of(const struct pieces *p, uint32_t row);
/* The rows from this one on. */
struct bytes pieces_rows(const struct pieces *p, uint32_t from);

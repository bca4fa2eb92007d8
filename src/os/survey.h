/* SPDX-License-Identifier: MIT */
/* Looks files over that are to be sent: what there is, where to cut it, and its digests.
 *
 * What was found out about a file is kept in a ledger under its device, inode, size and times, so that it is
 * read once as long as nobody changes it. A file that changed while it was read, or so shortly before
 * that the clock could not tell, is not kept.
 *
 * In the manifest folders come first, then links, small files, large files. Small files share pieces; a large
 * one begins and ends a piece, and so does the manifest. Beside the table (20 or 36 bytes for each
 * piece) and the manifest, a few megabytes of memory do for files of any size. */
#pragma once

#include "base/bytes.h"
#include "os/original.h"
#include "rm/spread.h"
#include "wire/bundle.h"

/* One thing to be sent: a file, or a folder with all that is in it. */
struct survey_item {
    const char *path; /* on this machine */
    const char *name; /* that it shall have; relative, see struct entry */
};

struct survey_config {
    int beneath; /* folder that paths are taken under, links out of it refused; AT_FDCWD: anywhere */
    const char *ledger; /* folder of the ledger, made if it is not there. NULL: none */
    enum digest_kind digest;
    uint32_t piece_bytes;      /* about; 0: the usual, which grows with the size, or: */
    struct spread spread;      /* what suits this way */
    struct spread_terms terms; /* over these links; bytes_per_s 0: they are not known */
    enum send_type send;       /* how survey_read and survey_lend come by the bytes */
    /* A single large file may be given while it is looked over, if it is not known yet: survey_grows. Its bundle is open then. */
    bool grows;
    bool follow; /* a link that is given itself (not one inside a folder) is followed */
    /* Called now and then with how many bytes of all were looked at, while names are still being
     * gathered with none; false: stop. May be NULL. */
    bool (*progress)(void *context, uint64_t done, uint64_t all);
    void *context;
};

struct survey;

/* 0, or -errno, with the reason in `why` (one line that begins with the path): -ESTALE if a file changed
 * meanwhile, -ECANCELED if it was stopped, -EOPNOTSUPP for sockets, pipes and devices, -EXDEV if a link leads out
 * of `beneath`, -EEXIST if two items would have one name, -E2BIG or -EFBIG if it is too much. */
int survey_new(const struct survey_config *c, const struct survey_item *items, uint32_t count,
               struct survey **ret, char why[256]);
void survey_free(struct survey *s);

/* Without `goal`, `replace` and `to`; views are the survey's. */
const struct bundle *survey_bundle(const struct survey *s);
struct bytes survey_manifest(const struct survey *s);
/* All pages that are there, one after the other. */
struct bytes survey_table(const struct survey *s);
uint32_t survey_entries(const struct survey *s);
/* The bytes that had to be read; the others were known. */
uint64_t survey_bytes_read(const struct survey *s);

/* Has it not been looked over to its end? More is found meanwhile: then this descriptor becomes readable, and survey_grow takes it: 0, or
 * -errno with the reason, after which nothing more will come. */
bool survey_grows(const struct survey *s);
int survey_growth(const struct survey *s);
int survey_grow(struct survey *s, char why[256]);
/* Whoever takes it has nothing of it: pieces of what is found from now on, or soon, end at multiples of their usual length in the file. Where these are
 * written the system has larger units, and nobody looks for places to cut. */
void survey_even(struct survey *s);
/* Pages of the table that are there, and will stay as they are; all of them if it does not grow, none after an error. */
uint32_t survey_pages(const struct survey *s);
/* About as many pieces as there will be. */
uint32_t survey_pieces(const struct survey *s);

/* Where a piece lies in the stream; -ERANGE if there is none of that number. Near where it was asked last it is found
 * at once. */
int survey_locate(struct survey *s, uint32_t piece, uint64_t *ret_offset, uint32_t *ret_len);

/* Reads a part of the stream. 0, or -errno: -ESTALE if a file is shorter now, another one, or was
 * changed; `why` says which. Holes read as zeros. Files are opened again by their paths, so these must lead to
 * them still; the one that was read last stays open. */
int survey_read(struct survey *s, uint64_t offset, struct room out, char why[256]);

/* A part of the stream that is sent from where it lies. */
struct survey_loan {
    struct original *file; /* held; NULL: nothing is lent */
    uint32_t number;
    struct bytes bytes;
    uint64_t offset; /* of them in the file */
};

/* Lends a part of the stream: 1, or 0 if it is to be read, as it lies in several files or the send type wants it so, or
 * -errno as survey_read. Whoever has it checks it before each sending, and drops the file after the last. What was
 * changed even later does not fit its digest. */
int survey_lend(struct survey *s, uint64_t offset, uint32_t len, struct survey_loan *ret,
                char why[256]);
/* 0, or -ESTALE if the file is not as it was found. */
int survey_loan_check(const struct survey *s, const struct survey_loan *l, char why[256]);

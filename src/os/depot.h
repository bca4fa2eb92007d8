/* SPDX-License-Identifier: MIT */
/* Where a node keeps files that come to it: bundles on their way in, and a cache of what came.
 *
 *   spool/objects/HH/HEX/NAME   a file by its SHA-256, read-only, run from here; .table beside it
 *   spool/partial/              files that are on their way, also those of an interrupted transfer
 *
 * Nothing appears under its final name before all of it is there and fits its digest. What is left of a life
 * that ended is found at the beginning of the next: partial files are kept for a while, because the same
 * bundle may be sent again, and are no different from others in the cache: their pieces are
 * used, the least recently used goes first. Paths of a bundle are opened beneath `root` without
 * following any link. Everything the depot is told to believe it checks: pages against the
 * descriptor, unless that is open, pieces against their page, and what it finds in its own cache against both. */
#pragma once

#include "base/bytes.h"
#include "os/digest.h"
#include "wire/bundle.h"

struct depot;
struct depot_bundle;

struct depot_config {
    const char *spool; /* folder, made if it is not there */
    const char *root;  /* folder that destinations are taken under */
    const char *top; /* the same for what is not a run's: "/" on a machine of its own. NULL: root */
    uint64_t cache_bytes; /* of the cache; what is in use may exceed it */
    uint64_t partial_ns;  /* how long a partial file is kept; 0: the usual, an hour */
};

/* -EBUSY: another uses this spool. */
int depot_new(const struct depot_config *c, struct depot **ret, char why[256]);
void depot_free(struct depot *d);

/* A bundle begins to come. `descriptor` is copied. -errno with the reason. */
int depot_open(struct depot *d, struct bytes descriptor, struct depot_bundle **ret, char why[256]);

/* What its source says of whole files is true: that their pieces fit is enough. */
void depot_believe(struct depot_bundle *b);

/* A page of its table, which comes before its pieces, and after the pages before it (-EAGAIN): lengths add up
 * to where a piece is. `have` gets a bit for each piece of the page that is here already, found and checked; holes
 * are always here. -EBADMSG: it does not fit the descriptor. A page that came may be handed over again, `table` is not
 * looked at then: when all pieces of the manifest are here, so that it is known which files these are, more may be
 * found: of files that are here as a whole, and in those that are to be replaced. */
int depot_page(struct depot_bundle *b, uint32_t page, struct bytes table, uint8_t *have,
               char why[256]);
/* The page again, as it came; it is the depot's. Empty if it has not come. */
struct bytes depot_table(const struct depot_bundle *b, uint32_t page);

/* All pieces there are, if the bundle is open and this page was the last; else 0. */
uint32_t depot_last_page(const struct depot_bundle *b, uint32_t page);

/* A piece has come; in any order. -EBADMSG: it does not fit its digest (nothing is kept of it); -ENOSPC, ... With the
 * last piece of the manifest it may turn out that the bundle cannot go where it shall: -EISDIR, -ENOTDIR, -ELOOP, ...;
 * then all that follows says the same. */
int depot_store(struct depot_bundle *b, uint32_t piece, struct bytes bytes, char why[256]);
/* The same, but for writing, if that is all there is to do: 1, and where to; whoever asked writes the bytes there, and says with
 * depot_written how that went. The descriptor is the depot's, and may be gone after the next call. */
int depot_judge(struct depot_bundle *b, uint32_t piece, struct bytes bytes, int *ret_fd,
                uint64_t *ret_offset, char why[256]);
int depot_written(struct depot_bundle *b, uint32_t piece, int status, char why[256]);
/* Whether a piece is here. */
bool depot_has(const struct depot_bundle *b, uint32_t piece);
/* Where a piece of that length may be written as it comes, before it is judged: a descriptor, which is the depot's, and may be gone
 * after the next call; or -errno, also if it is here or belongs to several files. Each part of it is digested there as soon as it is written,
 * while it is in the processor's cache, and the piece is judged by that. */
int depot_space(struct depot_bundle *b, uint32_t piece, uint32_t len, uint64_t *ret_offset);
int depot_digest(struct depot_bundle *b, uint32_t piece, uint32_t from, uint32_t len,
                 struct digesting *d);
int depot_settle(struct depot_bundle *b, uint32_t piece, const uint8_t found[DIGEST_BYTES_MAX],
                 char why[256]);
/* Reads a piece that is here, also after the commit; returns its length, 0 of a hole, or -errno: -ESTALE if somebody
 * has changed it on the disk. */
long depot_load(struct depot_bundle *b, uint32_t piece, struct room out, char why[256]);

/* Whether a piece that has come lies in one file, from which it can be sent as it is: not if somebody has changed that file since it
 * got its name, as far as its size and time tell. */
bool depot_lies(struct depot_bundle *b, uint32_t piece, uint32_t *ret_len);
/* The same: a descriptor for the caller to close, and where; or -1. It can only be read by, as whoever sends may have it for longer than the
 * bundle is open, and a program that somebody could write to is not run. */
int depot_lend(struct depot_bundle *b, uint32_t piece, uint64_t *ret_offset, uint32_t *ret_len);

/* All pieces are here: checks that, gives files their modes and times, then their names. What was there is
 * replaced, file by file; a folder is merged into one that is there, which keeps its mode. If it fails, the reason says
 * where; what was not given its name is not lost, if it is kept. What goes to the cache is pinned until the
 * bundle is closed; the digests of whole files are believed if pieces have XXH3, else found out. */
int depot_commit(struct depot_bundle *b, char why[256]);
/* Forgets it; if it was not committed its partial files stay for another try if `keep`, else they go. */
void depot_close(struct depot_bundle *b, bool keep);

/* The path of a cached file for running or reading it, by its digest, with this name as last part; 0 or -errno:
 * -ENOENT: it is not here. A file that is not as it was when it came (size, times, inode) is read again and, if
 * its digest is wrong, removed: -ENOENT. `pinned` ones are not evicted until depot_unpin. */
int depot_object(struct depot *d, const uint8_t sum[32], const char *name, char *path,
                 size_t path_bytes);
/* One that is not here cannot be pinned. */
void depot_pin(struct depot *d, const uint8_t sum[32]);
void depot_unpin(struct depot *d, const uint8_t sum[32]);

/* Bytes in the cache: of objects and of partial files that are kept. */
uint64_t depot_bytes(const struct depot *d);

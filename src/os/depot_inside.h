/* SPDX-License-Identifier: MIT */
/* What the parts of a depot know of each other.
 *
 * A bundle that comes has a folder of its own beneath spool/partial, whose name is the digest of its descriptor
 * and a number:
 *
 *   descriptor   as it came
 *   table        its pages; mapped
 *   claims       a bit for each piece that was written; mapped. After a crash it may be wrong, so it only
 *                says where it is worth while to look
 *   head         the manifest, and what came before the manifest was whole, as in the stream
 *   f12          the contents of entry 12; or, if the destination is in another file system, a link whose
 *                text says where they are: in a hidden file beneath `root`. It is made before that file
 *   old          pieces of the file that is replaced, if it was cut anew
 *
 * A piece that is here is in one of four places: in the head, as long as the manifest is not known; on loan, which
 * means in an object, also before that; in its file; in an object that is the same as its file. */
#pragma once

#include <limits.h>

#include "base/bits.h"
#include "base/cut.h"
#include "base/list.h"
#include "os/depot.h"
#include "os/hints.h"
#include "os/manifest.h"
#include "os/mapped.h"
#include "os/shelf.h"

enum {
    DEPOT_KEPT_MAX = 64,
    DEPOT_NAME_MAX = 48,       /* of a bundle's folder */
    DEPOT_FILES_MAX = 4096,    /* that go to the cache at once */
    DEPOT_HINTS_MAX = 1 << 18, /* 3 MiB */
    DEPOT_PARTS = 8,           /* files of a bundle that are open */
    DEPOT_LOANS = 256,         /* runs of pieces */
    DEPOT_LIGHT_BYTES = 128 << 20,
    DEPOT_PART_NAME_MAX = 16 /* of a bundle's file */
};

/* Sources of hints: objects by their slots, kept bundles, the file that is replaced. */
enum {
    SOURCE_OBJECT = 1,
    SOURCE_KEPT = SOURCE_OBJECT + SHELF_OBJECTS_MAX,
    SOURCE_OLD = SOURCE_KEPT + DEPOT_KEPT_MAX
};

/* A bundle that did not become whole, and waits for another try. */
struct kept {
    char name[DEPOT_NAME_MAX]; /* empty: none */
    uint64_t bytes, used_ns;
};

/* The object whose pieces were asked for last. */
struct lender {
    uint32_t slot; /* SHELF_NONE: none */
    uint8_t sum[32];
    int data;
    struct shelf_table table;
};

struct depot {
    int lock, objects, partial, root, top;
    char *spool;
    uint64_t cache_bytes, partial_ns;
    uint64_t kept_bytes;
    struct shelf shelf;
    struct kept kept[DEPOT_KEPT_MAX];
    struct hints hints; /* empty before somebody asks */
    struct lender lender;
    struct depot_bundle *donor; /* the kept bundle whose pieces were asked for last */
    struct room scratch;        /* for a piece */
    struct list bundles;
};

/* Pieces [piece, piece + count) are the rows from `row` on of an object, which is pinned. */
struct borrowed {
    uint32_t piece, count, row, slot;
    uint8_t sum[32];
};

/* A file of the bundle that is open. */
struct part {
    uint32_t number; /* of the entry */
    int fd;          /* -1: none */
    int reader;      /* the same, and it can only be read by; -1: nobody has asked for it */
    struct mapped mapped;
    uint64_t reserved_from, reserved_to; /* bytes that room was asked for last */
};

/* What this path of a node is beneath: runs' folders are the cluster's, all else is the machine's. */
int depot_beneath(const struct depot *d, const char *path);

/* A folder beneath the root that destinations are in; `fd` is as much of it as there is. */
struct spot {
    int fd; /* -1: none */
    char path[PATH_MAX];
    size_t len; /* of what is there */
    bool there; /* all of it */
    bool near;  /* files can be moved there from the spool */
};

/* What may have much in common with a file that comes: an object with its digest, or the file that it replaces. */
struct old {
    bool asked;
    uint32_t number; /* of the entry */
    int fd;          /* -1: there is none */
    uint32_t tries, hits;
    uint64_t cut; /* as far as it was cut anew; UINT64_MAX: it will not be */
    struct room room;
};

struct depot_bundle {
    struct list link;
    struct depot *d;
    struct bundle b;
    uint8_t *descriptor;
    size_t descriptor_len;
    char name[DEPOT_NAME_MAX];
    bool light;    /* what is known of it is in memory; only contents are on the disk */
    bool believed; /* whole files are what their source says, if their pieces are */
    bool adopted;  /* there may be files that we did not make */
    bool committed;
    int error; /* it can only be closed, because: */
    char why[256];
    int dir, table, head;
    uint8_t *table_map;
    size_t table_bytes;
    uint64_t *claims;
    uint64_t *have;
    uint32_t have_count;
    uint32_t
        pieces_most;  /* what the descriptor says: fewer if it is open, as the last page tells */
    uint32_t pages;   /* that are here: they come in order */
    uint64_t *starts; /* of pages, in the stream; one more than pages */
    uint32_t last;    /* the piece that was asked for last, and where it starts */
    uint64_t last_start;
    uint64_t manifest_here; /* bytes of it */
    uint64_t claimed_bytes;
    bool known; /* the manifest is whole: */
    struct manifest m;
    uint64_t *begun; /* of entries: a file was made, or a folder */
    uint64_t *whole; /* of entries: an object has the contents, and is pinned */
    struct part parts[DEPOT_PARTS];
    uint32_t next_part;
    uint32_t loan_count;
    struct borrowed *loans;
    struct spot spot;
    struct old old;
    struct cut cut;
    int old_rows; /* -1: none */
    uint32_t old_row_count;
};

/* Says why, returns the error. */
__attribute__((format(printf, 3, 4))) int depot_fail(char why[256], int error, const char *format,
                                                     ...);
const char *depot_reason(int error);

/* ---- depot_kept.c: bundles that wait, and what has to go ---- */

void kept_load(struct depot *d);
void kept_expire(struct depot *d);
/* The one with this descriptor is no longer kept: its name; false if there is none. */
bool kept_take(struct depot *d, struct bytes descriptor, char name[DEPOT_NAME_MAX]);
/* Those with this descriptor go: the bundle has come whole. */
void kept_drop(struct depot *d, struct bytes descriptor);
void kept_add(struct depot *d, const char *name, uint64_t bytes);
/* A folder of partial files and what it has elsewhere. */
void kept_remove(struct depot *d, const char *name);
/* Name of a bundle's folder, without the number. */
void kept_stem(struct bytes descriptor, char out[DEPOT_NAME_MAX]);
/* Lets the least recently used go while there is too much. */
void kept_trim(struct depot *d);

/* ---- depot_bundle.c ---- */

/* Opens a folder of partial files; with an empty descriptor, the one that lies there. */
int bundle_raise(struct depot *d, const char *name, struct bytes descriptor, bool light,
                 struct depot_bundle **ret);
void bundle_lower(struct depot_bundle *b);
/* What has gone wrong before, if anything. */
int bundle_error(const struct depot_bundle *b, char why[256]);
/* From now on nothing can be done with it any more if `error` is not 0; returns it. */
int bundle_break(struct depot_bundle *b, int error, const char *why);
/* A piece whose page is here, and where it starts in the stream. */
struct piece bundle_piece(struct depot_bundle *b, uint32_t piece, uint64_t *ret_start);
/* The first piece that starts there or later; that of the end if there is none. */
uint32_t bundle_piece_from(struct depot_bundle *b, uint64_t offset);
/* Bytes from this piece on that are known to come, without a gap; `most`: or more, it is enough. */
uint64_t bundle_run(struct depot_bundle *b, uint32_t piece, uint64_t most);
bool bundle_fits(const struct depot_bundle *b, const struct piece *p, struct bytes bytes);
/* Whether all of these bytes are in objects that have their files as a whole. */
bool bundle_is_whole(const struct depot_bundle *b, uint64_t start, uint32_t bytes);
/* It is here, and, if `claim`, written in its place. */
int bundle_mark(struct depot_bundle *b, uint32_t piece, const struct piece *p, uint64_t start,
                bool claim, char why[256]);
/* Puts bytes that fit in their place. */
int bundle_bring(struct depot_bundle *b, uint32_t piece, const struct piece *p, uint64_t start,
                 struct bytes bytes, char why[256]);

/* ---- depot_place.c: where the contents are ---- */

int place_write(struct depot_bundle *b, uint64_t offset, struct bytes bytes, char why[256]);
int place_read(struct depot_bundle *b, uint64_t offset, struct room room, char why[256]);
/* Where a part of the stream is to be written if it is all in one file of an entry, which is made: a descriptor, -ENOENT if
 * it is not, or -errno. */
int place_for(struct depot_bundle *b, uint64_t start, uint32_t bytes, uint64_t *ret_offset,
              char why[256]);
/* What has failed there; returns the error. */
int place_blame(struct depot_bundle *b, uint64_t start, int error, char why[256]);
/* Room is asked for, for this piece, which is to be written to its file, and those that will follow it there: at once, which costs less than
 * with each write. If there is none, the write says so. */
void place_reserve(struct depot_bundle *b, uint32_t piece, uint64_t start);
/* Where a piece can be looked at whose bytes are all in one file, and were written there; empty: it must be read. Until something else
 * is asked of the bundle; the file may become shorter any time (os/mapped.h). */
struct bytes place_view(struct depot_bundle *b, uint64_t start, uint32_t bytes);
/* The file of an entry. */
int place_part(struct depot_bundle *b, const struct manifest_cursor *c, bool make, char why[256]);
/* Closes all files: one that is open for writing cannot be run. */
void place_close(struct depot_bundle *b);
void place_part_name(uint32_t number, char out[DEPOT_PART_NAME_MAX]);
/* Says why something cannot be done to the destination of an entry; returns the error. */
int place_fail(const struct depot_bundle *b, const struct entry *e, int error, char why[256]);
/* Where an entry goes, beneath the root. */
int place_path(const struct depot_bundle *b, const struct entry *e, char out[PATH_MAX]);
/* Makes `spot` the folder that the path is in; *ret_name is its last part, inside `path`. */
int place_spot(struct depot_bundle *b, char *path, const char **ret_name);
void place_spot_close(struct depot_bundle *b);
/* The hidden file that a link of a bundle's folder speaks of: the folder that it is in, and its name. */
int place_hidden(const struct depot *d, int dir, const char *part, char path[PATH_MAX],
                 const char **ret_name);
/* Records a hidden file of this entry in the folder of the spot, and gives its name. */
int place_hide(struct depot_bundle *b, uint32_t number, char name[NAME_MAX + 1]);

/* ---- depot_find.c: what is here already ---- */

/* 1 if the piece is here, 0 if not, or -errno. */
int find_piece(struct depot_bundle *b, uint32_t piece, char why[256]);
/* Manifest is known: looks for files that are here as a whole. */
void find_whole(struct depot_bundle *b);
/* Lends a piece that is on loan. */
int find_lent(struct depot_bundle *b, uint32_t piece, struct room room);
bool find_is_lent(const struct depot_bundle *b, uint32_t piece);
void find_return(struct depot_bundle *b);
void find_old_close(struct depot_bundle *b);
/* Hints of its pieces, if there are any at all. */
void find_add_object(struct depot *d, uint32_t slot);
void find_add_kept(struct depot *d, uint32_t index);
void find_close(struct depot *d); /* what it has open */

/* ---- depot_commit.c ---- */

/* Whether everything can go where it shall. */
int commit_check(struct depot_bundle *b, char why[256]);

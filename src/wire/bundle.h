/* SPDX-License-Identifier: MIT */
/* A bundle: what one transfer carries to nodes, and how a receiver can tell that it is right.
 *
 *   manifest | contents of the first file | of the second | ...        the stream
 *   piece 0  | piece 1 | piece 2 | ...                                 the same bytes, cut
 *   page 0: lengths and digests of the first pieces | page 1: ...      the table
 *   descriptor: digests of the pages                                   comes by a way that is trusted
 *
 * An open bundle begins to be sent before all of it was looked at: its descriptor has no digests of pages, and says how many
 * pieces there may be at most. A page that ends where the stream does is the last. Only where nobody is to be mistrusted.
 *
 * Pieces are cut where the contents say so (base/cut.h), so a change moves few of them. A hole of a sparse
 * file is pieces of its own that carry nothing. The descriptor is small and comes from the machine
 * manager; pages and pieces come from whichever node is nearest and are believed only if they
 * fit. */
#pragma once

#include "wire/codec.h"

enum digest_kind { DIGEST_XXH3, DIGEST_SHA256, DIGEST_KINDS };

/* The longest digest; that of XXH3 takes the first 16 bytes. */
enum { DIGEST_BYTES_MAX = 32 };

static inline uint32_t digest_bytes(enum digest_kind kind) {
    return kind == DIGEST_XXH3 ? 16 : 32;
}

/* Where a receiver puts what comes. */
enum goal {
    GOAL_PATH,  /* entries beneath (or, if there is but one file, at) `to` */
    GOAL_SPOOL, /* files into the node's cache, by their digests; runs use them from there */
    GOALS
};

/* Most pages: their digests go with the descriptor. Longer files have larger pages. */
enum { BUNDLE_PAGES_MAX = 2048, BUNDLE_PAGE_PIECES = 64, BUNDLE_PAGE_PIECES_MAX = 1024 };
#define BUNDLE_MANIFEST_BYTES_MAX (64U << 20)
#define BUNDLE_PIECE_BYTES_MAX    (4U << 20) /* that carries bytes */
#define BUNDLE_HOLE_BYTES_MAX     (1U << 30)
/* Of a path, and of one of its parts: what Linux can open. */
enum { BUNDLE_PATH_BYTES_MAX = 4095, BUNDLE_NAME_BYTES_MAX = 255 };

struct bundle {
    uint8_t digest; /* enum digest_kind, of pieces and pages */
    uint8_t goal;   /* enum goal */
    bool replace;   /* GOAL_PATH: `to` is the name itself, not a folder to put it in */
    uint64_t bytes; /* of the stream */
    uint32_t manifest_bytes;
    uint32_t pieces;
    uint32_t page_pieces; /* the last page may have fewer */
    uint32_t piece_bytes; /* of the longest that carries bytes */
    struct bytes
        to; /* GOAL_PATH: absolute, as the node sees it; "/" or parts like those of an entry */
    struct bytes pages; /* a digest each; empty: it is open */
    /* The manifest, if it is small: who has it can tell at once what of the bundle is there already. Or empty. */
    struct bytes manifest;
};

enum { BUNDLE_INLINE_BYTES_MAX = 4096 };

/* More than a descriptor takes. */
static inline size_t bundle_room(const struct bundle *b) {
    return 128 + b->to.len + b->pages.len + b->manifest.len;
}

uint32_t bundle_page_count(const struct bundle *b);
static inline bool bundle_is_open(const struct bundle *b) {
    return b->pages.len == 0;
}
/* Pieces of this page. */
uint32_t bundle_page_pieces(const struct bundle *b, uint32_t page);
/* Bytes of one row of a page. */
uint32_t bundle_row_bytes(enum digest_kind kind);

/* Length written, or -ENOBUFS. */
long bundle_encode(const struct bundle *b, struct room out);
/* 0, or -EBADMSG, also when the numbers do not fit each other: there is a manifest and it lies within the
 * stream, pages are as many as the pieces need, and so many pieces can hold so many bytes. Views borrow. */
int bundle_decode(struct bytes in, struct bundle *ret);

/* A row of a page. A hole has no digest: its bytes are zeros. */
struct piece {
    bool hole;
    uint32_t bytes;
    uint8_t digest[DIGEST_BYTES_MAX];
};

void piece_store(uint8_t *out, enum digest_kind kind, const struct piece *p);
/* The piece in that row; false if the page has no such row or it makes no sense. */
bool piece_load(struct piece *ret, enum digest_kind kind, struct bytes page, uint32_t row);

enum entry_kind { ENTRY_FILE, ENTRY_FOLDER, ENTRY_LINK, ENTRY_KINDS };

/* One entry of a manifest. Folders come before what is in them. Paths are relative, without "..", "." or
 * empty parts; links are not followed by anybody. */
struct entry {
    uint8_t kind;
    uint32_t mode; /* 07777 */
    uint32_t uid, gid;
    uint64_t bytes; /* FILE */
    int64_t mtime_ns;
    uint8_t sum[32]; /* FILE: names its contents, see os/digest.h */
    struct bytes path;
    struct bytes target; /* LINK */
};

/* Length written, or -ENOBUFS. */
long entry_encode(const struct entry *e, struct room out);
/* The entry at *at, which moves on. 1, 0 at the end, or -EBADMSG. */
int entry_next(struct bytes manifest, size_t *at, struct entry *ret);
/* "ab/ab12.../name": where a node's cache keeps a file. */
enum { ENTRY_OBJECT_BYTES = 400 };
void entry_object(const struct entry *e, char out[ENTRY_OBJECT_BYTES]);
/* Whether a path may stand in an entry. */
bool entry_path_fits(struct bytes path);
/* Whether all of it decodes, and it and the files that it names are as long as the stream. */
bool manifest_fits(struct bytes manifest, uint64_t bytes);

/* SPDX-License-Identifier: MIT */
/* Bundles that are made in memory, for tests of those who take them in.
 *
 *     struct parcel p = parcel_new(DIGEST_XXH3, 4096);
 *     parcel_file(&p, "name", 0644, bytes);
 *     parcel_wrap(&p, GOAL_PATH, "/to", false);
 *
 * Everything is kept: the stream, its table, the descriptor. */
#pragma once

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cut.h"
#include "base/random.h"
#include "os/digest.h"
#include "tap.h"
#include "wire/bundle.h"

enum { PARCEL_FILES = 512, PARCEL_HOLE = 64 * 1024 };

struct parcel {
    enum digest_kind digest;
    uint32_t about;
    bool
        packed; /* pieces do not stop at the ends of files; nor, if `joined`, at that of the manifest */
    bool joined;
    bool sparse;   /* zeros are holes */
    bool unsummed; /* nobody has summed the files up */
    uint8_t *manifest, *contents, *stream;
    size_t manifest_bytes, contents_bytes, bytes;
    size_t ends[PARCEL_FILES]; /* of files, in the contents */
    uint32_t files;
    uint8_t *rows;
    uint64_t *starts; /* of pieces; one more than pieces */
    uint32_t pieces;
    struct bundle b;
    uint8_t pages[BUNDLE_PAGES_MAX * DIGEST_BYTES_MAX];
    uint8_t *descriptor;
    size_t descriptor_bytes;
};

static inline struct parcel *parcel_new(enum digest_kind digest, uint32_t about) {
    struct parcel *p = calloc(1, sizeof *p);
    p->digest = digest;
    p->about = about;
    return p;
}

static inline void parcel_free(struct parcel *p) {
    free(p->manifest);
    free(p->contents);
    free(p->stream);
    free(p->rows);
    free(p->starts);
    free(p->descriptor);
    free(p);
}

static inline void parcel_entry(struct parcel *p, struct entry e) {
    p->manifest = realloc(p->manifest, p->manifest_bytes + 8192);
    long n = entry_encode(&e, room_of(p->manifest + p->manifest_bytes, 8192));
    CHECK(n > 0);
    p->manifest_bytes += (size_t)n;
}

/* Of us, as files are that have come. */
static inline struct entry parcel_plain(enum entry_kind kind, const char *name, uint32_t mode) {
    return (struct entry){.kind = (uint8_t)kind,
                          .mode = mode,
                          .uid = geteuid(),
                          .gid = getegid(),
                          .mtime_ns = 1000000007123456789,
                          .path = bytes_from_str(name)};
}

static inline void parcel_file(struct parcel *p, const char *name, uint32_t mode,
                               struct bytes bytes) {
    struct entry e = parcel_plain(ENTRY_FILE, name, mode);
    e.bytes = bytes.len;
    if (p->unsummed)
        sum_unknown(bytes.len, e.sum);
    else
        digest_of(DIGEST_SHA256, bytes, e.sum);
    parcel_entry(p, e);
    p->contents = realloc(p->contents, p->contents_bytes + bytes.len + 1);
    if (bytes.len > 0)
        memcpy(p->contents + p->contents_bytes, bytes.at, bytes.len);
    p->contents_bytes += bytes.len;
    ASSERT(p->files < PARCEL_FILES);
    p->ends[p->files++] = p->contents_bytes;
}

static inline void parcel_folder(struct parcel *p, const char *name, uint32_t mode) {
    parcel_entry(p, parcel_plain(ENTRY_FOLDER, name, mode));
}

static inline void parcel_link(struct parcel *p, const char *name, const char *target) {
    struct entry e = parcel_plain(ENTRY_LINK, name, 0777);
    e.target = bytes_from_str(target);
    parcel_entry(p, e);
}

/* ---- cutting ---- */

static inline void parcel_row(struct parcel *p, uint32_t bytes, bool hole) {
    struct piece piece = {.hole = hole, .bytes = bytes};
    uint64_t start = p->starts[p->pieces];
    if (!hole) {
        digest_of(p->digest, bytes_of(p->stream + start, bytes), piece.digest);
        if (bytes > p->b.piece_bytes)
            p->b.piece_bytes = bytes;
    }
    piece_store(p->rows + (size_t)p->pieces * bundle_row_bytes(p->digest), p->digest, &piece);
    p->starts[++p->pieces] = start + bytes;
}

static inline bool parcel_zeros(const uint8_t *at, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (at[i] != 0)
            return false;
    return true;
}

static inline void parcel_cut(struct parcel *p, size_t end) {
    struct cut cut;
    cut_init(&cut, p->about);
    while (p->starts[p->pieces] < end) {
        size_t from = p->starts[p->pieces], len = end - from, run = 0;
        while (p->sparse && run + PARCEL_HOLE <= len &&
               parcel_zeros(p->stream + from + run, PARCEL_HOLE))
            run += PARCEL_HOLE;
        if (run > 0) {
            parcel_row(p, (uint32_t)run, true);
            continue;
        }
        for (size_t i = 0; p->sparse && i < len; i += PARCEL_HOLE)
            if (i > 0 && i + PARCEL_HOLE <= len &&
                parcel_zeros(p->stream + from + i, PARCEL_HOLE)) {
                len = i;
                break;
            }
        parcel_row(p, cut_next(&cut, bytes_of(p->stream + from, len)), false);
    }
}

static inline struct bytes parcel_page(const struct parcel *p, uint32_t page) {
    uint32_t row = bundle_row_bytes(p->digest);
    return bytes_of(p->rows + (size_t)page * p->b.page_pieces * row,
                    (size_t)bundle_page_pieces(&p->b, page) * row);
}

static inline void parcel_describe(struct parcel *p) {
    size_t room = sizeof p->pages + 8192;
    p->descriptor = realloc(p->descriptor, room);
    long n = bundle_encode(&p->b, room_of(p->descriptor, room));
    CHECK(n > 0);
    p->descriptor_bytes = n > 0 ? (size_t)n : 0;
}

/* Nothing is added any more: it is cut, and can be sent. */
static inline void parcel_wrap(struct parcel *p, enum goal goal, const char *to, bool replace) {
    p->bytes = p->manifest_bytes + p->contents_bytes;
    p->stream = malloc(p->bytes);
    memcpy(p->stream, p->manifest, p->manifest_bytes);
    if (p->contents_bytes > 0)
        memcpy(p->stream + p->manifest_bytes, p->contents, p->contents_bytes);
    size_t most = p->bytes / (p->about / 2) + 3 * (size_t)p->files + 16;
    most += p->sparse ? 2 * (p->bytes / PARCEL_HOLE) : 0;
    p->rows = malloc(most * bundle_row_bytes(p->digest));
    p->starts = calloc(most + 1, sizeof *p->starts);
    if (!p->joined)
        parcel_cut(p, p->manifest_bytes);
    for (uint32_t i = 0; i < p->files && !p->packed; i++)
        parcel_cut(p, p->manifest_bytes + p->ends[i]);
    parcel_cut(p, p->bytes);
    p->b.digest = (uint8_t)p->digest;
    p->b.goal = (uint8_t)goal;
    p->b.replace = replace;
    p->b.bytes = p->bytes;
    p->b.manifest_bytes = (uint32_t)p->manifest_bytes;
    p->b.pieces = p->pieces;
    p->b.page_pieces = 16;
    p->b.to = bytes_from_str(to);
    uint32_t digest = digest_bytes(p->digest), pages = bundle_page_count(&p->b);
    ASSERT(pages <= BUNDLE_PAGES_MAX);
    for (uint32_t i = 0; i < pages; i++) {
        uint8_t out[DIGEST_BYTES_MAX];
        digest_of(p->digest, parcel_page(p, i), out);
        memcpy(p->pages + i * digest, out, digest);
    }
    p->b.pages = bytes_of(p->pages, (size_t)pages * digest);
    parcel_describe(p);
}

/* ---- asking ---- */

static inline struct bytes parcel_descriptor(const struct parcel *p) {
    return bytes_of(p->descriptor, p->descriptor_bytes);
}

static inline bool parcel_is_hole(const struct parcel *p, uint32_t piece) {
    struct piece row;
    struct bytes rows = bytes_of(p->rows, (size_t)p->pieces * bundle_row_bytes(p->digest));
    CHECK(piece_load(&row, p->digest, rows, piece));
    return row.hole;
}

static inline struct bytes parcel_piece(const struct parcel *p, uint32_t piece) {
    return bytes_of(p->stream + p->starts[piece], p->starts[piece + 1] - p->starts[piece]);
}

/* Bytes that no other seed gives. */
static inline uint8_t *parcel_noise(size_t bytes, uint64_t seed) {
    uint8_t *out = malloc(bytes + 8);
    struct random r;
    random_init(&r, seed);
    for (size_t i = 0; i < bytes; i += 8)
        store_le64(out + i, random_u64(&r));
    return out;
}

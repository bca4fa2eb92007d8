/* SPDX-License-Identifier: MIT */
/* Fuzzes the readers of a transfer: descriptor, page and manifest, all with the same bytes. What decodes encodes
 * to the same bytes, and its numbers fit each other. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "wire/bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(const uint8_t *data, size_t size, struct room again, long len) {
    ASSERT(len == (long)size && memcmp(again.at, data, size) == 0);
}

static void read_descriptor(struct bytes in, struct room again) {
    struct bundle b;
    if (bundle_decode(in, &b) < 0)
        return;
    uint32_t pages = bundle_page_count(&b);
    uint64_t pieces = 0;
    for (uint32_t i = 0; i < pages; i++)
        pieces += bundle_page_pieces(&b, i);
    ASSERT(pieces == b.pieces && pages <= BUNDLE_PAGES_MAX);
    ASSERT(b.pages.len == (size_t)pages * digest_bytes(b.digest));
    ASSERT(b.manifest_bytes <= b.bytes && b.piece_bytes <= b.bytes && b.pieces <= b.bytes);
    check_same(in.at, in.len, again, bundle_encode(&b, again));
}

static void read_page(enum digest_kind kind, struct bytes page, struct room again) {
    uint32_t row_bytes = bundle_row_bytes(kind);
    struct piece p;
    for (uint32_t row = 0; row < page.len / row_bytes; row++) {
        if (!piece_load(&p, kind, page, row))
            continue;
        ASSERT(p.bytes > 0 && p.bytes <= BUNDLE_HOLE_BYTES_MAX);
        piece_store(again.at, kind, &p);
        check_same(page.at + (size_t)row * row_bytes, row_bytes, again, row_bytes);
    }
    ASSERT(!piece_load(&p, kind, page, (uint32_t)(page.len / row_bytes)));
}

static void read_manifest(struct bytes manifest, struct room again) {
    struct entry e;
    size_t at = 0;
    uint64_t sum = manifest.len;
    int status;
    for (size_t from = 0; (status = entry_next(manifest, &at, &e)) == 1; from = at) {
        ASSERT(at > from && at <= manifest.len && entry_path_fits(e.path));
        check_same(manifest.at + from, at - from, again, entry_encode(&e, again));
        if (__builtin_add_overflow(sum, e.bytes, &sum))
            return;
    }
    ASSERT(manifest_fits(manifest, sum) == (status == 0 && manifest.len > 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *again = malloc(size + 1);
    ASSERT(again != NULL);
    struct bytes in = bytes_of(data, size);
    read_descriptor(in, room_of(again, size));
    read_page(DIGEST_XXH3, in, room_of(again, size));
    read_page(DIGEST_SHA256, in, room_of(again, size));
    read_manifest(in, room_of(again, size));
    free(again);
    return 0;
}

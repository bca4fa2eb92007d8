/* SPDX-License-Identifier: MIT */
/* Bundles, pieces and entries survive a round trip; what is cut, garbled or does not fit is refused. */
#include "wire/bundle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "tap.h"

enum { ROOM = 8192 };

static uint8_t digests[BUNDLE_PAGES_MAX * DIGEST_BYTES_MAX];

static struct bundle sample(void) {
    for (size_t i = 0; i < sizeof digests; i++)
        digests[i] = (uint8_t)i;
    return (struct bundle){.digest = DIGEST_XXH3,
                           .goal = GOAL_PATH,
                           .replace = true,
                           .bytes = 1000000,
                           .manifest_bytes = 300,
                           .pieces = 130,
                           .page_pieces = 64,
                           .piece_bytes = 100000,
                           .to = bytes_from_str("/tmp/there"),
                           .pages = bytes_of(digests, 3 * 16)};
}

static int decode(const struct bundle *b) {
    static uint8_t out[BUNDLE_PAGES_MAX * DIGEST_BYTES_MAX + ROOM];
    struct bundle back;
    long len = bundle_encode(b, room_of(out, sizeof out));
    return len < 0 ? (int)len : bundle_decode(bytes_of(out, (size_t)len), &back);
}

/* ---- The descriptor ---------------------------------------------------------------------------- */

static void test_round_trip(void) {
    uint8_t one[ROOM], two[ROOM];
    struct bundle b = sample(), back;
    long len = bundle_encode(&b, room_of(one, ROOM));
    CHECK(len > 0);
    CHECK_EQ(bundle_decode(bytes_of(one, (size_t)len), &back), 0);
    CHECK(back.digest == b.digest && back.goal == b.goal && back.replace);
    CHECK(back.bytes == b.bytes && back.manifest_bytes == b.manifest_bytes);
    CHECK(back.pieces == b.pieces && back.page_pieces == b.page_pieces);
    CHECK_EQ(back.piece_bytes, b.piece_bytes);
    CHECK(bytes_equal(back.to, b.to) && bytes_equal(back.pages, b.pages));
    CHECK_EQ(bundle_encode(&back, room_of(two, ROOM)), len);
    CHECK(memcmp(one, two, (size_t)len) == 0);
    CHECK_EQ(bundle_page_count(&back), 3);
    CHECK_EQ(bundle_page_pieces(&back, 0), 64);
    CHECK_EQ(bundle_page_pieces(&back, 2), 2);
    CHECK_EQ(bundle_row_bytes(DIGEST_XXH3), 20);
    CHECK_EQ(bundle_row_bytes(DIGEST_SHA256), 36);
}

static void test_no_other_length(void) {
    uint8_t bytes[ROOM] = {0};
    struct bundle b = sample(), back;
    size_t len = (size_t)bundle_encode(&b, room_of(bytes, ROOM));
    for (size_t cut = 0; cut < len; cut++) {
        CHECK_EQ(bundle_decode(bytes_of(bytes, cut), &back), -EBADMSG);
        CHECK_EQ(bundle_encode(&b, room_of(bytes, cut)), -ENOBUFS);
        bundle_encode(&b, room_of(bytes, ROOM));
    }
    CHECK_EQ(bundle_decode(bytes_of(bytes, len + 1), &back), -EBADMSG);
}

#define REFUSED(change)             \
    do {                            \
        struct bundle b = sample(); \
        CHECK_EQ(decode(&b), 0);    \
        change;                     \
        CHECK(decode(&b) < 0);      \
    } while (0)
#define TAKEN(change)               \
    do {                            \
        struct bundle b = sample(); \
        change;                     \
        CHECK_EQ(decode(&b), 0);    \
    } while (0)

static void test_numbers_that_do_not_fit(void) {
    REFUSED(b.digest = DIGEST_KINDS);
    REFUSED(b.digest = DIGEST_SHA256); /* longer digests: too few of them */
    TAKEN(b.digest = DIGEST_SHA256; b.pages.len = 3 * 32);
    REFUSED(b.manifest_bytes = 0);
    REFUSED(b.manifest_bytes = 1000001);
    TAKEN(b.manifest_bytes = 1000000);
    REFUSED(b.bytes = 1ULL << 32; b.manifest_bytes = BUNDLE_MANIFEST_BYTES_MAX + 1);
    TAKEN(b.bytes = 1ULL << 32; b.manifest_bytes = BUNDLE_MANIFEST_BYTES_MAX);
    REFUSED(b.page_pieces = 0);
    REFUSED(b.page_pieces = BUNDLE_PAGE_PIECES_MAX + 1; b.pages.len = 16);
    TAKEN(b.page_pieces = BUNDLE_PAGE_PIECES_MAX; b.pages.len = 16);
    REFUSED(b.page_pieces = 65); /* two pages */
    REFUSED(b.pages.len -= 16);
    REFUSED(b.pages.len += 16);
    REFUSED(b.pages.len -= 1);
    REFUSED(b.pieces = 0; b.pages.len = 0);
    REFUSED(b.piece_bytes = 0);
    REFUSED(b.bytes = 1ULL << 32; b.piece_bytes = BUNDLE_PIECE_BYTES_MAX + 1);
    TAKEN(b.bytes = 1ULL << 32; b.piece_bytes = BUNDLE_PIECE_BYTES_MAX);
    REFUSED(b.piece_bytes = 1000001);
    REFUSED(b.piece_bytes = 1000000 - 128); /* the others have less than a byte each */
    TAKEN(b.piece_bytes = 1000000 - 129);
    REFUSED(b.bytes = 129ULL * BUNDLE_HOLE_BYTES_MAX + 100001);
    TAKEN(b.bytes = 129ULL * BUNDLE_HOLE_BYTES_MAX + 100000);
    REFUSED(b.bytes = UINT64_MAX);
    REFUSED(b.pieces = UINT32_MAX; b.bytes = 1ULL << 40);
}

/* Pages that nobody knows yet: only where nobody is mistrusted, and only if it is known where it goes. */
static void test_open(void) {
    static const uint8_t manifest[300];
    TAKEN(b.pages.len = 0; b.manifest = bytes_of(manifest, 300));
    TAKEN(b.pages.len = 0; b.manifest = bytes_of(manifest, 300); b.pieces = 64 * BUNDLE_PAGES_MAX);
    REFUSED(b.pages.len = 0; b.manifest = bytes_of(manifest, 300);
            b.pieces = 64 * BUNDLE_PAGES_MAX + 1);
    REFUSED(b.pages.len = 0);
    REFUSED(b.pages.len = 0; b.manifest = bytes_of(manifest, 300); b.digest = DIGEST_SHA256);
    REFUSED(b.pages.len = 0; b.manifest = bytes_of(manifest, 299));
}

static void test_pages_have_a_limit(void) {
    struct bundle b = sample();
    b.page_pieces = BUNDLE_PAGE_PIECES_MAX;
    b.pieces = BUNDLE_PAGES_MAX * BUNDLE_PAGE_PIECES_MAX;
    b.bytes = 1ULL << 40;
    b.pages.len = BUNDLE_PAGES_MAX * 16;
    CHECK_EQ(decode(&b), 0);
    b.pieces++;
    b.pages.len += 16;
    CHECK(decode(&b) < 0);
}

static void test_where_it_goes(void) {
    REFUSED(b.goal = GOALS);
    REFUSED(b.goal = GOAL_SPOOL);
    REFUSED(b.goal = GOAL_SPOOL; b.to.len = 0);
    REFUSED(b.goal = GOAL_SPOOL; b.replace = false);
    TAKEN(b.goal = GOAL_SPOOL; b.to.len = 0; b.replace = false);
    REFUSED(b.to.len = 0);
    REFUSED(b.to = bytes_from_str("tmp"));
    REFUSED(b.to = bytes_from_str("/")); /* cannot be replaced */
    TAKEN(b.to = bytes_from_str("/"); b.replace = false);
    REFUSED(b.to = bytes_from_str("/tmp/"));
    REFUSED(b.to = bytes_from_str("//tmp"));
    REFUSED(b.to = bytes_from_str("/tmp/../etc"));
    REFUSED(b.to = bytes_of("/t\0p", 4));
}

/* ---- Pieces ------------------------------------------------------------------------------------ */

static void check_piece(enum digest_kind kind) {
    uint8_t page[3 * 36];
    uint32_t row = bundle_row_bytes(kind);
    struct piece p = {.bytes = BUNDLE_PIECE_BYTES_MAX}, back;
    memset(p.digest, 7, digest_bytes(kind));
    piece_store(page, kind, &p);
    struct piece hole = {.hole = true, .bytes = BUNDLE_HOLE_BYTES_MAX};
    piece_store(page + row, kind, &hole);
    struct bytes rows = bytes_of(page, 2 * row);
    CHECK(piece_load(&back, kind, rows, 0) && !back.hole && back.bytes == p.bytes);
    CHECK(memcmp(back.digest, p.digest, DIGEST_BYTES_MAX) == 0); /* zeros behind a short one */
    CHECK(piece_load(&back, kind, rows, 1) && back.hole && back.bytes == hole.bytes);
    CHECK(!piece_load(&back, kind, rows, 2));
    CHECK(!piece_load(&back, kind, rows, UINT32_MAX));
    rows.len--;
    CHECK(!piece_load(&back, kind, rows, 1));
    rows.len++;
    page[2 * row - 1] = 1; /* a hole with a digest */
    CHECK(!piece_load(&back, kind, rows, 1));
    page[2 * row - 1] = 0;
    store_le32(page + row, (1U << 31) | (BUNDLE_HOLE_BYTES_MAX + 1));
    CHECK(!piece_load(&back, kind, rows, 1));
    store_le32(page + row, 1U << 31);
    CHECK(!piece_load(&back, kind, rows, 1));
    store_le32(page, BUNDLE_PIECE_BYTES_MAX + 1);
    CHECK(!piece_load(&back, kind, rows, 0));
    store_le32(page, 0);
    CHECK(!piece_load(&back, kind, rows, 0));
    store_le32(page, 1);
    CHECK(piece_load(&back, kind, rows, 0) && back.bytes == 1);
}

static void test_pieces(void) {
    check_piece(DIGEST_XXH3);
    check_piece(DIGEST_SHA256);
}

/* ---- The manifest ------------------------------------------------------------------------------ */

static const struct entry *samples(void) {
    static struct entry e[3];
    e[0] = (struct entry){.kind = ENTRY_FOLDER, .mode = 0755, .uid = 1, .gid = 2, .mtime_ns = -1};
    e[0].path = bytes_from_str("bin");
    e[1] = (struct entry){.kind = ENTRY_FILE, .mode = 04711, .bytes = 1ULL << 40};
    e[1].mtime_ns = 1234567890123456789;
    e[1].path = bytes_from_str("bin/prog");
    memset(e[1].sum, 9, sizeof e[1].sum);
    e[2] = (struct entry){.kind = ENTRY_LINK, .mode = 0777};
    e[2].path = bytes_from_str("bin/..p");
    e[2].target = bytes_from_str("../../etc/passwd");
    return e;
}

static size_t encode_entries(const struct entry *e, int count, uint8_t *out) {
    size_t len = 0;
    for (int i = 0; i < count; i++) {
        long n = entry_encode(&e[i], room_of(out + len, ROOM - len));
        len += n > 0 ? (size_t)n : 0;
    }
    return len;
}

static void test_manifest(void) {
    uint8_t out[ROOM];
    const struct entry *e = samples();
    struct bytes manifest = bytes_of(out, encode_entries(e, 3, out));
    size_t at = 0;
    struct entry back;
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(entry_next(manifest, &at, &back), 1);
        CHECK(back.kind == e[i].kind && back.mode == e[i].mode && back.bytes == e[i].bytes);
        CHECK(back.uid == e[i].uid && back.gid == e[i].gid && back.mtime_ns == e[i].mtime_ns);
        CHECK(bytes_equal(back.path, e[i].path) && bytes_equal(back.target, e[i].target));
        CHECK(memcmp(back.sum, e[i].sum, 32) == 0);
    }
    CHECK_EQ(entry_next(manifest, &at, &back), 0);
    at = manifest.len + 1;
    CHECK_EQ(entry_next(manifest, &at, &back), -EBADMSG);
    CHECK(manifest_fits(manifest, manifest.len + (1ULL << 40)));
    CHECK(!manifest_fits(manifest, manifest.len + (1ULL << 40) + 1));
    CHECK(!manifest_fits(manifest, manifest.len + (1ULL << 40) - 1));
    CHECK(!manifest_fits(manifest, manifest.len - 1));
    CHECK(!manifest_fits(bytes_of(out, manifest.len - 1), manifest.len + (1ULL << 40) - 1));
    CHECK(!manifest_fits((struct bytes){0}, 0));
}

/* A cut entry is refused and the place stays; a sum that runs over is none. */
static void test_manifest_refused(void) {
    uint8_t out[ROOM];
    struct entry back, many[3] = {samples()[1], samples()[1], samples()[1]};
    size_t len = encode_entries(many, 1, out);
    for (size_t cut = 1; cut < len; cut++) {
        size_t at = 0;
        CHECK_EQ(entry_next(bytes_of(out, cut), &at, &back), -EBADMSG);
        CHECK_EQ(at, 0);
        CHECK_EQ(entry_encode(&many[0], room_of(out, cut)), -ENOBUFS);
        encode_entries(many, 1, out);
    }
    many[0].bytes = many[1].bytes = INT64_MAX;
    many[2].bytes = 2;
    len = encode_entries(many, 3, out);
    CHECK(!manifest_fits(bytes_of(out, len), len));
}

static int decode_entry(struct entry e) {
    uint8_t out[ROOM];
    size_t at = 0;
    struct entry back;
    return entry_next(bytes_of(out, encode_entries(&e, 1, out)), &at, &back);
}

static bool path_taken(struct bytes path) {
    struct entry e = samples()[0];
    e.path = path;
    bool fits = entry_path_fits(path);
    CHECK_EQ(decode_entry(e), fits ? 1 : -EBADMSG);
    return fits;
}

static void test_paths(void) {
    static const char *const good[] = {"a", "a/b", "...", ".a", "a./b..", "\xff\n", "a b/c"};
    static const char *const bad[] = {"",   "/",    "/a",   "a/",    "a//b", ".",
                                      "..", "a/..", "../a", "a/./b", "./a",  "a/../b"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK(path_taken(bytes_from_str(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!path_taken(bytes_from_str(bad[i])));
    CHECK(!path_taken(bytes_of("a\0b", 3)));
    char lengthy[BUNDLE_PATH_BYTES_MAX + 2];
    memset(lengthy, 'x', sizeof lengthy);
    CHECK(path_taken(bytes_of(lengthy, BUNDLE_NAME_BYTES_MAX)));
    CHECK(!path_taken(bytes_of(lengthy, BUNDLE_NAME_BYTES_MAX + 1)));
    for (size_t i = 100; i < sizeof lengthy; i += 200)
        lengthy[i] = '/';
    CHECK(path_taken(bytes_of(lengthy, BUNDLE_PATH_BYTES_MAX)));
    CHECK(!path_taken(bytes_of(lengthy, BUNDLE_PATH_BYTES_MAX + 1)));
}

static void test_entries_refused(void) {
    struct entry e = samples()[1];
    e.mode = 010000;
    CHECK(decode_entry(e) < 0);
    e = samples()[1];
    e.bytes = 1ULL << 63;
    CHECK(decode_entry(e) < 0);
    e = samples()[2];
    e.target.len = 0;
    CHECK(decode_entry(e) < 0);
    e.target = bytes_of("a\0b", 3);
    CHECK(decode_entry(e) < 0);
    e.target = bytes_from_str("a");
    CHECK_EQ(decode_entry(e), 1);
    uint8_t out[ROOM];
    size_t at = 0, len = encode_entries(&e, 1, out);
    out[0] = ENTRY_KINDS;
    CHECK_EQ(entry_next(bytes_of(out, len), &at, &e), -EBADMSG);
}

/* Each byte of a good one is changed, and then there are bytes that never were one. */
static void test_garbage_never_hurts(void) {
    uint8_t bytes[ROOM];
    struct bundle b = sample(), back;
    struct random r;
    random_init(&r, 3);
    for (int round = 0; round < 20000; round++) {
        size_t len = random_below(&r, 600);
        random_bytes(&r, bytes, len);
        if (round % 2 == 0) {
            len = (size_t)bundle_encode(&b, room_of(bytes, ROOM));
            bytes[random_below(&r, len)] = (uint8_t)random_below(&r, 256);
        }
        int status = bundle_decode(bytes_of(bytes, len), &back);
        CHECK(status == 0 || status == -EBADMSG);
        CHECK(status < 0 || bundle_page_count(&back) * digest_bytes(back.digest) == back.pages.len);
        if (round % 2 == 0) {
            len = encode_entries(samples(), 3, bytes);
            bytes[random_below(&r, len)] = (uint8_t)random_below(&r, 256);
        }
        size_t at = 0, before = 0;
        struct entry e;
        for (; (status = entry_next(bytes_of(bytes, len), &at, &e)) == 1; before = at)
            CHECK(at > before && at <= len && entry_path_fits(e.path));
        CHECK(status == 0 || status == -EBADMSG);
    }
}

int main(void) {
    TEST(test_round_trip);
    TEST(test_no_other_length);
    TEST(test_numbers_that_do_not_fit);
    TEST(test_open);
    TEST(test_pages_have_a_limit);
    TEST(test_where_it_goes);
    TEST(test_pieces);
    TEST(test_manifest);
    TEST(test_manifest_refused);
    TEST(test_paths);
    TEST(test_entries_refused);
    TEST(test_garbage_never_hurts);
    return tap_finish();
}

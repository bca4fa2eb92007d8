/* SPDX-License-Identifier: MIT */
/* A stream is cut the same in whatever portions it comes; tables keep to their limits. */
#include "os/pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/units.h"
#include "os/digest.h"
#include "tap.h"

enum { SIZE = 3 << 20 };

static uint8_t *stream;

/* Adds [from, to) of the stream in portions of up to `portion` bytes. */
static void feed(struct pieces *p, size_t from, size_t to, size_t portion) {
    while (from < to) {
        struct room room = pieces_room(p);
        size_t n = to - from < portion ? to - from : portion;
        n = n < room.len ? n : room.len;
        if (!CHECK(n > 0))
            return;
        memcpy(room.at, stream + from, n);
        CHECK_EQ(pieces_add(p, n), 0);
        from += n;
    }
}

static struct pieces all_of(size_t portion) {
    struct pieces p;
    pieces_init(&p, DIGEST_XXH3, 64 << 10);
    feed(&p, 0, SIZE, portion);
    CHECK_EQ(pieces_end(&p), 0);
    return p;
}

static void test_portions_do_not_matter(void) {
    struct pieces whole = all_of(SIZE), some = all_of(1000), odd = all_of(77777);
    CHECK(whole.count > SIZE / (112 << 10) && whole.longest <= 112 << 10);
    CHECK(bytes_equal(pieces_rows(&whole, 0), pieces_rows(&some, 0)));
    CHECK(bytes_equal(pieces_rows(&whole, 0), pieces_rows(&odd, 0)));
    size_t at = 0;
    for (uint32_t i = 0; i < whole.count; i++) {
        struct piece piece;
        uint8_t digest[DIGEST_BYTES_MAX] = {0};
        if (!CHECK(piece_load(&piece, DIGEST_XXH3, pieces_rows(&whole, 0), i)))
            break;
        digest_of(DIGEST_XXH3, bytes_of(stream + at, piece.bytes), digest);
        CHECK(memcmp(digest, piece.digest, sizeof digest) == 0);
        at += piece.bytes;
    }
    CHECK_EQ(at, SIZE);
    pieces_fini(&whole);
    pieces_fini(&some);
    pieces_fini(&odd);
}

/* Even ones begin with the next piece, end at multiples of their length, and have the right digests. */
static void test_evenly(void) {
    const uint32_t usual = 64 << 10;
    for (size_t from = 0; from < 400000; from += 9999) {
        struct pieces p;
        pieces_init(&p, DIGEST_XXH3, usual);
        feed(&p, 0, from, 5000);
        uint32_t before = p.count + 1; /* the one that is under way is as it would be */
        pieces_even(&p);
        feed(&p, from, SIZE, 70000);
        CHECK_EQ(pieces_end(&p), 0);
        uint64_t at = 0;
        for (uint32_t i = 0; i < p.count; i++) {
            struct piece piece;
            uint8_t digest[DIGEST_BYTES_MAX] = {0};
            CHECK(piece_load(&piece, DIGEST_XXH3, pieces_rows(&p, 0), i));
            digest_of(DIGEST_XXH3, bytes_of(stream + at, piece.bytes), digest);
            CHECK(memcmp(digest, piece.digest, sizeof digest) == 0);
            at += piece.bytes;
            CHECK(piece.bytes <= usual + usual / 4 * 3);
            CHECK(at == SIZE || piece.bytes >= usual - usual / 4);
            CHECK(i < before || at % usual == 0 || at == SIZE);
        }
        CHECK_EQ(at, SIZE);
        pieces_fini(&p);
    }
}

/* Rows that were written down make the same table; those that do not fit leave no trace. */
static void test_rows_of_others(void) {
    struct pieces whole = all_of(SIZE), copy;
    pieces_init(&copy, DIGEST_XXH3, 64 << 10);
    struct bytes rows = pieces_rows(&whole, 0);
    uint8_t *room = pieces_row_room(&copy, whole.count);
    if (CHECK(room != NULL)) {
        memcpy(room, rows.at, rows.len);
        CHECK(!pieces_take_rows(&copy, whole.count, SIZE - 1));
        CHECK(!pieces_take_rows(&copy, whole.count, SIZE + 1));
        CHECK(!pieces_take_rows(&copy, whole.count - 1, SIZE));
        CHECK(copy.count == 0 && copy.longest == 0);
        CHECK(pieces_take_rows(&copy, whole.count, SIZE));
        CHECK(copy.longest == whole.longest && bytes_equal(pieces_rows(&copy, 0), rows));
    }
    CHECK_EQ(pieces_put_before(&copy, &whole), 0);
    CHECK_EQ(copy.count, 2 * whole.count);
    CHECK(bytes_equal(pieces_rows(&copy, whole.count), rows));
    pieces_fini(&whole);
    pieces_fini(&copy);
}

static void test_holes(void) {
    struct pieces p;
    struct piece piece;
    pieces_init(&p, DIGEST_SHA256, 64 << 10);
    CHECK_EQ(pieces_add_hole(&p, 2 * GIB + 5), 0);
    CHECK_EQ(p.count, 3);
    CHECK_EQ(p.longest, 0);
    CHECK(piece_load(&piece, DIGEST_SHA256, pieces_rows(&p, 0), 1));
    CHECK(piece.hole && piece.bytes == GIB);
    CHECK(piece_load(&piece, DIGEST_SHA256, pieces_rows(&p, 0), 2));
    CHECK(piece.hole && piece.bytes == 5);
    pieces_fini(&p);
}

static void test_there_is_a_limit(void) {
    struct pieces p, q;
    pieces_init(&p, DIGEST_XXH3, 64 << 10);
    p.max = 3;
    CHECK_EQ(pieces_add_hole(&p, 4 * GIB), -E2BIG);
    CHECK_EQ(p.count, 3);
    CHECK(pieces_row_room(&p, 1) == NULL);
    pieces_init(&q, DIGEST_XXH3, 64 << 10);
    q.max = 5;
    CHECK_EQ(pieces_add_hole(&q, 3 * GIB), 0);
    CHECK_EQ(pieces_put_before(&q, &p), -E2BIG);
    CHECK_EQ(q.count, 3);
    pieces_fini(&p);
    pieces_fini(&q);
}

/* Whatever the size up to four terabytes, there are not too many; and no longer than they must be. */
static void test_how_long(void) {
    CHECK_EQ(pieces_usual(0, 0, 1), PIECES_USUAL);
    CHECK_EQ(pieces_usual(0, 64 * GIB, 1), PIECES_USUAL);
    CHECK_EQ(pieces_usual(4096, MIB, 1), 4096);
    CHECK_EQ(pieces_usual(1, MIB, 1), PIECES_USUAL_MIN);
    CHECK_EQ(pieces_usual(UINT32_MAX, MIB, 1), PIECES_USUAL_MAX);
    CHECK_EQ(pieces_usual(0, UINT64_MAX, UINT32_MAX), PIECES_USUAL_MAX);
    uint32_t before = 0;
    for (uint64_t bytes = GIB; bytes <= 3 * TIB; bytes += bytes / 2) {
        uint32_t usual = pieces_usual(0, bytes, 1000);
        CHECK(usual >= before && usual <= PIECES_USUAL_MAX);
        CHECK(bytes / usual + 1000 <= PIECES_MAX);
        CHECK(usual == PIECES_USUAL || bytes / (usual / 2) > PIECES_MAX / 2);
        before = usual;
    }
    CHECK_EQ(before, PIECES_USUAL_MAX);
}

static void test_pages(void) {
    CHECK_EQ(pieces_of_page(1), BUNDLE_PAGE_PIECES);
    CHECK_EQ(pieces_of_page(BUNDLE_PAGES_MAX * BUNDLE_PAGE_PIECES), BUNDLE_PAGE_PIECES);
    CHECK_EQ(pieces_of_page(BUNDLE_PAGES_MAX * BUNDLE_PAGE_PIECES + 1), 2 * BUNDLE_PAGE_PIECES);
    CHECK_EQ(pieces_of_page(PIECES_MAX), BUNDLE_PAGE_PIECES_MAX);
}

int main(void) {
    struct random r;
    random_init(&r, 1);
    stream = malloc(SIZE);
    ASSERT(stream != NULL);
    random_bytes(&r, stream, SIZE);
    TEST(test_portions_do_not_matter);
    TEST(test_evenly);
    TEST(test_rows_of_others);
    TEST(test_holes);
    TEST(test_there_is_a_limit);
    TEST(test_how_long);
    TEST(test_pages);
    free(stream);
    return tap_finish();
}

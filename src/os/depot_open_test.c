/* SPDX-License-Identifier: MIT */
/* Tests of bundles that come to a depot before their source knows all of them. */
#include "base/units.h"
#include "yard.h"

enum { BYTES = 500000, SPARE = 40 };

/* A parcel whose descriptor says nothing of its pages, and that there may be more pieces than there are. */
static struct parcel *open_parcel(const uint8_t *contents, enum goal goal, const char *to) {
    struct parcel *p = parcel_new(DIGEST_XXH3, 8192);
    parcel_file(p, "file", 0640, bytes_of(contents, BYTES));
    parcel_wrap(p, goal, to, false);
    struct bundle b = p->b;
    b.pages = (struct bytes){0};
    b.manifest = bytes_of(p->manifest, p->manifest_bytes);
    b.pieces += SPARE;
    b.piece_bytes = 16384;
    long n = bundle_encode(&b, room_of(p->descriptor, sizeof p->pages));
    CHECK(n > 0);
    p->descriptor_bytes = (size_t)n;
    return p;
}

static void test_it_comes(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(BYTES, 1), bits[BUNDLE_PAGE_PIECES_MAX / 8];
    struct parcel *p = open_parcel(noise, GOAL_PATH, "/a");
    yard_init(&y, MIB);
    struct depot_bundle *b = yard_open(&y, p);
    uint32_t last = bundle_page_count(&p->b) - 1;
    CHECK(last > 1);
    for (uint32_t page = 0; page <= last; page++) {
        CHECK_EQ(depot_commit(b, y.why), -ENODATA);
        CHECK_EQ(depot_page(b, page, parcel_page(p, page), bits, y.why), 0);
        CHECK_EQ(depot_last_page(b, page), page == last ? p->pieces : 0);
    }
    yard_take(&y, b, p);
    yard_commit(&y, b);
    depot_close(b, false);
    CHECK(yard_has(&y, "root/a/file", bytes_of(noise, BYTES)));
    CHECK(yard_nothing_partial(&y));
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

/* A page that ends before the stream does is whole; what ends behind it, or comes after its end, is none. */
static void test_pages_that_make_no_sense(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(BYTES, 2), bits[BUNDLE_PAGE_PIECES_MAX / 8];
    struct parcel *p = open_parcel(noise, GOAL_PATH, "/a");
    yard_init(&y, MIB);
    struct depot_bundle *b = yard_open(&y, p);
    uint32_t row = bundle_row_bytes(DIGEST_XXH3), last = bundle_page_count(&p->b) - 1;
    struct bytes page = parcel_page(p, 0);
    CHECK_EQ(depot_page(b, 0, bytes_of(page.at, page.len - row), bits, y.why), -EBADMSG);
    CHECK_EQ(depot_page(b, 0, bytes_of(page.at, page.len - 1), bits, y.why), -EBADMSG);
    CHECK_EQ(depot_page(b, 0, bytes_of(page.at, 0), bits, y.why), -EBADMSG);
    for (uint32_t i = 0; i < last; i++)
        CHECK_EQ(depot_page(b, i, parcel_page(p, i), bits, y.why), 0);
    page = parcel_page(p, last);
    uint8_t *longer = malloc(page.len + row);
    memcpy(longer, page.at, page.len);
    memcpy(longer + page.len, page.at, row);
    CHECK_EQ(depot_page(b, last, bytes_of(longer, page.len + row), bits, y.why), -EBADMSG);
    CHECK_EQ(depot_page(b, last, page, bits, y.why), 0);
    CHECK_EQ(depot_page(b, last + 1, page, bits, y.why), -EBADMSG);
    yard_take(&y, b, p);
    yard_commit(&y, b);
    depot_close(b, false);
    CHECK(yard_has(&y, "root/a/file", bytes_of(noise, BYTES)));
    free(longer);
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

/* Its descriptor says nothing of its contents, so another try may be of others: those of the first are no use, and do no harm. */
static void test_other_contents(void) {
    struct yard y;
    uint8_t *first = parcel_noise(BYTES, 3), *second = parcel_noise(BYTES, 4);
    for (int i = 0; i < 4; i++) {
        bool same = i % 2 != 0, little = i / 2 != 0; /* or nearly all of it */
        struct parcel *p = open_parcel(first, GOAL_PATH, "/a");
        struct parcel *q = open_parcel(same ? first : second, GOAL_PATH, "/a");
        yard_init(&y, 10 * MIB);
        struct depot_bundle *b = yard_open(&y, p);
        bool *have = yard_bools(p);
        yard_pages(&y, b, p, have);
        yard_fill(&y, b, p, have, 0, little ? 4 : p->pieces - 3);
        depot_close(b, true);
        /* The sum in the manifest is the same, as of a file that nobody has summed. */
        free(q->descriptor);
        q->descriptor = malloc(p->descriptor_bytes);
        memcpy(q->descriptor, p->descriptor, p->descriptor_bytes);
        q->descriptor_bytes = p->descriptor_bytes;
        memcpy(q->stream, p->stream, p->manifest_bytes);
        for (uint32_t k = 0; k < yard_manifest_pieces(q); k++)
            memcpy(q->rows + k * 20, p->rows + k * 20, 20);
        b = yard_open(&y, q);
        uint8_t bits[BUNDLE_PAGE_PIECES_MAX / 8];
        CHECK_EQ(depot_page(b, 0, parcel_page(q, 0), bits, y.why), 0);
        CHECK(bits[0] & 1); /* the manifest, which came with the descriptor */
        uint32_t sent = yard_take(&y, b, q);
        yard_commit(&y, b);
        depot_close(b, true);
        uint32_t all = q->pieces - yard_manifest_pieces(q);
        CHECK(same ? sent <= (little ? all - 3 : 3) : sent >= all);
        CHECK(yard_has(&y, "root/a/file", bytes_of(same ? first : second, BYTES)));
        free(have);
        parcel_free(p);
        parcel_free(q);
        yard_fini(&y);
    }
    free(first);
    free(second);
}

/* What a cache has is named by a sum that nobody knows yet. */
static void test_not_to_a_cache(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(BYTES, 5);
    struct parcel *p = open_parcel(noise, GOAL_SPOOL, "");
    struct depot_bundle *b;
    yard_init(&y, MIB);
    CHECK_EQ(depot_open(y.d, parcel_descriptor(p), &b, y.why), -EBADMSG);
    parcel_free(p);
    free(noise);
    yard_fini(&y);
}

/* Not either if its descriptor says all but the sum of the file, by which a cache would have it: those of the same length have the same. */
static void test_not_to_a_cache_without_a_sum(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(BYTES, 6);
    for (int i = 0; i < 2; i++) {
        struct parcel *p = parcel_new(DIGEST_XXH3, 8192);
        p->unsummed = i == 1;
        parcel_file(p, "file", 0640, bytes_of(noise, BYTES));
        parcel_wrap(p, GOAL_SPOOL, "", false);
        yard_init(&y, MIB);
        struct depot_bundle *b = yard_open(&y, p);
        yard_take(&y, b, p);
        CHECK_EQ(depot_commit(b, y.why), i == 0 ? 0 : -EBADMSG);
        depot_close(b, false);
        parcel_free(p);
        yard_fini(&y);
    }
    free(noise);
}

int main(void) {
    TEST(test_it_comes);
    TEST(test_pages_that_make_no_sense);
    TEST(test_other_contents);
    TEST(test_not_to_a_cache);
    TEST(test_not_to_a_cache_without_a_sum);
    return tap_finish();
}

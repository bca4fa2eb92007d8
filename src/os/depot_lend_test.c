/* SPDX-License-Identifier: MIT */
/* Tests of pieces that others send from where they lie in a depot, or that are written there before they are judged. */
#include "base/units.h"
#include "yard.h"

enum { BYTES = 300000 };

static struct parcel *one_file(const uint8_t *contents) {
    struct parcel *p = parcel_new(DIGEST_XXH3, 8192);
    parcel_file(p, "file", 0600, bytes_of(contents, BYTES));
    parcel_wrap(p, GOAL_PATH, "/", false);
    return p;
}

/* Whether a piece is where it is said to be. */
static bool is_there(struct depot_bundle *b, const struct parcel *p, uint32_t piece) {
    static uint8_t room[BUNDLE_PIECE_BYTES_MAX];
    uint64_t offset;
    uint32_t len;
    struct bytes wanted = parcel_piece(p, piece);
    bool lies = depot_lies(b, piece, &len) && len == wanted.len;
    int fd = depot_lend(b, piece, &offset, &len);
    bool there = lies && fd >= 0 && len == wanted.len &&
                 files_read_all(fd, room_of(room, len), offset) == 0 &&
                 bytes_equal(bytes_of(room, len), wanted) &&
                 (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
    if (fd >= 0)
        close(fd);
    return there;
}

/* Also when it has its name, unless somebody has changed it. */
static void test_where(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(BYTES, 8);
    struct parcel *p = one_file(noise);
    uint64_t offset;
    uint32_t len, last;
    yard_init(&y, 10 * MIB);
    struct depot_bundle *b = yard_open(&y, p);
    bool *have = yard_bools(p);
    yard_pages(&y, b, p, have);
    last = p->pieces - 1;
    CHECK(!depot_lies(b, last, &len));
    CHECK_EQ(depot_lend(b, last, &offset, &len), -1);
    for (uint32_t i = 0; i < p->pieces; i++)
        CHECK_EQ(depot_store(b, i, parcel_piece(p, i), y.why), 0);
    CHECK(is_there(b, p, last));
    yard_commit(&y, b);
    CHECK(is_there(b, p, last));
    CHECK(is_there(b, p, last - 1));
    yard_put(&y, "root/file", bytes_of(noise, BYTES)); /* at another time */
    CHECK(!depot_lies(b, last, &len));
    CHECK_EQ(depot_lend(b, last, &offset, &len), -1);
    depot_close(b, true);
    free(have);
    free(noise);
    parcel_free(p);
    yard_fini(&y);
}

/* The digest of what was written, part by part. */
static void digest_there(struct depot_bundle *b, const struct parcel *p, uint32_t piece,
                         uint8_t found[DIGEST_BYTES_MAX]) {
    struct bytes bytes = parcel_piece(p, piece);
    struct digesting *d = digesting_new(DIGEST_XXH3);
    uint64_t offset;
    int fd = depot_space(b, piece, (uint32_t)bytes.len, &offset);
    CHECK(fd >= 0 && d != NULL);
    for (uint32_t at = 0, n; at < bytes.len; at += n) {
        n = at + 3000 < bytes.len ? 3000 : (uint32_t)bytes.len - at;
        CHECK_EQ(files_write(fd, bytes_of(bytes.at + at, n), offset + at), 0);
        CHECK_EQ(depot_digest(b, piece, at, n, d), 0);
    }
    CHECK_EQ(depot_digest(b, piece, 1, (uint32_t)bytes.len, d), -EIO); /* it has no such part */
    digesting_restart(d);
    CHECK_EQ(depot_digest(b, piece, 0, (uint32_t)bytes.len, d), 0);
    digesting_end(d, found);
    digesting_free(d);
}

/* Only with the right digest it counts; once it does it has come whatever comes after. */
static void test_settle(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(BYTES, 9), found[DIGEST_BYTES_MAX], other[DIGEST_BYTES_MAX] = {0};
    struct parcel *p = one_file(noise);
    yard_init(&y, 10 * MIB);
    struct depot_bundle *b = yard_open(&y, p);
    bool *have = yard_bools(p);
    yard_pages(&y, b, p, have);
    for (uint32_t i = 0; i < p->pieces; i++) {
        if (have[i])
            continue;
        if (i < yard_manifest_pieces(p)) {
            CHECK_EQ(depot_store(b, i, parcel_piece(p, i), y.why), 0);
            continue;
        }
        digest_there(b, p, i, found);
        CHECK_EQ(depot_settle(b, i, other, y.why), -EBADMSG);
        CHECK(!depot_has(b, i));
        CHECK_EQ(depot_settle(b, i, found, y.why), 0);
        CHECK(depot_has(b, i));
        CHECK_EQ(depot_settle(b, i, other, y.why), -EIO);
    }
    yard_commit(&y, b);
    CHECK(yard_has(&y, "root/file", bytes_of(noise, BYTES)));
    depot_close(b, false);
    free(have);
    free(noise);
    parcel_free(p);
    yard_fini(&y);
}

int main(void) {
    TEST(test_where);
    TEST(test_settle);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* A file that is looked over while it is given: in the end all is as if it had been looked over before. */
#include "os/growth.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "os/survey.h"
#include "survey_rig.h"
#include "tap.h"

enum { BYTES = 20 * 1000 * 1000 };

static struct survey_config growing(void) {
    struct survey_config c = plain();
    c.digest = DIGEST_XXH3;
    c.piece_bytes = 64 * KIB;
    c.grows = true;
    return c;
}

/* To its end; what survey_grow says. */
static int grow_up(struct survey *s) {
    uint32_t pages = 0;
    int r = 0;
    while (survey_grows(s)) {
        struct pollfd p = {.fd = survey_growth(s), .events = POLLIN};
        CHECK_EQ(poll(&p, 1, 60000), 1);
        r = survey_grow(s, why);
        CHECK(r < 0 || survey_pages(s) >= pages);
        pages = survey_pages(s);
    }
    return r;
}

static struct bytes rows_of_file(const struct survey *s) {
    struct bytes all = survey_table(s);
    uint64_t at = 0, manifest = survey_bundle(s)->manifest_bytes;
    uint32_t row = 0;
    for (; at < manifest; row++)
        at += row_of(s, row).bytes;
    size_t skip = (size_t)row * bundle_row_bytes(DIGEST_XXH3);
    return bytes_of(all.at + skip, all.len - skip);
}

/* The same pieces; all can be had; its descriptor was good, and said nothing too small. */
static void test_the_same(void) {
    struct survey_config c = growing(), before = c;
    struct survey *s, *other;
    before.grows = false;
    put("file", BYTES, 7);
    CHECK_EQ(look(&c, "file", &s), 0);
    CHECK_EQ(look(&before, "file", &other), 0);
    CHECK(survey_grows(s) && !survey_grows(other));
    struct bundle said = *survey_bundle(s), decoded;
    uint8_t room[8192];
    said.to = bytes_from_str("/x");
    long len = bundle_encode(&said, room_of(room, sizeof room));
    CHECK(len > 0 && bundle_decode(bytes_of(room, (size_t)len), &decoded) == 0);
    CHECK(bundle_is_open(&decoded));
    CHECK_EQ(grow_up(s), 0);
    CHECK(survey_bundle(s)->pieces <= said.pieces);
    CHECK_EQ(survey_bundle(s)->pieces, survey_pieces(s));
    CHECK_EQ(survey_pages(s), bundle_page_count(survey_bundle(s)));
    CHECK(bytes_equal(rows_of_file(s), rows_of_file(other)));
    CHECK_EQ(survey_bytes_read(s), BYTES);
    check_pieces(s);
    survey_free(s);
    survey_free(other);
    away("file");
}

/* How many pieces end at a multiple of their usual length in the file. */
static uint32_t even_pieces(const struct survey *s, uint32_t piece_bytes) {
    uint64_t at = 0;
    uint32_t even = 0;
    for (uint32_t i = 0; i < survey_pieces(s); i++) {
        at += row_of(s, i).bytes;
        even += (at - survey_bundle(s)->manifest_bytes) % piece_bytes == 0;
    }
    return even;
}

/* Cut evenly from some place on, at the latest a step after it was said: other rows, the same file, and known again.
 * Who looks it over does not wait: on a busy machine that may be over when it is said, and is done again. */
static void test_evenly(void) {
    enum { TRIES = 100 };
    struct survey_config c = growing();
    struct survey *s;
    bool in_time = false;
    put("file", BYTES, 7);
    for (int i = 0; i < TRIES && !in_time; i++) {
        CHECK_EQ(look(&c, "file", &s), 0);
        CHECK(survey_grows(s));
        survey_even(s);
        CHECK_EQ(grow_up(s), 0);
        in_time =
            even_pieces(s, c.piece_bytes) > survey_pieces(s) * 9 / 10; /* about none, if not */
        check_pieces(s);
        survey_free(s);
    }
    CHECK(in_time);
    away("file");
}

/* What is small, has holes, is not alone, or goes to another machine. */
static void test_what_does_not_grow(void) {
    struct survey_config c = growing();
    struct survey *s;
    put("file", 1000000, 7);
    CHECK_EQ(look(&c, "file", &s), 0);
    CHECK(!survey_grows(s));
    survey_free(s);
    away("file");
    int fd = make("file");
    CHECK_EQ(ftruncate(fd, BYTES), 0);
    close(fd);
    CHECK_EQ(look(&c, "file", &s), 0);
    CHECK(!survey_grows(s));
    survey_free(s);
    away("file");
    folder("folder");
    put("folder/file", BYTES, 7);
    CHECK_EQ(look(&c, "folder", &s), 0);
    CHECK(!survey_grows(s));
    survey_free(s);
    c.digest = DIGEST_SHA256;
    CHECK_EQ(look(&c, "folder/file", &s), 0);
    CHECK(!survey_grows(s));
    survey_free(s);
    away("folder");
}

/* The ledger knows it from then on; not its sum, before somebody has wanted that. */
static void test_known_afterwards(void) {
    struct survey_config c = growing();
    struct survey *s;
    struct timespec ripe = {.tv_sec = 2, .tv_nsec = 200 * 1000 * 1000};
    c.ledger = "ledger";
    put("file", BYTES, 8);
    nanosleep(&ripe, NULL); /* what was changed so shortly before is not kept */
    CHECK_EQ(look(&c, "file", &s), 0);
    CHECK(survey_grows(s));
    CHECK_EQ(grow_up(s), 0);
    survey_free(s);
    CHECK_EQ(look(&c, "file", &s), 0);
    CHECK(!survey_grows(s));
    CHECK_EQ(survey_bytes_read(s), 0);
    survey_free(s);
    for (int i = 0; i < 3; i++) {
        c.grows = i == 2;
        CHECK_EQ(look(&c, "file", &s), 0);
        CHECK(!survey_grows(s));
        CHECK_EQ(survey_bytes_read(s), i == 0 ? BYTES : 0);
        check_true(s);
        survey_free(s);
    }
    away("file");
}

/* Cut short or written to at any time: it says so, by name, and nothing more is told. */
static void test_changes(void) {
    struct survey_config c = growing();
    struct survey *s;
    for (int i = 0; i < 2; i++) {
        put("file", BYTES, 9);
        CHECK_EQ(look(&c, "file", &s), 0);
        int fd = open("file", O_WRONLY | O_CLOEXEC);
        if (i == 0)
            CHECK_EQ(ftruncate(fd, 5000), 0);
        else
            CHECK_EQ(pwrite(fd, "x", 1, 100), 1);
        close(fd);
        CHECK_EQ(grow_up(s), -ESTALE);
        CHECK(strstr(why, "file") != NULL);
        CHECK_EQ(survey_pages(s), 0);
        survey_free(s);
        away("file");
    }
}

/* Nobody waits for its end. */
static void test_given_up(void) {
    struct survey_config c = growing();
    struct survey *s;
    put("file", BYTES, 10);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(look(&c, "file", &s), 0);
        survey_free(s);
    }
    away("file");
}

int main(void) {
    if (!rig_enter())
        return 1;
    TEST(test_the_same);
    TEST(test_evenly);
    TEST(test_what_does_not_grow);
    TEST(test_known_afterwards);
    TEST(test_changes);
    TEST(test_given_up);
    rig_leave();
    return tap_finish();
}

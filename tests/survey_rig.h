/* SPDX-License-Identifier: MIT */
/* For tests of surveys: makes files, looks them over, and checks every word of what a survey says. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "base/units.h"
#include "os/digest.h"
#include "os/survey.h"
#include "tap.h"

static char rig_home[64]; /* folder of the test, and where it works */
static char why[256];

/* ---- Making files ------------------------------------------------------------------------------ */

static inline int make(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    CHECK(fd >= 0);
    return fd;
}

static inline void fill_at(int fd, off_t at, size_t len, uint64_t seed) {
    uint8_t *bytes = malloc(len + 1);
    struct random r;
    random_init(&r, seed);
    ASSERT(bytes != NULL);
    random_bytes(&r, bytes, len);
    CHECK_EQ(pwrite(fd, bytes, len, at), len);
    free(bytes);
}

static inline void put(const char *path, size_t len, uint64_t seed) {
    int fd = make(path);
    fill_at(fd, 0, len, seed);
    close(fd);
}

static inline void folder(const char *path) {
    CHECK(mkdir(path, 0755) == 0);
}

static inline void away(const char *path) {
    char command[200];
    snprintf(command, sizeof command, "rm -rf -- '%s'", path);
    CHECK_EQ(system(command), 0);
}

/* ---- Surveys ----------------------------------------------------------------------------------- */

static inline struct survey_config plain(void) {
    return (struct survey_config){.beneath = AT_FDCWD, .digest = DIGEST_XXH3};
}

static inline int look(const struct survey_config *c, const char *path, struct survey **ret) {
    struct survey_item item = {.path = path, .name = "thing"};
    memset(why, 0, sizeof why);
    *ret = NULL;
    return survey_new(c, &item, 1, ret, why);
}

/* It must be refused with this status, and a reason with these words that names the path. */
static inline void check_refused(const struct survey_config *c, const char *path, int status,
                                 const char *words) {
    struct survey *s;
    CHECK_EQ(look(c, path, &s), status);
    CHECK(strstr(why, words) != NULL && strstr(why, path) != NULL && strchr(why, '\n') == NULL);
    if (strstr(why, words) == NULL)
        printf("# %s\n", why);
    survey_free(s);
}

static inline struct piece row_of(const struct survey *s, uint32_t row) {
    struct piece p = {0};
    CHECK(piece_load(&p, survey_bundle(s)->digest, survey_table(s), row));
    return p;
}

static inline struct entry entry_named(const struct survey *s, const char *path,
                                       uint64_t *ret_offset) {
    struct entry e;
    size_t at = 0;
    uint64_t offset = survey_manifest(s).len;
    for (; entry_next(survey_manifest(s), &at, &e) == 1; offset += e.bytes) {
        if (ret_offset != NULL)
            *ret_offset = offset;
        if (bytes_equal(e.path, bytes_from_str(path)))
            return e;
    }
    bool there_is_such_an_entry = false;
    CHECK(there_is_such_an_entry);
    return (struct entry){0};
}

/* ---- A survey tells the truth ------------------------------------------------------------------ */

static inline void check_descriptor(const struct survey *s) {
    static uint8_t out[BUNDLE_PAGES_MAX * DIGEST_BYTES_MAX + 256];
    struct bundle b = *survey_bundle(s), back;
    b.goal = GOAL_SPOOL;
    long len = bundle_encode(&b, room_of(out, sizeof out));
    CHECK(len > 0 && bundle_decode(bytes_of(out, (size_t)len), &back) == 0);
    CHECK_EQ(b.manifest_bytes, survey_manifest(s).len);
    CHECK(manifest_fits(survey_manifest(s), b.bytes));
    const uint8_t *at = survey_table(s).at;
    for (uint32_t i = 0; i < bundle_page_count(&b); i++) {
        uint8_t digest[DIGEST_BYTES_MAX];
        size_t page = (size_t)bundle_page_pieces(&b, i) * bundle_row_bytes(b.digest);
        digest_of(b.digest, bytes_of(at, page), digest);
        CHECK(memcmp(digest, b.pages.at + i * digest_bytes(b.digest), digest_bytes(b.digest)) == 0);
        at += page;
    }
    CHECK_EQ(at - survey_table(s).at, survey_table(s).len);
}

static inline bool all_zero(const uint8_t *at, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (at[i] != 0)
            return false;
    return true;
}

/* Each piece that is read has its digest; of a hole both ends are looked at. */
static inline void check_pieces(struct survey *s) {
    const struct bundle *b = survey_bundle(s);
    uint8_t *bytes = malloc(BUNDLE_PIECE_BYTES_MAX);
    ASSERT(bytes != NULL);
    uint64_t at = 0;
    uint32_t longest = 0;
    for (uint32_t i = 0; i < b->pieces; i++) {
        struct piece p = row_of(s, i);
        uint8_t digest[DIGEST_BYTES_MAX] = {0};
        uint32_t n = p.hole && p.bytes > 4096 ? 4096 : p.bytes;
        CHECK_EQ(survey_read(s, at, room_of(bytes, n), why), 0);
        if (p.hole) {
            CHECK(all_zero(bytes, n));
            CHECK_EQ(survey_read(s, at + p.bytes - n, room_of(bytes, n), why), 0);
            CHECK(all_zero(bytes, n));
        } else {
            digest_of(b->digest, bytes_of(bytes, n), digest);
            CHECK(memcmp(digest, p.digest, sizeof digest) == 0);
            longest = p.bytes > longest ? p.bytes : longest;
        }
        at += p.bytes;
    }
    CHECK_EQ(at, b->bytes);
    CHECK(longest == b->piece_bytes || (bundle_is_open(b) && longest < b->piece_bytes));
    free(bytes);
}

static inline void check_sum(struct survey *s, const struct entry *e, uint64_t offset) {
    static uint8_t bytes[1 << 20];
    uint8_t digest[32];
    struct sum *sum = sum_new(sum_kind(e->sum));
    for (uint64_t at = 0; at < e->bytes;) {
        size_t n = e->bytes - at < sizeof bytes ? (size_t)(e->bytes - at) : sizeof bytes;
        CHECK_EQ(survey_read(s, offset + at, room_of(bytes, n), why), 0);
        sum_add(sum, bytes_of(bytes, n));
        at += n;
    }
    sum_end(sum, digest);
    CHECK(memcmp(digest, e->sum, 32) == 0);
    CHECK_EQ(sum_kind(e->sum), survey_bundle(s)->digest);
}

/* Folders stand before what is in them, and files are what their digests say. */
static inline void check_entries(struct survey *s) {
    struct entry e;
    size_t at = 0;
    uint64_t offset = survey_manifest(s).len;
    uint32_t count = 0;
    for (; entry_next(survey_manifest(s), &at, &e) == 1; offset += e.bytes, count++) {
        const uint8_t *slash = memrchr(e.path.at, '/', e.path.len);
        size_t before = 0;
        struct entry parent = {.kind = ENTRY_KINDS};
        while (slash != NULL && entry_next(survey_manifest(s), &before, &parent) == 1 &&
               !bytes_equal(parent.path, bytes_of(e.path.at, (size_t)(slash - e.path.at))))
            ;
        CHECK(slash == NULL || (parent.kind == ENTRY_FOLDER && before < at));
        if (e.kind == ENTRY_FILE && e.bytes < GIB)
            check_sum(s, &e, offset);
    }
    CHECK_EQ(count, survey_entries(s));
}

static inline void check_true(struct survey *s) {
    check_descriptor(s);
    check_pieces(s);
    if (survey_entries(s) < 100)
        check_entries(s);
}

static inline struct survey *look_well(const struct survey_config *c, const char *path) {
    struct survey *s;
    if (!CHECK_EQ(look(c, path, &s), 0))
        printf("# %s\n", why);
    else
        check_true(s);
    return s;
}

/* ---- Where the test works ---------------------------------------------------------------------- */

static inline bool rig_enter(void) {
    const char *temp = getenv("TMPDIR");
    snprintf(rig_home, sizeof rig_home, "%.40s/survey-XXXXXX", temp != NULL ? temp : "/tmp");
    return mkdtemp(rig_home) != NULL && chdir(rig_home) == 0;
}

static inline void rig_leave(void) {
    if (chdir("/") == 0)
        away(rig_home);
}

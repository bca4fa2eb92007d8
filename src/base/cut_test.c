/* SPDX-License-Identifier: MIT */
/* Pieces keep to their bounds, and a change to the contents changes few of them. */
#include "base/cut.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/random.h"
#include "tap.h"

#ifdef STORM_SLOW
enum { LARGE = 20 << 20 };
#else
enum { LARGE = 100 << 20 };
#endif
enum { USUAL = 128 << 10, MAPPED_MAX = 16 << 20 };

static uint8_t *random_stream(uint64_t seed, size_t len) {
    uint8_t *stream = malloc(len);
    ASSERT(stream != NULL);
    struct random r;
    random_init(&r, seed);
    random_bytes(&r, stream, len);
    return stream;
}

/* ---- What pieces two streams have in common ---------------------------------------------------- */

struct pieces {
    uint64_t *hashes;
    size_t count;
};

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static struct pieces pieces_of(const struct cut *c, struct bytes stream) {
    struct pieces p = {.hashes = calloc(stream.len / c->least + 1, sizeof *p.hashes)};
    ASSERT(p.hashes != NULL);
    for (size_t at = 0; at < stream.len;) {
        uint32_t len = cut_next(c, bytes_of(stream.at + at, stream.len - at));
        p.hashes[p.count++] = hash_once(stream.at + at, len);
        at += len;
    }
    qsort(p.hashes, p.count, sizeof *p.hashes, by_value);
    return p;
}

/* Bytes of the stream in pieces that are not among those. */
static size_t bytes_changed(const struct cut *c, const struct pieces *known, struct bytes stream) {
    size_t changed = 0;
    for (size_t at = 0; at < stream.len;) {
        uint32_t len = cut_next(c, bytes_of(stream.at + at, stream.len - at));
        uint64_t hash = hash_once(stream.at + at, len);
        if (bsearch(&hash, known->hashes, known->count, sizeof hash, by_value) == NULL)
            changed += len;
        at += len;
    }
    return changed;
}

/* In a stream with room for a byte in front: a byte is inserted there, one in the middle is changed, then
 * removed. Each alone changes less than a twentieth of it, and something. */
static void check_changes(const struct cut *c, uint8_t *room, size_t len) {
    uint8_t *stream = room + 1;
    struct pieces known = pieces_of(c, bytes_of(stream, len));
    CHECK_EQ(bytes_changed(c, &known, bytes_of(stream, len)), 0);
    room[0] = 'x';
    size_t changed = bytes_changed(c, &known, bytes_of(room, len + 1));
    CHECK(changed > 0 && changed < len / 20);
    stream[len / 2] ^= 1;
    changed = bytes_changed(c, &known, bytes_of(stream, len));
    CHECK(changed > 0 && changed < len / 20);
    memmove(stream + len / 2, stream + len / 2 + 1, len - len / 2 - 1);
    changed = bytes_changed(c, &known, bytes_of(stream, len - 1));
    CHECK(changed > 0 && changed < len / 20);
    free(known.hashes);
}

static void test_changes_of_random_bytes_stay_local(void) {
    struct cut c;
    cut_init(&c, USUAL);
    uint8_t *stream = random_stream(1, LARGE + 1);
    check_changes(&c, stream, LARGE);
    free(stream);
}

/* This program and the libraries that it uses, one after the other. */
static size_t read_mapped(uint8_t *to, size_t max) {
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL)
        return 0;
    size_t len = 0;
    char line[1024], last[1024] = "";
    while (fgets(line, sizeof line, maps) != NULL) {
        char *path = strchr(line, '/');
        if (path == NULL || strcmp(path, last) == 0)
            continue;
        snprintf(last, sizeof last, "%s", path);
        path[strcspn(path, "\n")] = 0;
        FILE *file = fopen(path, "re");
        if (file == NULL)
            continue;
        len += fread(to + len, 1, max - len, file);
        fclose(file);
    }
    fclose(maps);
    return len;
}

static void test_changes_of_programs_stay_local(void) {
    struct cut c;
    cut_init(&c, 8192);
    uint8_t *stream = malloc(MAPPED_MAX + 1);
    ASSERT(stream != NULL);
    size_t len = read_mapped(stream + 1, MAPPED_MAX);
    printf("# %zu bytes of programs\n", len);
    if (len >= 1 << 20)
        check_changes(&c, stream, len);
    free(stream);
}

/* ---- Lengths ----------------------------------------------------------------------------------- */

/* All but the last within bounds; their mean is about what was asked for. */
static void test_lengths(void) {
    size_t size = LARGE / 4;
    uint8_t *stream = random_stream(2, size);
    static const uint32_t asked[] = {4096, 5000, 65536, USUAL, 200000};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        struct cut c;
        cut_init(&c, asked[i]);
        CHECK(c.least >= asked[i] * 3 / 4 && c.most <= asked[i] * 7 / 4);
        size_t at = 0, count = 0, forced = 0;
        while (at < size) {
            uint32_t len = cut_next(&c, bytes_of(stream + at, size - at));
            CHECK(len > 0 && len <= c.most && (len >= c.least || at + len == size));
            forced += len == c.most;
            count++;
            at += len;
        }
        CHECK_EQ(at, size);
        CHECK(size / count > asked[i] / 10 * 8 && size / count < asked[i] / 10 * 12);
        CHECK(forced < count / 8);
    }
    free(stream);
}

/* Nothing to tell places apart: all of the longest. */
static void test_all_the_same(void) {
    struct cut c;
    cut_init(&c, 4096);
    uint8_t stream[20000];
    for (int value = 0; value < 256; value++) {
        memset(stream, value, sizeof stream);
        CHECK_EQ(cut_next(&c, bytes_of(stream, sizeof stream)), c.most);
    }
}

static void test_little(void) {
    struct cut c;
    cut_init(&c, 4096);
    uint8_t *stream = random_stream(3, 4096);
    CHECK_EQ(cut_next(&c, (struct bytes){0}), 0);
    for (uint32_t len = 1; len <= c.least; len++)
        CHECK_EQ(cut_next(&c, bytes_of(stream, len)), len);
    free(stream);
}

/* ---- Only contents count ----------------------------------------------------------------------- */

/* A piece is the same however much is to be seen behind it and before it. */
static void test_only_contents_count(void) {
    struct cut c;
    cut_init(&c, 4096);
    enum { SIZE = 1 << 20 };
    uint8_t *stream = random_stream(4, SIZE);
    uint32_t first = cut_next(&c, bytes_of(stream, SIZE));
    CHECK_EQ(cut_next(&c, bytes_of(stream, c.most)), first);
    CHECK_EQ(cut_next(&c, bytes_of(stream, first)), first);
    CHECK_EQ(cut_next(&c, bytes_of(stream, first - 1)), first - 1);
    /* Looked at from anywhere: soon the same cuts as from the beginning. */
    bool *cuts = calloc(SIZE + 1, sizeof *cuts);
    ASSERT(cuts != NULL);
    for (size_t at = 0; at < SIZE; cuts[at] = true)
        at += cut_next(&c, bytes_of(stream + at, SIZE - at));
    for (size_t from = 1; from < SIZE / 2; from += 997) {
        size_t at = from, strange = 0;
        while (at < SIZE) {
            at += cut_next(&c, bytes_of(stream + at, SIZE - at));
            strange += !cuts[at];
        }
        CHECK(strange < 24);
    }
    free(cuts);
    free(stream);
}

/* In whatever portions a piece comes, also of one byte, and right at a cut. */
static void test_bit_by_bit(void) {
    enum { SIZE = 1 << 18 };
    struct cut c;
    struct random r;
    cut_init(&c, 4096);
    random_init(&r, 6);
    uint8_t *stream = random_stream(6, SIZE);
    memset(stream + SIZE / 2, 0, SIZE / 4); /* where every piece is as long as it may be */
    uint32_t had = 0, whole = cut_next(&c, bytes_of(stream, SIZE));
    for (size_t at = 0; at < SIZE;) {
        size_t n = random_below(&r, 3) == 0 ? whole - had : 1 + random_below(&r, 3000);
        n = n < SIZE - at ? n : SIZE - at;
        uint32_t more = cut_more(&c, had, bytes_of(stream + at, n));
        had += more;
        at += more;
        if (more == n)
            continue;
        CHECK_EQ(had, whole);
        had = 0;
        whole = cut_next(&c, bytes_of(stream + at, SIZE - at));
    }
    CHECK_EQ(had, whole);
    free(stream);
}

/* The same for every compiler and byte order: what these were when it was written. */
static void test_the_same_everywhere(void) {
    static const uint32_t expected[] = {20986, 13124, 18080, 17833, 17902, 16913};
    struct cut c;
    cut_init(&c, 16384);
    uint8_t *stream = random_stream(5, 1 << 20);
    size_t at = 0;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        uint32_t len = cut_next(&c, bytes_of(stream + at, (1 << 20) - at));
        CHECK_EQ(len, expected[i]);
        at += len;
    }
    free(stream);
}

int main(void) {
    TEST(test_lengths);
    TEST(test_all_the_same);
    TEST(test_little);
    TEST(test_only_contents_count);
    TEST(test_bit_by_bit);
    TEST(test_the_same_everywhere);
    TEST(test_changes_of_random_bytes_stay_local);
    TEST(test_changes_of_programs_stay_local);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Digests are those that everybody else computes. */
#include "os/digest.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "os/digest_wide.h"
#include "tap.h"

static const char *hex(const uint8_t *digest, uint32_t len) {
    static char text[2 * DIGEST_BYTES_MAX + 1];
    for (uint32_t i = 0; i < len; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return text;
}

static const char *of(enum digest_kind kind, struct bytes bytes) {
    uint8_t digest[DIGEST_BYTES_MAX + 1];
    memset(digest, 0xA5, sizeof digest);
    digest_of(kind, bytes, digest);
    for (uint32_t i = digest_bytes(kind); i < sizeof digest; i++)
        CHECK_EQ(digest[i], 0xA5); /* nothing beyond its length */
    return hex(digest, digest_bytes(kind));
}

/* The vectors of FIPS 180-2. */
static void test_sha256(void) {
    CHECK_STR(of(DIGEST_SHA256, (struct bytes){0}),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK_STR(of(DIGEST_SHA256, bytes_from_str("abc")),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK_STR(of(DIGEST_SHA256,
                 bytes_from_str("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

/* A million a's, in parts of every length. */
static void test_sha256_bit_by_bit(void) {
    static uint8_t block[1500];
    memset(block, 'a', sizeof block);
    struct sum *s = sum_new(DIGEST_SHA256);
    if (!CHECK(s != NULL))
        return;
    size_t left = 1000000;
    for (size_t part = 0; left > 0; part = (part + 1) % sizeof block) {
        size_t n = part < left ? part : left;
        sum_add(s, bytes_of(block, n));
        left -= n;
    }
    uint8_t digest[32];
    sum_end(s, digest);
    CHECK_STR(hex(digest, 32), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    sum_end(sum_new(DIGEST_SHA256), NULL); /* given up */
    sum_end(NULL, NULL);
    CHECK_EQ(sum_kind(digest), DIGEST_SHA256);
}

/* In parts as at once; and one after the other. */
static void check_parts(enum digest_kind kind) {
    enum { SIZE = 5000 };
    static uint8_t bytes[SIZE];
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (uint8_t)(i * i >> 3);
    struct digesting *d = digesting_new(kind);
    if (!CHECK(d != NULL))
        return;
    for (size_t len = 0; len <= SIZE; len += 619) {
        uint8_t digest[DIGEST_BYTES_MAX];
        for (size_t at = 0, part = 0, n; at < len; at += n, part++) {
            n = part < len - at ? part : len - at;
            digesting_add(d, bytes_of(bytes + at, n));
        }
        digesting_end(d, digest);
        char text[2 * DIGEST_BYTES_MAX + 1];
        snprintf(text, sizeof text, "%s", hex(digest, digest_bytes(kind)));
        CHECK_STR(of(kind, bytes_of(bytes, len)), text);
    }
    digesting_free(d);
}

static void test_in_parts(void) {
    check_parts(DIGEST_XXH3);
    check_parts(DIGEST_SHA256);
    digesting_free(NULL);
}

/* The digest of the digests of blocks, by XXH3, with the length and a sign. */
static void by_definition(const uint8_t *at, size_t len, uint8_t out[32]) {
    uint8_t digests[16 * 8];
    size_t count = 0;
    for (size_t from = 0; from < len; from += SUM_BLOCK_BYTES, count++)
        digest_of(DIGEST_XXH3,
                  bytes_of(at + from, len - from < SUM_BLOCK_BYTES ? len - from : SUM_BLOCK_BYTES),
                  digests + 16 * count);
    digest_of(DIGEST_XXH3, bytes_of(digests, 16 * count), out);
    store_le64(out + 16, len);
    memcpy(out + 24, "xxh3-mib", 8);
}

enum { SUMMED = 4 * SUM_BLOCK_BYTES };

static uint8_t *some_bytes(void) {
    uint8_t *block = malloc(SUMMED);
    ASSERT(block != NULL);
    for (size_t i = 0; i < SUMMED; i++)
        block[i] = (uint8_t)(i * 7 + (i >> 12));
    return block;
}

/* However it comes. */
static void test_sum_by_xxh3(void) {
    uint8_t *block = some_bytes();
    static const size_t lengths[] = {0, 1, 100000, SUM_BLOCK_BYTES, SUM_BLOCK_BYTES + 1, SUMMED};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t len = lengths[i], part = 1; part < 8 * SUMMED; part = part * 7 + 1) {
            uint8_t sum[32], expected[32];
            struct sum *s = sum_new(DIGEST_XXH3);
            for (size_t at = 0; s != NULL && at < len; at += part)
                sum_add(s, bytes_of(block + at, len - at < part ? len - at : part));
            sum_end(s, sum);
            by_definition(block, len, expected);
            CHECK(memcmp(sum, expected, 32) == 0);
            CHECK_EQ(sum_kind(sum), DIGEST_XXH3);
        }
    free(block);
}

/* In two parts, one of which has whole blocks. */
static void test_sum_in_parts(void) {
    uint8_t *block = some_bytes();
    for (size_t middle = 0; middle <= SUMMED; middle += SUM_BLOCK_BYTES)
        for (size_t less = 0; less < 3 && middle + less <= SUMMED; less++) {
            uint8_t sum[32], expected[32];
            size_t end = SUMMED - less;
            struct sum *s = sum_new(DIGEST_XXH3), *part = sum_part(end - middle);
            ASSERT(s != NULL && part != NULL);
            sum_add(s, bytes_of(block, middle));
            sum_add(part, bytes_of(block + middle, end - middle));
            sum_join(s, part);
            sum_end(part, NULL);
            sum_end(s, sum);
            by_definition(block, end, expected);
            CHECK(memcmp(sum, expected, 32) == 0);
        }
    free(block);
}

/* As `xxhsum -H128` prints them: the canonical order of bytes. Short, middle and long inputs go different
 * ways. */
static void test_xxh3(void) {
    static uint8_t block[100000];
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)(i * 7);
    CHECK_STR(of(DIGEST_XXH3, (struct bytes){0}), "99aa06d3014798d86001c324468d497f");
    CHECK_STR(of(DIGEST_XXH3, bytes_from_str("abc")), "06b05ab6733a618578af5f94892f3950");
    CHECK_STR(of(DIGEST_XXH3, bytes_of(block, 200)), "dbfff5e13c798ab90497bdb3d145ccd6");
    CHECK_STR(of(DIGEST_XXH3, bytes_of(block, sizeof block)), "4fb78cd2670dad5801271d2740e5fca3");
}

static const struct digest_wide *const vectors[] = {&digest_wide_32, &digest_wide_64};
enum { VECTORS = sizeof vectors / sizeof *vectors };

static bool any_works(void) {
    bool any = false;
    for (size_t i = 0; i < VECTORS; i++)
        any |= vectors[i]->works();
    return any;
}

/* By vectors of all lengths that work here, not only by those that are used. */
static void test_xxh3_by_vectors(void) {
    static uint8_t block[100000];
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)(i * 7);
    for (size_t i = 0; i < VECTORS; i++) {
        uint8_t digest[16];
        if (!vectors[i]->works())
            continue;
        vectors[i]->whole(bytes_of(block, 200), digest);
        CHECK_STR(hex(digest, 16), "dbfff5e13c798ab90497bdb3d145ccd6");
        vectors[i]->whole(bytes_of(block, sizeof block), digest);
        CHECK_STR(hex(digest, 16), "4fb78cd2670dad5801271d2740e5fca3");
    }
}

int main(void) {
    TEST(test_sha256);
    TEST(test_sha256_bit_by_bit);
    TEST(test_xxh3);
    if (any_works())
        TEST(test_xxh3_by_vectors);
    else
        SKIP("test_xxh3_by_vectors", "neither processor nor compiler has any");
    TEST(test_in_parts);
    TEST(test_sum_by_xxh3);
    TEST(test_sum_in_parts);
    return tap_finish();
}

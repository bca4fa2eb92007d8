/* SPDX-License-Identifier: MIT */
/* Digests of contents: see digest.h and docs/decisions/0022-digests.md.
 *
 * XXH3 comes as a header and is compiled here. SHA-256 is that of libcrypto, for the processor's instructions; the
 * plain functions rather than EVP, which would bring half of the library into a static program and
 * run its initialisation. */
#include "os/digest.h"

#include "base/assert.h"
#include "os/digest_wide.h"

#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#include <stdlib.h>

/* XXH3 is one loop of vector instructions: unrolled it is nearly twice as fast (clang does so by itself). */
#ifndef __clang__
#pragma GCC optimize("O3", "unroll-loops")
#endif
#define XXH_PREFETCH_DIST DIGEST_AHEAD_BYTES
#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(SHA256_DIGEST_LENGTH == 32, "the length of a digest");

/* It begins to pay. */
enum { WIDE_BYTES_MIN = 1024 };

/* The canonical form is that of a big-endian machine, and the same on all. */
static void store_hash(XXH128_hash_t hash, uint8_t *out) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    memcpy(out, canonical.digest, sizeof canonical.digest);
}

/* The fastest that works here; NULL: what all processors have. */
static const struct digest_wide *wide(void) {
    return digest_wide_64.works()   ? &digest_wide_64
           : digest_wide_32.works() ? &digest_wide_32
                                    : NULL;
}

static void add_to_state(XXH3_state_t *state, struct bytes bytes) {
    const struct digest_wide *w = wide();
    if (w != NULL)
        w->add(state, bytes);
    else
        XXH3_128bits_update(state, bytes.at, bytes.len);
}

void digest_of(enum digest_kind kind, struct bytes bytes, uint8_t out[DIGEST_BYTES_MAX]) {
    const struct digest_wide *w = wide();
    if (kind == DIGEST_XXH3 && bytes.len >= WIDE_BYTES_MIN && w != NULL) {
        w->whole(bytes, out);
        return;
    }
    if (kind == DIGEST_XXH3) {
        store_hash(XXH3_128bits(bytes.at, bytes.len), out);
        return;
    }
    SHA256_CTX context;
    SHA256_Init(&context);
    SHA256_Update(&context, bytes.at, bytes.len);
    SHA256_Final(out, &context);
}

/* ---- bit by bit ---- */

struct digesting {
    enum digest_kind kind;
    union {
        SHA256_CTX sha;
        XXH3_state_t xxh3;
    };
};

void digesting_restart(struct digesting *d) {
    if (d->kind == DIGEST_XXH3)
        XXH3_128bits_reset(&d->xxh3);
    else
        SHA256_Init(&d->sha);
}

struct digesting *digesting_new(enum digest_kind kind) {
    struct digesting *d = aligned_alloc(_Alignof(struct digesting), sizeof *d);
    if (d == NULL)
        return NULL;
    d->kind = kind;
    digesting_restart(d);
    return d;
}

void digesting_free(struct digesting *d) {
    free(d);
}

void digesting_add(struct digesting *d, struct bytes bytes) {
    if (d->kind == DIGEST_XXH3)
        add_to_state(&d->xxh3, bytes);
    else
        SHA256_Update(&d->sha, bytes.at, bytes.len);
}

void digesting_end(struct digesting *d, uint8_t out[DIGEST_BYTES_MAX]) {
    if (d->kind == DIGEST_XXH3)
        store_hash(XXH3_128bits_digest(&d->xxh3), out);
    else
        SHA256_Final(out, &d->sha);
    digesting_restart(d);
}

/* ---- sums ---- */

/* Where the parts of a sum by XXH3 are, and the sign: no SHA-256 ends so. */
enum { SUM_LENGTH_AT = 16, SUM_SIGN_AT = 24, SUM_SIGN_BYTES = 8, XXH3_BYTES = 16 };
static const char sum_sign[SUM_SIGN_BYTES + 1] = "xxh3-mib";

struct sum {
    enum digest_kind kind;
    uint64_t bytes;
    union {
        SHA256_CTX sha;
        struct {
            XXH3_state_t block; /* the one that is not whole */
            XXH3_state_t all;   /* of the digests of those that are */
        };
    };
    /* Of a part: the digests, for whom it is a part of. */
    uint64_t digest_count, digest_room;
    uint8_t digests[][XXH3_BYTES];
};

static struct sum *sum_alloc(enum digest_kind kind, uint64_t digests) {
    size_t unit = _Alignof(struct sum);
    size_t size = sizeof(struct sum) + (size_t)digests * XXH3_BYTES;
    struct sum *s = aligned_alloc(unit, (size + unit - 1) / unit * unit);
    if (s == NULL)
        return NULL;
    s->kind = kind;
    s->bytes = s->digest_count = 0;
    s->digest_room = digests;
    return s;
}

struct sum *sum_new(enum digest_kind kind) {
    struct sum *s = sum_alloc(kind, 0);
    if (s != NULL && kind == DIGEST_XXH3) {
        XXH3_128bits_reset(&s->block);
        XXH3_128bits_reset(&s->all);
    } else if (s != NULL) {
        SHA256_Init(&s->sha);
    }
    return s;
}

struct sum *sum_part(uint64_t bytes) {
    struct sum *s = sum_alloc(DIGEST_XXH3, bytes / SUM_BLOCK_BYTES);
    if (s != NULL)
        XXH3_128bits_reset(&s->block);
    return s;
}

static void end_block(struct sum *s) {
    uint8_t digest[XXH3_BYTES];
    store_hash(XXH3_128bits_digest(&s->block), digest);
    XXH3_128bits_reset(&s->block);
    if (s->digest_room == 0) {
        XXH3_128bits_update(&s->all, digest, sizeof digest);
        return;
    }
    ASSERT(s->digest_count < s->digest_room);
    memcpy(s->digests[s->digest_count++], digest, sizeof digest);
}

static void add_to_block(struct sum *s, struct bytes bytes) {
    add_to_state(&s->block, bytes);
    s->bytes += bytes.len;
    if (s->bytes % SUM_BLOCK_BYTES == 0)
        end_block(s);
}

void sum_add(struct sum *s, struct bytes bytes) {
    if (s->kind != DIGEST_XXH3) {
        s->bytes += bytes.len;
        SHA256_Update(&s->sha, bytes.at, bytes.len);
        return;
    }
    while (bytes.len > 0) {
        uint64_t left = SUM_BLOCK_BYTES - s->bytes % SUM_BLOCK_BYTES;
        size_t n = left < bytes.len ? (size_t)left : bytes.len;
        add_to_block(s, bytes_of(bytes.at, n));
        bytes = bytes_of(bytes.at + n, bytes.len - n);
    }
}

void sum_join(struct sum *s, const struct sum *part) {
    ASSERT(s->kind == DIGEST_XXH3 && s->digest_room == 0 && s->bytes % SUM_BLOCK_BYTES == 0);
    XXH3_128bits_update(&s->all, part->digests, (size_t)part->digest_count * XXH3_BYTES);
    XXH3_copyState(&s->block, &part->block);
    s->bytes += part->bytes;
}

void sum_unknown(uint64_t bytes, uint8_t out[32]) {
    memset(out, 0, XXH3_BYTES);
    store_le64(out + SUM_LENGTH_AT, bytes);
    memcpy(out + SUM_SIGN_AT, sum_sign, SUM_SIGN_BYTES);
}

bool sum_is_known(const uint8_t sum[32]) {
    uint8_t unknown[32];
    sum_unknown(load_le64(sum + SUM_LENGTH_AT), unknown);
    return memcmp(sum, unknown, sizeof unknown) != 0;
}

static void end_xxh3(struct sum *s, uint8_t out[32]) {
    if (s->bytes % SUM_BLOCK_BYTES != 0)
        end_block(s);
    sum_unknown(s->bytes, out);
    store_hash(XXH3_128bits_digest(&s->all), out);
}

void sum_end(struct sum *s, uint8_t out[32]) {
    if (s != NULL && out != NULL && s->kind == DIGEST_XXH3)
        end_xxh3(s, out);
    else if (s != NULL && out != NULL)
        SHA256_Final(out, &s->sha);
    free(s);
}

enum digest_kind sum_kind(const uint8_t sum[32]) {
    return memcmp(sum + SUM_SIGN_AT, sum_sign, SUM_SIGN_BYTES) == 0 ? DIGEST_XXH3 : DIGEST_SHA256;
}

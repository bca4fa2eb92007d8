/* SPDX-License-Identifier: MIT */
/* Digests of contents: see digest.h and docs/decisions/0022-digests.md.
 *
 * XXH3 comes as a header and is compiled here. SHA-256 is that of libcrypto, for the processor's instructions; the
 * plain functions rather than EVP, which would bring half of the library into a static program and
 * run its initialisation. */
#include "os/digest.h"

#include "os/digest_wide.h"

#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#include <stdlib.h>

/* XXH3 is one loop of vector instructions: unrolled it is nearly twice as fast (clang does so by itself). */
#ifndef __clang__
#pragma GCC optimize("O3", "unroll-loops")
#endif
#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(SHA256_DIGEST_LENGTH == 32, "the length of a digest");

/* It begins to pay. */
enum { WIDE_BYTES_MIN = 1024 };

void digest_of(enum digest_kind kind, struct bytes bytes, uint8_t out[DIGEST_BYTES_MAX]) {
    if (kind == DIGEST_XXH3 && bytes.len >= WIDE_BYTES_MIN && digest_wide_works()) {
        digest_wide(bytes, out);
        return;
    }
    if (kind == DIGEST_XXH3) {
        /* The canonical form is that of a big-endian machine, and the same on all. */
        XXH128_canonical_t canonical;
        XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.at, bytes.len));
        memcpy(out, canonical.digest, sizeof canonical.digest);
        return;
    }
    SHA256_CTX context;
    SHA256_Init(&context);
    SHA256_Update(&context, bytes.at, bytes.len);
    SHA256_Final(out, &context);
}

/* ---- sums ---- */

/* Where the parts of a sum by XXH3 are, and the sign: no SHA-256 ends so. */
enum { SUM_LENGTH_AT = 16, SUM_SIGN_AT = 24, SUM_SIGN_BYTES = 8 };
static const char sum_sign[SUM_SIGN_BYTES + 1] = "xxh3-128";

struct sum {
    enum digest_kind kind;
    uint64_t bytes;
    union {
        SHA256_CTX sha;
        XXH3_state_t xxh;
    };
};

struct sum *sum_new(enum digest_kind kind) {
    struct sum *s = aligned_alloc(_Alignof(struct sum), sizeof *s);
    if (s == NULL)
        return NULL;
    s->kind = kind;
    s->bytes = 0;
    if (kind == DIGEST_XXH3)
        XXH3_128bits_reset(&s->xxh);
    else
        SHA256_Init(&s->sha);
    return s;
}

void sum_add(struct sum *s, struct bytes bytes) {
    s->bytes += bytes.len;
    if (s->kind == DIGEST_XXH3)
        XXH3_128bits_update(&s->xxh, bytes.at, bytes.len);
    else
        SHA256_Update(&s->sha, bytes.at, bytes.len);
}

static void end_xxh3(const struct sum *s, uint8_t out[32]) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&s->xxh));
    memcpy(out, canonical.digest, sizeof canonical.digest);
    store_le64(out + SUM_LENGTH_AT, s->bytes);
    memcpy(out + SUM_SIGN_AT, sum_sign, SUM_SIGN_BYTES);
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

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

struct sha256 {
    SHA256_CTX context;
};

struct sha256 *sha256_new(void) {
    struct sha256 *s = malloc(sizeof *s);
    if (s != NULL)
        SHA256_Init(&s->context);
    return s;
}

void sha256_add(struct sha256 *s, struct bytes bytes) {
    SHA256_Update(&s->context, bytes.at, bytes.len);
}

void sha256_end(struct sha256 *s, uint8_t out[32]) {
    if (s != NULL && out != NULL)
        SHA256_Final(out, &s->context);
    free(s);
}

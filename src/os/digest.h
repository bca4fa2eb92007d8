/* SPDX-License-Identifier: MIT */
/* Digests of contents: XXH3 where nobody is to be mistrusted, SHA-256 elsewhere and for names in caches. */
#pragma once

#include "base/bytes.h"
#include "wire/bundle.h"

/* digest_bytes(kind) of `out` are written. */
void digest_of(enum digest_kind kind, struct bytes bytes, uint8_t out[DIGEST_BYTES_MAX]);

/* SHA-256 of what comes bit by bit. */
struct sha256;
/* NULL: no memory. */
struct sha256 *sha256_new(void);
void sha256_add(struct sha256 *s, struct bytes bytes);
/* The digest of all that came, if `out` is not NULL; frees it (NULL: nothing to do). */
void sha256_end(struct sha256 *s, uint8_t out[32]);

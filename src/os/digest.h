/* SPDX-License-Identifier: MIT */
/* Digests of contents: XXH3 where nobody is to be mistrusted, SHA-256 elsewhere. */
#pragma once

#include "base/bytes.h"
#include "wire/bundle.h"

/* digest_bytes(kind) of `out` are written. */
void digest_of(enum digest_kind kind, struct bytes bytes, uint8_t out[DIGEST_BYTES_MAX]);

/* The same of bytes that come bit by bit. */
struct digesting;
/* NULL: no memory. */
struct digesting *digesting_new(enum digest_kind kind);
void digesting_free(struct digesting *d);
void digesting_add(struct digesting *d, struct bytes bytes);
/* What came is forgotten. */
void digesting_restart(struct digesting *d);
/* The digest of all that came; what comes next begins another. */
void digesting_end(struct digesting *d, uint8_t out[DIGEST_BYTES_MAX]);

/* What names the contents of a file in caches, from bytes that come bit by bit: their SHA-256 or, where pieces are
 * digested by XXH3, too, that of the digests of its blocks, with its length and a sign: so two processors can sum one
 * file. */
enum { SUM_BLOCK_BYTES = 1 << 20 };
struct sum;
/* NULL: no memory. */
struct sum *sum_new(enum digest_kind kind);
void sum_add(struct sum *s, struct bytes bytes);
/* By XXH3, of so many bytes that follow others, whole blocks of them: */
struct sum *sum_part(uint64_t bytes);
/* those, which are in `s`. The part can only be given up afterwards: sum_end(part, NULL). */
void sum_join(struct sum *s, const struct sum *part);
/* The sum of all that came, if `out` is not NULL; frees it (NULL: nothing to do). */
void sum_end(struct sum *s, uint8_t out[32]);
/* Of so many bytes that nobody has summed yet: the sum of no file. */
void sum_unknown(uint64_t bytes, uint8_t out[32]);
bool sum_is_known(const uint8_t sum[32]);
/* What it was made by. */
enum digest_kind sum_kind(const uint8_t sum[32]);

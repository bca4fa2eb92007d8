/* SPDX-License-Identifier: MIT */
/*
 * Running 64-bit hash, for traces and tables.
 *
 * Takes 64-bit words; bytes enter as their length, then little-endian words, the last one filled up
 * with zeros, so that ("ab", "c") and ("a", "bc") differ and byte order does not matter. Two lanes
 * of state keep early collisions unlikely in long traces. Not for secrets or hostile input.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct hash {
    uint64_t a, b;
};

void hash_init(struct hash *h, uint64_t seed);
void hash_u64(struct hash *h, uint64_t v);
void hash_bytes(struct hash *h, const void *at, size_t len);

/* The hash of what came in so far; more may follow. */
uint64_t hash_done(const struct hash *h);

/* The hash of these bytes alone. */
uint64_t hash_once(const void *at, size_t len);

/* SPDX-License-Identifier: MIT */
/*
 * Running hash: each word goes through a bijective multiply-xorshift step into lane a, and lane b
 * gathers what a has been.
 *
 * As each step is a bijection of (a, b) for a given word, and of a for a given lane, two traces
 * that differ in one word never meet at that word; later they can only by chance of about 2^-64 a
 * pair.
 */
#include "base/hash.h"

#include <string.h>

#include "base/bytes.h"

#define HASH_ODD_A ((uint64_t)0xD6E8FEB86659FD93)
#define HASH_ODD_B ((uint64_t)0xA0761D6478BD642F)

static uint64_t mix(uint64_t x) {
    x ^= x >> 32;
    x *= HASH_ODD_A;
    x ^= x >> 29;
    x *= HASH_ODD_B;
    x ^= x >> 32;
    return x;
}

void hash_init(struct hash *h, uint64_t seed) {
    h->a = mix(seed + HASH_ODD_A);
    h->b = mix(seed ^ HASH_ODD_B);
}

void hash_u64(struct hash *h, uint64_t v) {
    h->a = mix(h->a ^ v) + HASH_ODD_B;
    h->b = (h->b << 23 | h->b >> 41) * HASH_ODD_A + h->a;
}

void hash_bytes(struct hash *h, const void *at, size_t len) {
    const uint8_t *p = at;
    hash_u64(h, len);
    for (; len >= 8; p += 8, len -= 8)
        hash_u64(h, load_le64(p));
    if (len > 0) {
        uint8_t tail[8] = {0};
        memcpy(tail, p, len);
        hash_u64(h, load_le64(tail));
    }
}

uint64_t hash_done(const struct hash *h) {
    return mix(h->a ^ mix(h->b));
}

uint64_t hash_once(const void *at, size_t len) {
    struct hash h;
    hash_init(&h, 0);
    hash_bytes(&h, at, len);
    return hash_done(&h);
}

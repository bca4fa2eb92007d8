/* SPDX-License-Identifier: MIT */
/*
 * xoshiro256** (Blackman and Vigna) with splitmix64 (Steele, Lea and Flood) for seeding.
 *
 * Seeding through splitmix64 makes seeds 0, 1, 2, ... as good as any and never gives the forbidden
 * all-zero state (its four outputs in a row are distinct).
 */
#include "base/random.h"

#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"

static uint64_t rotl(uint64_t x, unsigned k) {
    return x << k | x >> (64 - k);
}

static uint64_t splitmix(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
}

void random_init(struct random *r, uint64_t seed) {
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix(&seed);
}

uint64_t random_u64(struct random *r) {
    uint64_t *s = r->s;
    uint64_t out = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return out;
}

uint64_t random_below(struct random *r, uint64_t n) {
    ASSERT(n > 0);
    /* 2^64 mod n: draws below it would make small results likelier */
    uint64_t reject = (0 - n) % n;
    uint64_t v = random_u64(r);
    while (v < reject)
        v = random_u64(r);
    return v % n;
}

uint64_t random_between(struct random *r, uint64_t low, uint64_t high) {
    ASSERT(low <= high);
    uint64_t span = high - low + 1;
    return span == 0 ? random_u64(r) : low + random_below(r, span);
}

bool random_chance(struct random *r, uint64_t num, uint64_t den) {
    ASSERT(num <= den);
    return random_below(r, den) < num;
}

void random_bytes(struct random *r, void *to, size_t len) {
    uint8_t *p = to;
    while (len > 0) {
        uint8_t word[8];
        size_t n = len < 8 ? len : 8;
        store_le64(word, random_u64(r));
        memcpy(p, word, n);
        p += n;
        len -= n;
    }
}

struct random random_fork(const struct random *r, uint64_t tag) {
    /* Each word of the child mixes the whole parent and the tag. */
    uint64_t state = tag;
    for (int i = 0; i < 4; i++)
        state = splitmix(&state) ^ r->s[i];
    struct random child;
    random_init(&child, splitmix(&state));
    return child;
}

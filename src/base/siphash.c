/* SPDX-License-Identifier: MIT */
/* SipHash-2-4: see siphash.h. */
#include "base/siphash.h"

#include <string.h>

#include "base/bytes.h"

struct state {
    uint64_t a, b, c, d;
};

static uint64_t turn(uint64_t x, unsigned bits) {
    return x << bits | x >> (64 - bits);
}

static void round_once(struct state *s) {
    s->a += s->b;
    s->c += s->d;
    s->b = turn(s->b, 13) ^ s->a;
    s->d = turn(s->d, 16) ^ s->c;
    s->a = turn(s->a, 32);
    s->c += s->b;
    s->a += s->d;
    s->b = turn(s->b, 17) ^ s->c;
    s->d = turn(s->d, 21) ^ s->a;
    s->c = turn(s->c, 32);
}

static void take(struct state *s, uint64_t word) {
    s->d ^= word;
    round_once(s);
    round_once(s);
    s->a ^= word;
}

uint64_t siphash(const uint64_t key[2], const void *at, size_t len) {
    /* "somepseudorandomlygeneratedbytes" */
    struct state s = {key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
                      key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573};
    const uint8_t *bytes = at;
    uint8_t last[8] = {0};
    size_t whole = len - len % 8;
    for (size_t i = 0; i < whole; i += 8)
        take(&s, load_le64(bytes + i));
    if (len > whole)
        memcpy(last, bytes + whole, len - whole);
    last[7] = (uint8_t)len;
    take(&s, load_le64(last));
    s.c ^= 0xff;
    for (int i = 0; i < 4; i++)
        round_once(&s);
    return s.a ^ s.b ^ s.c ^ s.d;
}

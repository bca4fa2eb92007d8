/* SPDX-License-Identifier: MIT */
/* Where the contents say to cut: see cut.h.
 *
 * Whether a place is fit for a cut depends on the sixteen bytes before it and on nothing else. Two streams with the
 * same contents behind some place see the same fit places there; they agree from the first one on that
 * both take, which is a few pieces later. Fit places are a quarter of a piece apart on average, and a piece that
 * has none for a whole one (e^-4 of them) is cut at `most`.
 *
 * Looking for them is most of the work with a file, so it is done twice: four of the bytes are added up, in arithmetic of
 * bytes, which is done for sixteen places at once; only where that gives `promise`, one place in 256, all sixteen are
 * multiplied and mixed. */
#include "base/cut.h"

#include <string.h>

enum { WINDOW = CUT_BEFORE, PLACES = 16, MANY = 4 * PLACES, PROMISE_BITS = 8 };

/* Any will do that no byte gives that is repeated for ever and often found: 15 times it is not 0, nor that of 0xff. */
static const uint8_t promise = 0x5d;

/* Odd numbers without a pattern; they are part of what nodes must agree on only for the sake of what they have in
 * common. */
static const uint64_t first_factor = 0x9e3779b97f4a7c15, second_factor = 0xc2b2ae3d27d4eb4f;

/* Sixteen places, or what is found there, side by side. */
typedef uint8_t places __attribute__((vector_size(PLACES)));

void cut_init(struct cut *c, uint32_t bytes) {
    ASSERT(bytes >= 4096 && bytes <= 1U << 30);
    c->least = bytes - bytes / 4;
    c->most = bytes + bytes / 4 * 3;
    unsigned bits = 31 - (unsigned)__builtin_clz(bytes / 4);
    c->mask = ~(UINT64_MAX >> (bits - PROMISE_BITS));
}

static places load(const uint8_t *at) {
    places p;
    memcpy(&p, at, sizeof p);
    return p;
}

/* Which of the sixteen places from here on keep to look at. */
static places promising(const uint8_t *at) {
    places sum = load(at - 8);
    sum = sum + sum + load(at - 5);
    sum = sum + sum + load(at - 2);
    sum = sum + sum + load(at - 1);
    return (places)(sum == promise);
}

static bool fit(const struct cut *c, const uint8_t *at) {
    uint64_t mixed = load_le64(at - 16) * first_factor;
    mixed = (mixed ^ mixed >> 32) + load_le64(at - 8);
    mixed *= second_factor;
    mixed = (mixed ^ mixed >> 29) * first_factor;
    return (mixed & c->mask) == 0;
}

/* A bit for each, of what is all ones or all zeros. Without an instruction for it: eight of them, side by side in the highest byte
 * of a product. */
static uint64_t bits_of(places p) {
#ifdef __SSE2__
    typedef char signs __attribute__((vector_size(PLACES)));
    return (uint64_t)__builtin_ia32_pmovmskb128((signs)p);
#else
    uint64_t bits = 0;
    uint8_t bytes[PLACES];
    memcpy(bytes, &p, sizeof bytes);
    for (uint32_t k = 0; k < PLACES; k += 8)
        bits |= ((load_le64(bytes + k) & 0x0101010101010101) * 0x0102040810204080) >> 56 << k;
    return bits;
#endif
}

/* The first fit place of those that keep; `none` if it is none of them. */
static uint32_t first_fit(const struct cut *c, const uint8_t *at, uint64_t promising_bits,
                          uint32_t none) {
    for (; promising_bits != 0; promising_bits &= promising_bits - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(promising_bits);
        if (fit(c, at + i))
            return i;
    }
    return none;
}

static uint32_t first_of_places(const struct cut *c, const uint8_t *at) {
    return first_fit(c, at, bits_of(promising(at)), PLACES);
}

/* The same of four times as many. */
static uint32_t first_of_many(const struct cut *c, const uint8_t *at) {
    uint64_t bits = 0;
    for (uint32_t i = 0; i < MANY; i += PLACES)
        bits |= bits_of(promising(at + i)) << i;
    return first_fit(c, at, bits, MANY);
}

/* There may be fewer places left than are looked at side by side: then what lies behind the end is taken as zeros, and
 * the end is a fit place for whoever comes there. */
static uint32_t first_of_last(const struct cut *c, const uint8_t *at, uint32_t left) {
    uint8_t window[WINDOW + PLACES] = {0};
    memcpy(window, at - WINDOW, WINDOW + left);
    uint32_t i = first_of_places(c, window + WINDOW);
    return i < left ? i : left;
}

uint32_t cut_next(const struct cut *c, struct bytes bytes) {
    return cut_more(c, 0, bytes);
}

uint32_t cut_more(const struct cut *c, uint32_t had, struct bytes bytes) {
    uint32_t at = had < c->least ? c->least - had : 0, most = c->most - had;
    if (bytes.len <= at)
        return (uint32_t)bytes.len;
    uint32_t end = bytes.len < most ? (uint32_t)bytes.len : most;
    for (; end - at >= MANY; at += MANY) {
        uint32_t i = first_of_many(c, bytes.at + at);
        if (i < MANY)
            return at + i;
    }
    for (; end - at >= PLACES; at += PLACES) {
        uint32_t i = first_of_places(c, bytes.at + at);
        if (i < PLACES)
            return at + i;
    }
    return at + first_of_last(c, bytes.at + at, end - at);
}

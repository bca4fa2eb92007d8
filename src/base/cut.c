/* SPDX-License-Identifier: MIT */
/* Where the contents say to cut: see cut.h.
 *
 * The hash is that of gear chunking: shifted by a bit for each byte, it has forgotten a byte 64 bytes later, so
 * whether a place is fit for a cut depends on the 64 bytes before it and on nothing else. Two streams with
 * the same contents behind some place see the same fit places there; they agree from the first one on that
 * both take, which is a few pieces later. Fit places are a quarter of a piece apart on average, and a piece that
 * has none for a whole one (e^-4 of them) is cut at `most`. */
#include "base/cut.h"

#include "base/random.h"

enum { WINDOW = 64 };

/* The seed is part of what nodes must agree on only for the sake of what they have in common; any will do. */
static const uint64_t seed = 0x73746f726d;

void cut_init(struct cut *c, uint32_t bytes) {
    ASSERT(bytes >= 4096 && bytes <= 1U << 30);
    c->least = bytes - bytes / 4;
    c->most = bytes + bytes / 4 * 3;
    unsigned bits = 31 - (unsigned)__builtin_clz(bytes / 4);
    c->mask = ~(UINT64_MAX >> bits);
    struct random r;
    random_init(&r, seed);
    for (int i = 0; i < 256; i++)
        c->gear[i] = random_u64(&r);
}

uint32_t cut_next(const struct cut *c, struct bytes bytes) {
    if (bytes.len <= c->least)
        return (uint32_t)bytes.len;
    const uint8_t *at = bytes.at + c->least - WINDOW;
    const uint8_t *end = bytes.at + (bytes.len < c->most ? (uint32_t)bytes.len : c->most);
    uint64_t hash = 0;
    for (const uint8_t *warm = at + WINDOW; at < warm; at++)
        hash = (hash << 1) + c->gear[*at];
    for (; at < end && (hash & c->mask) != 0; at++)
        hash = (hash << 1) + c->gear[*at];
    return (uint32_t)(at - bytes.at);
}

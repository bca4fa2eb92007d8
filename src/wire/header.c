/* SPDX-License-Identifier: MIT */
/* Encoding of the frame header: see header.h. Any 32 bytes decode; the gate judges them. */
#include "wire/header.h"

#include "wire/codec.h"

static void walk(struct codec *c, struct header *h) {
    codec_u16(c, &h->magic);
    codec_u8(c, &h->version);
    codec_u8(c, &h->lane);
    codec_u16(c, &h->type);
    codec_u16(c, &h->zero16);
    codec_u32(c, &h->length);
    codec_u32(c, &h->sequence);
    codec_u32(c, &h->epoch);
    codec_u32(c, &h->node);
    codec_u32(c, &h->life);
    codec_u32(c, &h->zero32);
}

void header_encode(const struct header *h, uint8_t out[HEADER_BYTES]) {
    struct header copy = *h;
    struct codec c = {.encoding = true, .out = out, .len = HEADER_BYTES};
    walk(&c, &copy);
}

void header_decode(struct header *ret, const uint8_t in[HEADER_BYTES]) {
    struct codec c = {.in = in, .len = HEADER_BYTES};
    walk(&c, ret);
}

/* SPDX-License-Identifier: MIT */
/* One description of a message serves to write it and to read it.
 *
 * A *walk* visits the fields of a message in wire order. The same walk encodes (fields are read and
 * appended) or decodes (bytes are consumed and fields filled), so the two can never disagree. All
 * integers are little-endian. Decoding is total: whatever the bytes, it ends, touches nothing
 * outside them, and says whether they were exactly one well-formed message; then and only then are
 * the fields to be trusted. Decoded views borrow from the input. */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"
#include "base/nodeset.h"
#include "base/usage.h"

struct codec {
    bool encoding;
    bool failed; /* decoding: malformed; encoding: no room */
    uint8_t *out;
    const uint8_t *in;
    size_t len; /* of the room or of the input */
    size_t at;
};

void codec_u8(struct codec *c, uint8_t *v);
void codec_u16(struct codec *c, uint16_t *v);
void codec_u32(struct codec *c, uint32_t *v);
void codec_u64(struct codec *c, uint64_t *v);
/* In as many bytes as it needs, seven bits each, the lowest first. */
void codec_number(struct codec *c, uint64_t *v);
/* A byte whose value must be below `end`. */
void codec_enum(struct codec *c, uint8_t *v, uint8_t end);
void codec_bool(struct codec *c, bool *v);
/* Bytes with a 32-bit length before them, a multiple of `unit`. */
void codec_bytes(struct codec *c, struct bytes *v, uint32_t unit);
/* Whatever is left of the message. */
void codec_rest(struct codec *c, struct bytes *v);
/* A node set; the decoder needs it initialised with universe and storage. */
void codec_set(struct codec *c, struct nodeset *set);
void codec_usage(struct codec *c, struct usage *u);

enum { USAGE_BYTES = 56 };

/* SPDX-License-Identifier: MIT */
/* The fixed header before every frame.
 *
 * 32 bytes, little-endian. The world writes and checks it; of its fields only type and epoch reach
 * logic. Sequence numbers count the frames of one link and lane from 1, so a duplicate or a gap is
 * seen at once; node and life say which daemon speaks and in which of its lives.
 *
 * The version is that of the protocol: it goes up by one when any message changes, or what is meant by it. Daemons and
 * commands of one version understand each other; others say so and part (os/links.h). For that the 32 bytes stay as they are in
 * every version.
 *
 *   0  u16 magic    2  u8 version   3 u8 lane    4 u16 type    6 u16 zero
 *   8  u32 length of the body      12 u32 sequence
 *  16  u32 epoch                   20 u32 node   24 u32 life   28 u32 zero */
#pragma once

#include <stdint.h>

#include "base/bytes.h"

enum { HEADER_BYTES = 32, HEADER_MAGIC = 0x5753, HEADER_VERSION = 2 };

struct header {
    uint16_t magic;
    uint8_t version;
    uint8_t lane;
    uint16_t type;
    uint16_t zero16;
    uint32_t length;
    uint32_t sequence;
    uint32_t epoch;
    uint32_t node;
    uint32_t life;
    uint32_t zero32;
};

void header_encode(const struct header *h, uint8_t out[HEADER_BYTES]);
void header_decode(struct header *ret, const uint8_t in[HEADER_BYTES]);

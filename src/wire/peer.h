/* SPDX-License-Identifier: MIT */
/* What processes of one program say to each other, on connections of their own (docs/decisions/0056-messages.md).
 *
 * Whoever has connected says HELLO first: who it is, whom it wants, and the token of that one, which only its family
 * knows. It is answered by WELCOME, or the connection is closed. With HELLO may come memory for two rings (client/rings.h); if
 * WELCOME has tag 1 all that follows is there, and bytes on the connection only wake. Then both send DATA. Every frame tells how many
 * DATA its sender has received on this connection; ACK says nothing else. */
#pragma once

#include "base/bytes.h"

enum peer_kind { PEER_HELLO = 1, PEER_WELCOME, PEER_DATA, PEER_ACK };

enum {
    PEER_HEAD_BYTES = 16,
    PEER_HELLO_BYTES = 36, /* of the body */
    PEER_VERSION = 1,
    PEER_DATA_MAX = 16 << 20
};

struct peer_head {
    uint32_t kind; /* enum peer_kind */
    uint32_t len;  /* of the body that follows */
    uint32_t tag;  /* DATA; WELCOME: 1, by the rings */
    uint32_t received;
};

struct peer_hello {
    uint32_t rings; /* bytes of each ring of the memory that comes with it; 0: none does */
    uint64_t from, to;
    uint64_t token[2];
};

void peer_head_write(const struct peer_head *h, uint8_t out[PEER_HEAD_BYTES]);
/* False: nobody of us has written that. */
bool peer_head_read(struct peer_head *ret, const uint8_t in[PEER_HEAD_BYTES]);

void peer_hello_write(const struct peer_hello *h, uint8_t out[PEER_HELLO_BYTES]);
bool peer_hello_read(struct peer_hello *ret, struct bytes body);

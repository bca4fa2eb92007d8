/* SPDX-License-Identifier: MIT */
/* What processes of one program say to each other: see peer.h. */
#include "wire/peer.h"

void peer_head_write(const struct peer_head *h, uint8_t out[PEER_HEAD_BYTES]) {
    store_le32(out, h->kind | PEER_VERSION << 8);
    store_le32(out + 4, h->len);
    store_le32(out + 8, h->tag);
    store_le32(out + 12, h->received);
}

static bool fits(uint32_t kind, uint32_t len) {
    switch (kind) {
    case PEER_HELLO:
        return len == PEER_HELLO_BYTES;
    case PEER_DATA:
        return len <= PEER_DATA_MAX;
    case PEER_WELCOME:
    case PEER_ACK:
        return len == 0;
    default:
        return false;
    }
}

bool peer_head_read(struct peer_head *ret, const uint8_t in[PEER_HEAD_BYTES]) {
    uint32_t word = load_le32(in);
    *ret = (struct peer_head){.kind = word & 0xff,
                              .len = load_le32(in + 4),
                              .tag = load_le32(in + 8),
                              .received = load_le32(in + 12)};
    return word >> 8 == PEER_VERSION && fits(ret->kind, ret->len) &&
           (ret->kind == PEER_DATA || ret->tag <= (ret->kind == PEER_WELCOME));
}

void peer_hello_write(const struct peer_hello *h, uint8_t out[PEER_HELLO_BYTES]) {
    store_le32(out, h->rings);
    store_le64(out + 4, h->from);
    store_le64(out + 12, h->to);
    store_le64(out + 20, h->token[0]);
    store_le64(out + 28, h->token[1]);
}

bool peer_hello_read(struct peer_hello *ret, struct bytes body) {
    if (body.len != PEER_HELLO_BYTES)
        return false;
    *ret = (struct peer_hello){.rings = load_le32(body.at),
                               .from = load_le64(body.at + 4),
                               .to = load_le64(body.at + 12),
                               .token = {load_le64(body.at + 20), load_le64(body.at + 28)}};
    return ret->from != 0 && ret->to != 0;
}

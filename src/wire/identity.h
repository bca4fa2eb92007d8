/* SPDX-License-Identifier: MIT */
/* Who is at the two ends of a sealed connection: what its opener says in the clear, before anything is
 * secret, so that the other end knows by which key it may be believed.
 *
 * 40 bytes, always. Nothing in them is believed until the session is there: only who holds the key of
 * exactly this identity gets that far. */
#pragma once

#include "base/bytes.h"

enum { CLUSTER_ID_BYTES = 16, IDENTITY_BYTES = 40, IDENTITY_TEXT_MAX = 96 };

enum identity_kind {
    IDENTITY_NODE, /* a node and the manager; `serial` is the generation of the node's key */
    IDENTITY_EDGE, /* two nodes, or a node and a client; `serial` is the epoch that the key was made for */
    IDENTITY_CLIENT, /* a client and the manager; `serial` is the client's number */
    IDENTITY_KINDS
};

struct identity {
    enum identity_kind kind;
    uint8_t cluster[CLUSTER_ID_BYTES];
    uint64_t serial;
    uint32_t from,
        to; /* who connects to whom; NO_NODE: the client, in what it has with the manager */
};

/* As what a client meets nodes: numbers that no node has. */
enum { CLIENT_PARTY = 1 << 30, CLIENT_PARTIES = 1 << 30 };
static inline uint32_t client_party(uint64_t client) {
    return CLIENT_PARTY + (uint32_t)(client % CLIENT_PARTIES);
}
static inline bool is_client_party(uint32_t party) {
    return party >= CLIENT_PARTY && party - CLIENT_PARTY < CLIENT_PARTIES;
}

void identity_encode(const struct identity *id, uint8_t out[IDENTITY_BYTES]);

/* -EBADMSG if the bytes are no identity, or one that nobody can have. */
int identity_decode(struct bytes in, struct identity *ret);

bool identity_equal(const struct identity *a, const struct identity *b);

/* For people: "node 7 to node 3 in epoch 12". */
void identity_format(const struct identity *id, char out[IDENTITY_TEXT_MAX]);

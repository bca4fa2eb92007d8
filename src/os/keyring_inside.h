/* SPDX-License-Identifier: MIT */
/* What the files of the keyring share. */
#pragma once

#include "os/keyring.h"

/* Of another node, for links that we open to it in this epoch. */
struct known_key {
    uint32_t peer;
    uint8_t key[KEY_BYTES];
};

struct expected {
    uint32_t node;
    uint64_t generation;
};

struct keyring {
    struct keyfile file;
    uint32_t self, seat_first, seats;
    uint32_t epoch; /* of a node's letters */
    uint8_t door[KEY_BYTES];
    struct known_key *known; /* by peer */
    uint32_t known_count, known_cap;
    uint64_t generation;       /* of nodes' keys; 0: the first */
    struct expected *expected; /* nodes whose generation is another */
    uint32_t expected_count;
    uint64_t clients_from;
};

/* HKDF-SHA256 of a key, for a use, bound to cluster, number and serial. -EIO: the library does not work. */
int derive(const uint8_t key[KEY_BYTES], const char *use, const uint8_t cluster[CLUSTER_ID_BYTES],
           uint32_t number, uint64_t serial, uint8_t out[KEY_BYTES]);

int keyring_node_key(const struct keyring *k, uint32_t node, uint64_t generation,
                     uint8_t out[KEY_BYTES]);
int keyring_door(const struct keyring *k, uint32_t party, uint32_t epoch, uint8_t out[KEY_BYTES]);
/* The key that a node or a client has now, and its generation. */
int keyring_party_key(const struct keyring *k, uint32_t party, uint64_t *ret_generation,
                      uint8_t out[KEY_BYTES]);
int pair_key(const uint8_t secret[KEY_BYTES], const uint8_t cluster[CLUSTER_ID_BYTES],
             uint32_t other, uint8_t out[KEY_BYTES]);
int keyring_client_key(const struct keyring *k, uint64_t number, uint8_t out[KEY_BYTES]);
uint64_t keyring_expected(const struct keyring *k, uint32_t node);
int keyring_learn(struct keyring *k, uint32_t peer, const uint8_t key[KEY_BYTES]);
void keyring_forget_letters(struct keyring *k);

/* SPDX-License-Identifier: MIT */
/* The text of a file that holds a key:
 *
 *     storm-key 1
 *     node                                   master, node or client
 *     cluster 0123456789abcdef0123456789abcdef
 *     number 7                               the node's, the client's; 0: the master
 *     generation 1                           of a node's key; others: 0
 *     key 0123...                            64 digits
 *
 * without the remarks. There is one way to write a key, and nothing else is read. */
#pragma once

#include "wire/identity.h"

enum { KEY_BYTES = 32, KEYFILE_TEXT_MAX = 256 };

enum key_kind { KEY_MASTER, KEY_NODE, KEY_CLIENT, KEY_KINDS };

struct keyfile {
    enum key_kind kind;
    uint8_t cluster[CLUSTER_ID_BYTES];
    uint64_t number;
    uint64_t generation;
    uint8_t key[KEY_BYTES];
};

/* How long the text is, without the NUL behind it. */
size_t keyfile_write(const struct keyfile *f, char out[KEYFILE_TEXT_MAX]);

/* -EBADMSG if the text is no key, -EPROTONOSUPPORT if it is one of another version. */
int keyfile_parse(struct bytes text, struct keyfile *ret);

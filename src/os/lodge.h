/* SPDX-License-Identifier: MIT */
/* The manager's lodge: where everybody of a cluster on many machines comes by.
 *
 * Guests (os/guide.h) are nodes' managers, their movers, and commands. A node's manager says where it listens, and stays: when it
 * goes, nobody is sent to it any more. Each gets a letter (os/keyring.h) with the keys of this epoch that are its own, and
 * for each that it asks for where that one is and the key to it. So nobody has a list of all, and nobody has keys that he
 * does not need.
 *
 * It belongs to the world: the manager's machine knows nothing of it. */
#pragma once

#include "os/keyring.h"
#include "os/links.h"

struct lodge;

struct lodge_config {
    const struct keyring *keys; /* the master's; NULL: links are open. Borrowed */
    uint32_t nodes;             /* in the cluster */
    uint32_t epoch;
    uint64_t near_client; /* whose letters a command gets that comes by a Unix socket */
};

/* NULL: no memory. */
struct lodge *lodge_new(const struct lodge_config *c);
void lodge_free(struct lodge *l);

/* Something of a LODGE link. */
void lodge_heard(struct lodge *l, struct links *links, const struct input *in);

/* Where a node's manager listens, as it said. False: it is not here. */
bool lodge_find(const struct lodge *l, uint32_t node, struct address *ret);

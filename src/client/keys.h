/* SPDX-License-Identifier: MIT */
/* Keys in a cluster's folder: `master.key` where the manager is, `client.key` wherever commands are given.
 *
 * Whoever brings the cluster up makes them; they stay for its next time. Where numbers of nodes go from one machine to another
 * (`generations`), the key that went with the number is void. */
#pragma once

#include "client/cluster.h"
#include "wire/keyfile.h"

struct guide;

/* The client whose key a command at the manager's machine has; others get higher numbers. */
enum { KEYS_DESK = 1 };

/* Makes those that are not there. 0, or -errno with the reason. */
int keys_make(const char *folder, uint32_t nodes, char why[256]);

/* The numbers of nodes are given out anew: keys that machines had for them are void from now on. Of all; of one. The
 * manager must hear of it: keys_expect. */
int keys_renew(const char *folder);
int keys_raise(const char *folder, uint32_t node);

/* Tells the manager's keyring which keys of nodes are good. */
struct keyring;
int keys_expect(const char *folder, struct keyring *k);

/* The key of a node, as it is good now. 0, or -errno with the reason. */
int keys_issue_node(const char *folder, uint32_t nodes, uint32_t node, struct keyfile *ret,
                    char why[256]);

/* A key for one more client. 0, or -errno with the reason. */
int keys_issue_client(const char *folder, uint32_t nodes, uint64_t number, struct keyfile *ret,
                      char why[256]);

/* How a command finds its way about the cluster; `files`: to movers, as one that nodes come to. 0 or -errno; what is wrong with a
 * key is told on stderr. */
int keys_guide(const struct cluster *c, bool files, struct guide **ret);

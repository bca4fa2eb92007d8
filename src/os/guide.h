/* SPDX-License-Identifier: MIT */
/* How a process finds its way about a cluster of many machines: where others are, and by which keys they are met.
 *
 * It knows the manager's seat and has a key to it. There it comes to the lodge (os/lodge.h), says where it listens itself, and
 * gets a letter; later it asks for whom it wants to open a link to. What it was told it remembers until that turns
 * out to be wrong, or the manager's next epoch begins. When the lodge is gone it comes again, until it is back.
 *
 * It has no links of its own: those of its process pass on what is about LODGE links. */
#pragma once

#include "os/address.h"
#include "os/links.h"
#include "os/loop.h"
#include "os/sealer.h"
#include "wire/keyfile.h"

struct guide;

struct guide_config {
    const struct keyfile *key; /* NULL: links are open. Copied */
    uint32_t self;             /* NO_NODE: a command */
    uint32_t nodes;            /* in the cluster; the manager's seat is the next */
    bool listens;              /* others come to us: the lodge is to know before anybody asks */
    bool files;                /* links lead to movers, not to nodes' managers */
    uint16_t port, files_port; /* of this node, 0: this process tells of none */
    char
        host[INET6_ADDRSTRLEN]; /* IP address that we are found at; "": that which the lodge sees */
};

/* 0 or -errno (-EINVAL: it is no key for this node). */
int guide_new(const struct guide_config *c, struct guide **ret);
/* After its links. */
void guide_free(struct guide *g);

/* Which client this is, 0: none. */
uint64_t guide_client(const struct guide *g);

/* What the library for keys needs at first is made now, not with the first link. False: it does not work. */
bool guide_ready(const struct guide *g);

/* Into the configuration of its links: how they are sealed, and that they ask. The rest of it is there. */
void guide_lead(struct guide *g, struct links_config *links);
/* The links are there. */
void guide_begin(struct guide *g, struct loop *loop, struct links *links);
/* Something of a LODGE link. */
void guide_heard(struct guide *g, const struct input *in);
/* Before every links_settle. */
void guide_settle(struct guide *g);

/* SPDX-License-Identifier: MIT */
/* Strobes past the tree: the machine manager sends a datagram to every launcher of this machine, or one by UDP multicast to all
 * of a cluster whose links are TCP.
 *
 * It saves two processes on the way (the node's manager, and those above it in the tree), each of which would take a processor from
 * a gang. A datagram may be lost, and nobody is told: the newest strobe wins, and the tree carries one now and then
 * (prim/strobe.c). On one machine who may send is a matter of the folder that the sockets are in: nobody else gets into it.
 * On a network each carries a tag that only those can make who have the cluster's key, and an old one that is sent again
 * says nothing: numbers ascend. The group follows from the key. */
#pragma once

#include <netinet/in.h>
#include <sys/un.h>

#include "machine/machine.h"
#include "os/loop.h"

enum { CAST_BYTES_MAX = 512 };

/* ---- who sends ---- */

struct caster {
    int fd; /* -1: there is none */
    uint32_t nodes;
    struct sockaddr_un *to; /* of each node; NULL: all at once */
    struct sockaddr_in group;
    uint64_t key[2];
};

/* 0 or -errno. */
int caster_init(struct caster *c, uint32_t nodes);

/* By multicast, from this address on. */
int caster_init_group(struct caster *c, const uint64_t key[2], struct in_addr from);
void caster_fini(struct caster *c);
void caster_send(struct caster *c, const struct effect_cast *e);

/* ---- who listens ---- */

struct ear {
    struct source source; /* fd -1: there is none */
    struct loop *loop;
    bool tagged;
    uint64_t key[2];
    void (*heard)(void *context, const struct input *in);
    void *context;
};

/* Before an address of ours instead of a path: by multicast there. */
#define EAR_MULTICAST "multicast:"

/* Listens at a path; whoever did before is gone. 0 or -errno. */
int ear_init(struct ear *e, struct loop *loop, const char *path, const uint64_t key[2],
             void (*heard)(void *context, const struct input *in), void *context);
void ear_fini(struct ear *e);

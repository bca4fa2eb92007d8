/* SPDX-License-Identifier: MIT */
/* How one hop of a tree of remote shells reaches its share of the hosts.
 *
 * A hop is who starts the command here, or a helper that was started on a host. It has hosts to reach: it connects to some
 * and gives the rest to those that are ready. Which, is the shape:
 *
 *     flat      connects to all itself
 *     chain     connects to the first, which has all others
 *     k-ary     cuts what it has in k, connects to the first of each part, which has the rest of it
 *     binomial  connects to one that has half of all, then to one that has half of the others ..., one at a time
 *     adaptive  connects to several at once; who is ready has its share of those that nobody has yet
 *
 * Nothing hangs on one host. A host that cannot be reached leaves the rest of its part to the next in it. If a helper is lost,
 * those that it was to reach and has not are reached by others; those behind it whose command had begun are lost, as their
 * commands ended with the way to them. What a helper cannot reach it gives back, and the root tries once itself: it may
 * be the only one that has a key.
 *
 * The books are here; descriptors, processes and names are the world's. It asks hop_next() what to do until there is
 * nothing. Hosts have numbers, the same everywhere. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/list.h"

enum hop_shape { HOP_ADAPTIVE, HOP_BINOMIAL, HOP_KARY, HOP_CHAIN, HOP_FLAT, HOP_SHAPES };

/* Why a host was not reached, or was lost. */
enum hop_why {
    HOP_REFUSED, /* the remote shell failed, at once or later: it may work from elsewhere */
    HOP_LATE,    /* it did not answer in time */
    HOP_UNFIT,   /* the helper cannot run there: another processor, no room */
    HOP_LOST,    /* it was reached, then the way to it broke */
    HOP_WHYS
};

enum hop_standing {
    HOP_ELSEWHERE, /* not ours */
    HOP_POOLED,    /* nobody has it yet */
    HOP_TAILED,    /* to be given to a child when that is ready */
    HOP_TRIED,     /* a child that is being connected to */
    HOP_GIVEN,     /* a child is to reach it */
    HOP_REACHED,   /* it, or somebody behind a child, is at work there */
    HOP_OVER
};

struct hop_host {
    struct list at; /* in the pool, a child's tail, or those to be told as lost */
    uint32_t child; /* from HOP_TAILED on */
    uint16_t crate; /* its switch; hosts behind one stay together */
    uint8_t standing;
    bool own; /* given back to us: to be tried from here, given to nobody */
};

enum hop_link { HOP_FREE, HOP_WANTED, HOP_CONNECTING, HOP_READY };

struct hop_child {
    struct list tail; /* hosts that it gets when it is ready */
    uint64_t since;   /* connecting */
    uint64_t heard;
    uint32_t host;
    uint32_t given, reached; /* hosts behind it that are so, itself not counted */
    uint8_t link;
    bool idle; /* it could reach more */
    bool released, dropped;
};

struct hop_config {
    uint32_t hosts;    /* numbers are below that */
    uint32_t children; /* at once, at most */
    uint32_t fanout;   /* k-ary: k. adaptive: children that it may have, 0: any number */
    uint32_t at_once;  /* connections that are being made; late ones do not count */
    enum hop_shape shape;
    uint64_t connect_ns; /* given up after that */
    uint64_t late_ns;    /* who has not answered by then holds nobody up */
    uint64_t silent_ns;  /* a child of which nothing is heard for so long is lost; 0: never */
    bool root;
};

struct hop {
    struct hop_config config;
    struct hop_host *hosts;
    struct hop_child *children;
    uint32_t used;       /* children from here on were never used */
    struct list pool;    /* oldest first */
    struct list lost;    /* to be told */
    uint32_t pooled;     /* hosts in the pool that may be given away */
    uint32_t connecting; /* children */
    uint32_t missing;    /* hosts of ours that are not over */
    uint32_t at_work;    /* those of them that were reached */
    bool closed;         /* nothing more is begun */
};

/* What the world is to do next. */
enum hop_deed_kind {
    HOP_NOTHING,
    HOP_CONNECT,
    HOP_GIVE,
    HOP_RELEASE, /* the child gets no more hosts: it may leave when all is over there */
    HOP_DROP,
    HOP_TELL_LOST
};
struct hop_deed {
    enum hop_deed_kind kind;
    uint32_t child;
    uint32_t host;    /* to connect to, to give, lost */
    enum hop_why why; /* dropped: late or lost */
};

size_t hop_bytes(const struct hop_config *c);
/* `mem`: so many bytes, zeros. */
void hop_init(struct hop *h, const struct hop_config *c, void *mem);

/* Hosts to reach: any number of these, then hop_share(). False: it is no number of a host, or known already. */
bool hop_take(struct hop *h, uint32_t host, uint16_t crate);
void hop_share(struct hop *h);

/* Until HOP_NOTHING, after anything has happened. */
struct hop_deed hop_next(struct hop *h, uint64_t now);
/* When it must be asked again at the latest, though nothing has happened; 0: no need. */
uint64_t hop_deadline(const struct hop *h, uint64_t now);

/* A child's helper is there. */
void hop_greeted(struct hop *h, uint32_t child, uint64_t now);
/* Something came from a child, whatever it was. */
void hop_heard(struct hop *h, uint32_t child, uint64_t now);
/* A child says of a host behind it. False: that cannot be, it is not the child's. */
bool hop_reached(struct hop *h, uint32_t child, uint32_t host);
bool hop_over(struct hop *h, uint32_t child, uint32_t host);
void hop_idle(struct hop *h, uint32_t child);

/* The connection to a child has ended. Was its host not reached before: true if that is to be told, as nobody else will try.
 * It is never told twice: a host that was reached and is not over comes as HOP_TELL_LOST. */
bool hop_gone(struct hop *h, uint32_t child);
/* A child could not reach a host behind it. *ret_tell: as above; otherwise we try. False: it is not the child's. */
bool hop_returned(struct hop *h, uint32_t child, uint32_t host, enum hop_why why, bool *ret_tell);

/* We were away for so long, and have heard nobody: that is not theirs. */
void hop_excuse(struct hop *h, uint64_t ns);

/* Nothing more is begun, who is being connected to is dropped. */
void hop_close(struct hop *h);

/* Nobody of ours is still to be reached. */
bool hop_complete(const struct hop *h);
/* All hosts of ours are over, or never begin. */
bool hop_done(const struct hop *h);
/* We could reach more than we have. */
bool hop_wants(const struct hop *h, uint64_t now);

/* SPDX-License-Identifier: MIT */
/* One socket that carries frames both ways: bytes in, bytes out, and how it ends.
 *
 * What has come in is handed on frame by frame, out of a buffer that all connections of a node
 * share; only the beginning of a frame whose rest is still on its way gets memory of its own. What
 * goes out gathers until the end of the turn and leaves with one system call. A connection that we
 * close lingers until the peer has closed it too: closing at once would throw away what it has not
 * read yet. On a socket that keeps packets apart their boundaries mean nothing: it carries the same
 * bytes, cut somewhere. */
#pragma once

#include <stdbool.h>

#include "base/list.h"
#include "machine/machine.h"
#include "os/loop.h"
#include "wire/gate.h"

struct conn;

/* What all connections of a node share. */
struct conns {
    struct loop *loop;
    struct list flush;  /* have something to send */
    struct list linger; /* closed by us, not by the peer */
    struct list dead;   /* to be freed at the end of the turn */
    uint8_t *scratch;   /* what is being read */
    uint64_t bytes_in, bytes_out;
    uint64_t backlog_max; /* most bytes that waited on one connection */
    /* Set to the usual at the beginning. */
    uint64_t backlog_bytes_max; /* of a new connection: if more bytes wait for it, it is given up */
    uint64_t linger_ns; /* how long one that we have closed waits for a peer that does nothing */
    /* A header: may its body come? A refusal ends the connection, a duplicate is passed over. */
    enum refusal (*judge)(struct conn *c, const struct header *h);
    /* A whole frame; the body is borrowed. */
    void (*frame)(struct conn *c, const struct header *h, struct bytes body);
    /* It is connected: ours only. */
    void (*connected)(struct conn *c);
    /* It has ended, without our doing; `why` if it was refused. The owner closes it. */
    void (*ended)(struct conn *c, enum refusal why);
};

struct conn {
    struct source source;
    struct conns *all;
    struct list at;    /* linger or dead */
    struct list flush; /* in all->flush */
    bool connecting;
    bool open;           /* false once it is closed or has ended */
    bool broken;         /* it has ended, and not because the peer closed it */
    bool judged;         /* `header` is the frame's whose body comes next */
    bool skipped;        /* and its body is to be passed over */
    bool waiting;        /* for the socket to take more */
    bool packets;        /* the socket keeps them apart */
    size_t packet_bytes; /* the largest that it takes, as far as we know */
    struct header header;
    uint8_t *in; /* the beginning of a frame, NULL if there is none */
    size_t in_len, in_cap;
    uint8_t *out;
    size_t out_at, out_len, out_cap;
    uint64_t backlog_bytes_max;
    uint64_t since; /* lingering, or opened */
    /* For the owner. */
    void *owner;
    enum lane lane;
    struct list place;
};

/* For a daemon, once: buffers that come and go with every piece of output stay with the process, as
 * otherwise each of them would cost a fault for every page. It is the whole process's affair. */
void conns_keep_memory(void);

int conns_init(struct conns *all, struct loop *loop);
void conns_fini(struct conns *all);

/* Sends what has gathered; frees what has ended. At the end of every turn. */
void conns_settle(struct conns *all);

/* Takes over a socket, connected or (`connecting`) about to be; NULL if there is no memory. */
struct conn *conn_new(struct conns *all, int fd, bool connecting);

/* Appends a frame of these parts to what goes out. */
void conn_send(struct conn *c, const struct header *h, struct bytes head, struct bytes tail);

/* What was sent before still goes out. The connection must not be used any more. */
void conn_close(struct conn *c);
/* Nothing more goes out. */
void conn_abort(struct conn *c);

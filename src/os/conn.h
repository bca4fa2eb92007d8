/* SPDX-License-Identifier: MIT */
/* One socket that carries frames both ways: bytes in, bytes out, and how it ends.
 *
 * What has come in is handed on frame by frame, out of a buffer that all connections of a node
 * share; only the beginning of a frame whose rest is still on its way gets memory of its own. What
 * goes out gathers until the end of the turn and leaves with one system call. A connection that we
 * close lingers until the peer has closed it too: closing at once would throw away what it has not
 * read yet. On a socket that keeps packets apart their boundaries mean nothing: it carries the same
 * bytes, cut somewhere.
 *
 * A connection to another machine is sealed (sealer.h): nothing is handed on before both ends have proved who they are, and the
 * end of the socket is taken for the end of what was said only if the peer has said so. */
#pragma once

#include <stdbool.h>

#include "base/list.h"
#include "machine/machine.h"
#include "os/loop.h"
#include "os/sealer.h"
#include "wire/gate.h"

struct conn;

/* Bytes that are sent from where they lie, in between what has gathered. If they lie in a file as well, from its
 * pages, without a copy. */
struct loan {
    struct bytes bytes;
    int fd; /* ours; -1: there is no file */
    uint64_t offset;
    uint64_t at; /* so much of what gathers goes before them */
    size_t done;
    uint64_t tag; /* the owner's */
};

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
    /* It is connected, and sealed if it is to be: ours only. */
    void (*connected)(struct conn *c);
    /* It has ended, without our doing; `why` if it was refused. The owner closes it. */
    void (*ended)(struct conn *c, enum refusal why);
    /* For connections that carry bulk, may be NULL. A frame whose body begins with `head` (CONN_HEAD bytes)
     * comes: where is the rest to go? NULL: it is handed on as any other. If it has a place `placed`
     * tells when it is there; the place must stay until then, or until the connection is closed. */
    uint8_t *(*place)(struct conn *c, const struct header *h, const uint8_t *head, size_t len);
    void (*placed)(struct conn *c, const struct header *h, const uint8_t *head, size_t len);
    /* May be NULL. `done` of the `len` bytes that follow `head` are at their place, more are in the socket: whoever keeps the place
     * may take them from there himself, to where he likes. How many he took; 0: it has ended; -errno; -EOPNOTSUPP: they are
     * to be read to their place. Not of connections that are sealed. */
    ssize_t (*draw)(struct conn *c, const uint8_t *head, size_t len, size_t done);
    /* Bytes that were lent have left, or never will. */
    void (*returned)(struct conn *c, const struct loan *loan);
};

/* How much of a frame's body says where the rest is to go. */
enum { CONN_HEAD = 20 };

struct conn {
    struct source source;
    struct conns *all;
    struct list at;      /* linger or dead */
    struct list flush;   /* in all->flush */
    bool connecting;     /* or the handshake of its seal is under way */
    bool shaking;        /* it is connected, and that is all it waits for */
    bool ours;           /* we have connected */
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
    uint64_t out_gone; /* bytes of what gathered that have left */
    struct loan *loans;
    uint32_t loan_at, loan_count, loan_cap;
    bool bulky; /* carries bulk: large frames are read to their place */
    bool
        draws; /* or go elsewhere: it is worth while to read no more of them than their beginning */
    uint8_t *put_at; /* of the frame whose rest comes next, NULL: none */
    size_t put_left; /* bytes of it that are missing */
    uint8_t put_head[CONN_HEAD];
    uint64_t backlog_bytes_max;
    uint64_t since; /* lingering, or opened */
    const struct sealer *sealer;
    struct seal *seal; /* NULL: the bytes are carried as they are */
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

/* The same with a seal, which is taken over too; `ours`: we have connected, or are about to. */
struct conn *conn_new_sealed(struct conns *all, int fd, bool ours, const struct sealer *sealer,
                             struct seal *seal);

/* Appends a frame of these parts to what goes out. */
void conn_send(struct conn *c, const struct header *h, struct bytes head, struct bytes tail);

/* The same; `lent` follows the head and is not copied: it must stay as it is until it is returned. The same bytes
 * may be found in a file, at `offset`, which is taken over; -1: in none. If they are nowhere else (`at` is NULL) and cannot be sent
 * from there the connection ends, as it does with a seal. */
void conn_lend(struct conn *c, const struct header *h, struct bytes head, struct bytes lent,
               uint64_t tag, int fd, uint64_t offset);

/* What has gathered goes out now, as far as the socket takes it: for last words to whom conn_abort follows. */
void conn_flush(struct conn *c);

/* What was sent before still goes out. The connection must not be used any more. */
void conn_close(struct conn *c);
/* Nothing more goes out. */
void conn_abort(struct conn *c);

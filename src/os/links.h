/* SPDX-License-Identifier: MIT */
/* The links of one node: who is at the other end, and what may pass.
 *
 * A link has a connection for each lane that its messages use, so bulk data in a socket never
 * stands before control. The opener says on each of them who it is and which link it belongs to
 * (HELLO); the other side answers alike. The link is up when all its lanes are, and goes down as
 * one, after all that came on either before the peer closed it. Until it has said HELLO a
 * connection may say nothing else, not for long, and not many may be in that state.
 *
 * Who may open a link to whom follows from its purpose: TREE and SLOT links are between nodes of the
 * book, LAUNCHER and MOVER links are between two processes of the same node, a CLIENT link comes from a
 * process that is no node and whom the system says to be the cluster's user or root; a FILES link
 * is between movers: of nodes, or of such a process.
 *
 * A LODGE link leads from a node, a mover or a command to the manager (os/lodge.h). Commands on the manager's machine come to it
 * by a Unix socket, for CLIENT and LODGE links only, and there too the system must say that they are the cluster's user or root.
 *
 * Who speaks another version of the protocol is refused, and hears which one is spoken here: a HELLO without a body. What a header is
 * like is the same in all versions, and in that of HELLO the epoch is the number of the sender's release.
 *
 * Links to other machines are sealed if there is a sealer: then who a peer says it is must be whom its key is for. Where
 * nodes are found by asking, a link waits until it is known where its peer is, and by which key. */
#pragma once

#include "machine/machine.h"
#include "os/address.h"
#include "os/conn.h"

struct links;
struct message_put;

/* What a node lets others see of itself. */
struct link_counts {
    uint64_t messages; /* delivered, puts included */
    uint64_t opened, accepted;
    uint64_t refused[REFUSALS];
    uint64_t
        strangers_dropped; /* connections that did not say HELLO in time, or were too many; links
                                   of others whose lanes did not all do so */
};

struct links_config {
    struct loop *loop;
    uint32_t self; /* NO_NODE: a client */
    uint32_t life; /* how often this node has started; a client or a launcher draws it */
    uint64_t key[2];
    const struct address *book; /* by node, from `first` on */
    uint32_t first;
    uint32_t nodes;                 /* in the book */
    const struct address *launcher; /* where LAUNCHER links lead to. NULL: nowhere */
    const struct address *mover;    /* and MOVER links */
    const struct address *near; /* where CLIENT and LODGE links lead to if somebody is there, before
                                       the book. NULL: nowhere */
    uint32_t accepts;           /* bit mask of purposes that others may open links for */
    int listener;               /* taken over. -1: nobody comes */
    int near_listener;          /* the same, of this machine's own: never sealed. 0 or -1: none */
    bool closed;                /* nobody is let in before links_listen */
    uint32_t frame_bytes_max;
    uint64_t hello_ns;         /* for a peer to say HELLO, or to answer it; 0: the usual 5 s */
    uint64_t client_bytes_max; /* that may wait for a client on a lane; 0: the usual 64 MiB */
    /* Seals connections that may leave the machine; Unix sockets never are. NULL: none is. Borrowed. */
    const struct sealer *sealer;
    /* Where a node is found that a link is to be opened to (or only by which key, if its address was given): true and it is
     * known; false: links_know() will tell. NULL: the book tells. And: no link to it could be opened. */
    bool (*seek)(void *guide, uint32_t peer, struct address *ret);
    void (*missed)(void *guide, uint32_t peer);
    void *guide; /* of these two */
    struct link_counts *counts;
    /* Who was refused because of keys, names or versions, and why: for the log. May be NULL. Feed nothing. */
    void (*warn)(void *context, const char *text);
    /* A peer speaks another version of the protocol: which, and of which release it is (os/release.h). It is refused. May be
     * NULL. Feed nothing. */
    void (*other)(void *context, uint32_t protocol, uint32_t release);
    /* Feeds an input of a link of that purpose to the node's machines; effects are carried out
     * before it returns. */
    void (*feed)(void *context, enum purpose purpose, const struct input *in);
    /* A put has come in; judged by whoever keeps the buffers. */
    enum refusal (*put)(void *context, uint32_t link, const struct message_put *put);
    /* For FILES links; may be NULL. Where the bytes of a put that is on its way are to go (its body has
     * only its length), NULL: nowhere. When they are there `put` is told, with a body that lies there. */
    uint8_t *(*place)(void *context, uint32_t link, const struct message_put *put);
    /* May be NULL. `done` bytes of it are at that place, and more in this socket: as in struct conns. */
    ssize_t (*draw)(void *context, uint32_t link, int socket, const struct message_put *put,
                    size_t done);
    /* The bytes of a put were sent, or never will be. Called from within other calls: feed nothing. */
    void (*sent)(void *context, uint64_t tag);
    void *context;
};

struct links *links_new(const struct links_config *config);
void links_free(struct links *l);

void links_open(struct links *l, const struct effect_open *open);
void links_send(struct links *l, const struct effect_send *send);
void links_put(struct links *l, const struct effect_put *put, struct bytes bytes);
/* The same from where the bytes lie; `sent` tells with this tag when they are not needed any more. */
void links_lend(struct links *l, const struct effect_put *put, struct bytes bytes, uint64_t tag,
                int fd, uint64_t offset);
void links_close(struct links *l, uint32_t link, enum refusal why);

/* Where a peer is that was sought; NULL: nowhere. */
void links_know(struct links *l, uint32_t peer, const struct address *at);
/* From now on others are let in. */
void links_listen(struct links *l);

/* By whose key a link is sealed, NULL: it is not. Where its peer is. */
const struct identity *links_who(const struct links *l, uint32_t link);
bool links_peer_address(const struct links *l, uint32_t link, struct address *ret);

/* Closes those that others have opened by a key which is not good any more. */
void links_review(struct links *l, bool (*good)(void *context, const struct identity *id),
                  void *context);

/* Tells of links that could not be opened, sends what has gathered. At the end of every turn. */
void links_settle(struct links *l);

uint32_t links_count(const struct links *l); /* that are up */
uint64_t links_bytes_in(const struct links *l);
uint64_t links_bytes_out(const struct links *l);

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
 * Links to other machines are sealed if there is a sealer: then who a peer says it is must be whom its key is for. */
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
    uint32_t accepts;               /* bit mask of purposes that others may open links for */
    int listener;                   /* taken over. -1: nobody comes */
    uint32_t frame_bytes_max;
    uint64_t hello_ns;         /* for a peer to say HELLO, or to answer it; 0: the usual 5 s */
    uint64_t client_bytes_max; /* that may wait for a client on a lane; 0: the usual 64 MiB */
    /* Seals connections that leave the machine; those within it never are. NULL: none is. Borrowed. */
    const struct sealer *sealer;
    struct link_counts *counts;
    /* Who was refused because of keys or names, and why: for the log. May be NULL. Feed nothing. */
    void (*warn)(void *context, const char *text);
    /* Feeds an input of a link of that purpose to the node's machines; effects are carried out
     * before it returns. */
    void (*feed)(void *context, enum purpose purpose, const struct input *in);
    /* A put has come in; judged by whoever keeps the buffers. */
    enum refusal (*put)(void *context, uint32_t link, const struct message_put *put);
    /* For FILES links; may be NULL. Where the bytes of a put that is on its way are to go (its body has
     * only its length), NULL: nowhere. When they are there `put` is told, with a body that lies there. */
    uint8_t *(*place)(void *context, uint32_t link, const struct message_put *put);
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

/* Tells of links that could not be opened, sends what has gathered. At the end of every turn. */
void links_settle(struct links *l);

uint32_t links_count(const struct links *l); /* that are up */
uint64_t links_bytes_in(const struct links *l);
uint64_t links_bytes_out(const struct links *l);

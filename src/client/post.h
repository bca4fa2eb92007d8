/* SPDX-License-Identifier: MIT */
/* Messages between the processes of a program, on connections of their own: see docs/decisions/0056-messages.md.
 *
 * Who is where is in the steward's book. A process is called when there is something for it, and the connection is kept and
 * used both ways; where two call each other at once there are two, and each sends on its own. What was not begun when
 * a connection ends is sent on the next; what was begun and not acknowledged has failed. */
#pragma once

#include "client/carmi_steward.h"
#include "client/rings.h"
#include "wire/peer.h"

enum {
    POST_HELD_MAX = 32 << 20,  /* bytes for one receiver, that it has not taken */
    POST_INBOX_MAX = 32 << 20, /* bytes that the program has not read; then connections wait */
    POST_OVERHEAD = 128,       /* that a message counts as, beside its bytes */
    LINK_BYTES = 32 << 10
};

/* Bytes of a message, for one receiver or many. */
struct cargo {
    uint32_t refs;
    size_t len;
    uint8_t data[];
};

struct sending {
    struct list at;
    struct cargo *cargo; /* NULL: it is written */
    carmi_request call;
    uint32_t tag;
    size_t held;
};

struct peer {
    struct list at;
    carmi_process id;
    struct list queue; /* of sendings that were not begun */
    size_t held;
    struct link *link; /* what is for it goes there; NULL: there is none */
    bool seeking;      /* in the book of this number, or a later one; 0: when the timer fires */
    uint32_t book;
    bool gone;      /* it was reached, and has ended the connection */
    bool far;       /* not by the socket of its node */
    uint32_t tries; /* that have failed */
};

struct link {
    struct list at;
    struct post *post;
    struct peer *peer; /* NULL: it has not said who it is */
    int fd;
    bool ours; /* we have called */
    bool near; /* by the socket of a node */
    bool connecting, up, lost;
    bool unwatched; /* it has ended, and cannot be read from now */
    uint32_t events;
    /* Of one node: bytes go through memory, and the socket only wakes. */
    struct rings rings;
    bool ringed;
    bool ended; /* the socket is; there may be something in the rings */
    int memory; /* descriptor that goes, or has come, with HELLO; -1: none */
    /* outwards */
    uint8_t out[LINK_BYTES];
    size_t out_from, out_to;
    struct sending *going; /* its head is written, of its body so much: */
    size_t gone;
    struct list unacked;
    uint32_t acked;
    /* inwards */
    uint8_t in[LINK_BYTES];
    size_t in_from, in_to;
    uint8_t head[PEER_HEAD_BYTES + PEER_HELLO_BYTES];
    size_t have; /* of the head, then of the body */
    bool in_body;
    struct peer_head now;
    struct letter *letter;
    uint32_t received, told;
};

/* A broadcast that waits for a book, or what was sent behind one. */
struct pending {
    struct list at;
    struct cargo *cargo;
    carmi_request call;
    uint32_t tag;
    carmi_process to; /* 0: to the class, NULL: to all */
    char *class_name;
    uint32_t book;
};

struct post {
    bool open;
    struct steward *steward;
    carmi_process self;
    struct message_reach reach;
    int epoll, timer, near, far;
    int spare; /* descriptor, for when the program has no other */
    struct list peers, links, pendings;
    size_t pending_bytes;
    size_t inbox;
    uint64_t delay_ms; /* until those that are not there are looked for again */
    uint32_t untold;   /* DATA that have come and were not acknowledged */
    bool stalled;      /* a link has more, and the program is to read first */
    uint32_t ringed;   /* links that are */
    bool awake;        /* we look into the rings: nobody need wake us */
    long processors;   /* of this machine */
    uint32_t spins; /* so often they are looked into before we sleep: more where that was of use */
};

/* Opens what others reach us by. 0 or -errno. */
int post_open(struct post *p, struct steward *s, carmi_process self);
void post_close(struct post *p);

/* All that can be said and heard now; and where there is nothing left to read: acknowledges what has come. */
void post_pump(struct post *p);
void post_idle(struct post *p);
/* Of rings: we look ourselves, until post_sleep, which is true if there is something; post_spin looks for a short while. What is there
 * is read by post_pump, or, if it is only that, by post_glance. */
void post_wake(struct post *p);
bool post_sleep(struct post *p);
bool post_spin(struct post *p);
void post_glance(struct post *p);
/* The program has read that much. */
void post_read(struct post *p, size_t bytes);

/* The call is outstanding. 0, -EAGAIN: the receiver has not taken what it was sent, or -ENOMEM. */
int post_send(struct post *p, struct call *call, carmi_process to, struct bytes data);
int post_broadcast(struct post *p, struct call *call, const char *class_name, struct bytes data);
void post_cancel(struct post *p, carmi_request call);

/* post_door.c */
struct address;
void post_address(bool near, const struct message_reach *r, struct address *ret);

/* post.c */
extern const struct steward_ear post_ear;
void post_timer(struct post *p);
/* Peers that nobody needs; all there is. */
void post_sweep(struct post *p);
void post_forget(struct post *p);
/* For links: it has said who it is; it is up; it is over. */
bool post_hello(struct link *l, const struct peer_hello *hello);
void post_up(struct link *l);
void post_over(struct link *l);
/* A message was taken, or failed with an errno. */
void post_settle(struct post *p, struct peer *peer, struct sending *s, int error);

/* post_link.c */
struct link *link_new(struct post *p, int fd, bool ours, struct peer *peer);
void link_hail(struct link *l, struct peer_hello *hello);
/* Of one with rings: it looks into them. */
void link_look(struct link *l);
void link_event(struct link *l, uint32_t events);
void link_write(struct link *l);
void link_read(struct link *l);
/* What is waited for. */
void link_watch(struct link *l);
void link_free(struct link *l);

/* SPDX-License-Identifier: MIT */
/* What can happen next, and to which node.
 *
 * An event waits in the clock until its time and then, if its node is busy or paused, in the node's
 * inbox. It names the life of the node it is meant for; when that life is over it is dropped. The
 * owner of an event (frame, timer, notice, node) embeds it. */
#pragma once

#include <stdint.h>

#include "base/list.h"
#include "machine/machine.h"

struct world;
struct link;
struct body;

enum event_kind {
    EVENT_WAKE,    /* a node has time for the next event in its inbox */
    EVENT_TIMER,   /* a timer is due */
    EVENT_WIRE,    /* a frame has come off the wire: into the network interface */
    EVENT_FRAME,   /* a frame is in the node's memory */
    EVENT_CONNECT, /* a peer wants to open a link */
    EVENT_REFUSED, /* our link could not be opened */
    EVENT_UP,      /* our link is open */
    EVENT_ENDING,  /* the end of a link has come off the wire */
    EVENT_DOWN,    /* a link is gone */
    EVENT_DURABLE, /* the disk has taken a value */
    EVENT_LOGGED,  /* or an event of the log */
    EVENT_FETCHED, /* or has found one */
    EVENT_LOOKED,  /* somebody has looked whether a run could begin */
    EVENT_GAUGED,  /* somebody has looked how its machine is */
    EVENT_NEWS,    /* there is something outside */
    EVENT_SENT     /* the bytes of a put have left */
};

/* For events that do not depend on the life of their node. */
enum { ANY_LIFE = 0 };

struct event {
    struct list place; /* in an inbox */
    uint32_t index;    /* in the clock, of kinds that can be taken out */
    uint32_t node;
    uint32_t life;
    uint8_t kind;
};

/* Everything that happens to a node, except frames and timers. */
struct notice {
    struct event event;
    struct link *link; /* UP, ENDING, DOWN: counted by the link */
    uint8_t side;      /* of the link: who hears it */
    uint8_t layer;     /* DURABLE: who asked */
    uint32_t opener;   /* CONNECT, REFUSED */
    uint32_t opener_life;
    uint32_t target;
    enum purpose purpose;
    uint64_t cookie;   /* or the ticket of DURABLE, LOGGED, FETCHED, LOOKED; SENT: the put's note */
    uint64_t value;    /* DURABLE; LOGGED, FETCHED: the key; SENT: the put's offset */
    struct body *body; /* LOGGED */
    bool closes;       /* LOGGED: the key */
    int32_t error;     /* LOGGED, LOOKED */
    uint32_t number;   /* SENT: of the link, at the sender */
    uint32_t buffer;   /* SENT */
    uint64_t mark;     /* SENT: bytes sent to that end up to this put */
};

struct notice *notice_new(struct world *w, enum event_kind kind, uint32_t node, uint32_t life);
void notice_free(struct world *w, struct notice *n);

/* The time of an event taken off the clock has come. */
void event_happen(struct world *w, struct event *e);

/* An event has reached its node, which looks at it when it has the time. */
void event_arrive(struct world *w, struct event *e);

/* Feeds it to the machines of its node, which is up, in the right life, and has the time. */
void event_process(struct world *w, struct event *e);

/* Nobody will ever look at it. */
void event_drop(struct world *w, struct event *e);

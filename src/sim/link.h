/* SPDX-License-Identifier: MIT */
/* A link between two nodes (or bodies: world.h), and what travels on it.
 *
 * Each end has a number at its node until that node's machine has closed it or heard LINK_DOWN, or
 * the node has crashed; then the number is 0, and whatever still comes for that end is dropped.
 * Both ends let go at their own times. Frames of one lane arrive in the order sent; the end of a
 * link arrives after them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/event.h"
#include "sim/frame.h"
#include "wire/gate.h"

/* Side 0 opened the link, side 1 was asked. */
struct end {
    uint8_t side;
    bool broken; /* as is the other one: nothing travels any more */
    uint32_t node;
    uint32_t life;           /* of the node */
    uint32_t number;         /* at the node; 0: it has let go */
    uint32_t queued;         /* frames toward here, on the way or waiting */
    uint64_t mute_until;     /* till then frames toward here vanish */
    struct list flight;      /* frames toward here, as they were sent */
    uint64_t wire_at[LANES]; /* when the last frame toward here is off the wire */

    uint64_t memory_at[LANES]; /* and when the last that was is in memory */
    struct gate gate;          /* judges what arrives here */
    enum role role;            /* of the peer */
    uint64_t sent_bytes;       /* toward here, in all */
    uint64_t done_bytes;       /* of them, those that are on the way no more */
    struct list held;         /* notices that bytes have left, of those who send to here (sent.h) */
    uint32_t sequence[LANES]; /* of the last frame sent from here */

    /* where processors are shared */
    struct list unsent;   /* frames from here, to be sent when the turn is over */
    struct list to_flush; /* among its node's ends with such frames */
    uint64_t turn;        /* of the node, when it last read from here */
};

struct link {
    struct end ends[2];
    uint64_t cookie; /* side 0's */
    enum purpose purpose;
    uint32_t refs; /* ends with a number, notices; frames are counted by their end */
};

static inline struct link *end_link(struct end *e) {
    return CONTAINER_OF(e - e->side, struct link, ends[0]);
}

static inline struct end *end_peer(struct end *e) {
    return e->side == 0 ? e + 1 : e - 1;
}

/* Gives a reference back. */
void link_unref(struct world *w, struct link *l);

/* A frame toward this end is no more; it was counted with so many bytes. */
void link_unqueue(struct world *w, struct end *to, uint64_t bytes);

/* A node asks for a link; its request leaves at `when`. */
void link_open(struct world *w, uint32_t opener, const struct effect_open *open, uint64_t when);

/* The request has come before the target's machine: establishes the link. Takes the notice. */
void link_connect(struct world *w, struct notice *n);

/* The target is not there: the opener hears so at `at`. Takes the notice. */
void link_refuse(struct world *w, struct notice *n, uint64_t at);

/* Sends a frame from an end; the sender's processor is done with it at `when`. */
void link_send(struct world *w, struct end *from, uint16_t type, uint32_t epoch, struct body *body,
               uint64_t when);

/* The same with a put into a buffer of stamps, which is charged for `extra` bytes more. Takes the notice, which
 * tells the sender when the bytes have left. */
void link_put(struct world *w, struct end *from, struct body *body, uint32_t extra,
              struct notice *sent, uint64_t when);

/* Where processors are shared: sends what the machine had to say during a turn, with one system
 * call. Returns when that is over, having begun at `when`. */
uint64_t link_flush(struct world *w, struct end *from, uint64_t when);

/* Nobody will send these any more. */
void link_drop_unsent(struct world *w, struct end *from);

/* This end is given up by its own node (which hears nothing more of it); the other will hear. */
void link_close(struct world *w, struct end *e, uint64_t when);

/* This end's node died: what it had not sent by now vanishes; the other will hear. */
void link_abandon(struct world *w, struct end *e);

/* The link breaks: a random suffix of both directions is lost, both ends hear of it some time. */
void link_break(struct world *w, struct link *l);

/* Events of links whose time has come. */
void link_frame_off_wire(struct world *w, struct frame *f);
void link_end_off_wire(struct world *w, struct notice *n);
void link_up(struct world *w, struct notice *n);
void link_down(struct world *w, struct notice *n);
void link_refused(struct world *w, struct notice *n);
void link_frame(struct world *w, struct frame *f);

uint64_t link_latency(const struct world *w, uint32_t a, uint32_t b);

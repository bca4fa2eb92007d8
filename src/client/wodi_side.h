/* SPDX-License-Identifier: MIT */
/* The master's side of a work distributor: what it says, what it has heard, and what it says again on a new connection.
 *
 * No descriptors here: bytes to be sent gather in `out`, words that came are fed in. So the very same is run by the library
 * and by a test that kills everybody. A restart of the server is a new connection to it: what is not known to survive is
 * said again, and results that come again are passed over. A restart of the master is a new side: the server tells it what
 * is known, and what was not acknowledged comes again. */
#pragma once

#include "base/list.h"
#include "wodi/profile.h"
#include "wodi/words.h"

/* Bytes that grow at the end and are taken from the front. */
struct wodi_bytes {
    uint8_t *at;
    size_t from, len, cap;
};
/* False: there is no memory. */
bool wodi_bytes_add(struct wodi_bytes *b, struct bytes more);
/* A frame of this word. */
bool wodi_bytes_say(struct wodi_bytes *b, const struct word *w);
/* Room for so many at the end; NULL: there is none. */
uint8_t *wodi_bytes_room(struct wodi_bytes *b, size_t len);
void wodi_bytes_took(struct wodi_bytes *b, size_t len);
static inline struct bytes wodi_bytes_left(const struct wodi_bytes *b) {
    return bytes_of(b->at + b->from, b->len - b->from);
}

struct side_work {
    struct list at;
    uint64_t cycle, step;
    uint64_t said; /* it was the so-manieth on this connection */
    uint32_t len;
    uint8_t body[];
};

struct side_result {
    struct list at;
    uint64_t seq, cycle, step, ns;
    uint32_t status;
    uint32_t len;
    uint8_t body[];
};

struct side {
    /* Set by the owner before side_hello(). */
    uint64_t token[2];
    uint64_t cookie;
    uint8_t speed_source;
    char name[WORD_NAME_MAX + 1];
    struct wodi_bytes profile;

    struct wodi_bytes out;
    bool failed;          /* no memory */
    uint32_t refused;     /* by the server: an error number */
    bool welcomed;        /* on this connection */
    bool ever;            /* or on one before */
    uint64_t cookie_told; /* the session's: names the file of acknowledgements */
    char folder[WORD_NAME_MAX + 1];

    uint64_t cycle, ended;
    bool open;
    uint64_t steps_max, blocks_max;
    uint64_t outstanding; /* results that are to come */
    uint64_t unacked;     /* steps that the server keeps for us */
    uint64_t blocks_told, blocks_unkept;
    struct list unkept; /* side_work: not known to survive */
    uint64_t said;      /* steps, on this connection */
    struct list inbox;  /* side_result */
    uint64_t inbox_count;
    uint64_t received, taken, acked, ack_said, confirmed;

    bool asking; /* begin, end or complete */
    bool asked_again;
    struct word ask;
    struct wodi_bytes ask_body;
    bool answered;
    uint32_t answer;
};

void side_init(struct side *s);
void side_fini(struct side *s);

/* A new connection: nothing that was to be sent on the one before is. */
void side_connect(struct side *s);
/* Right after the welcome: a former life of this master has acknowledged so much, though the server may not know. */
void side_found(struct side *s, uint64_t acked);
/* False: that word makes no sense, or the server has refused us. */
bool side_hear(struct side *s, const struct word *w);

/* -EAGAIN: the server has as much as it keeps for us; results must be taken first. -EINVAL: no cycle is open. */
int side_work(struct side *s, uint64_t step, struct bytes body);
/* Begin, end or complete; the answer comes as s->answered. */
void side_ask(struct side *s, enum word_kind kind, uint64_t cycle, uint64_t steps,
              struct bytes body);

/* What was taken before is done with. */
void side_ack(struct side *s);
/* That is told to the server now (it may gather otherwise). */
void side_say_ack(struct side *s);
/* The next result, the caller's to free; NULL: none is here. */
struct side_result *side_take(struct side *s);

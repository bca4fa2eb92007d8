/* SPDX-License-Identifier: MIT */
/* The parts of a porter, see porter.h, between themselves. */
#pragma once

#include "base/units.h"
#include "os/alarms.h"
#include "os/buffers.h"
#include "os/carriage.h"
#include "os/loans.h"
#include "os/porter.h"
#include "os/writer.h"

enum { PORTER_OFFERS_MAX = 32 };

/* A slot whose piece lies in a file as well, from which it can be sent without a copy. By slot, as far as there is room:
 * what is forgotten is sent out of the slot. */
struct twin {
    uint32_t buffer, bundle, piece;
    uint64_t offset;
};

enum { TWINS = 128 };

/* A piece that goes from a link's socket straight into its file, not by way of its slot. */
struct inflow {
    uint32_t buffer; /* 0: the place is free */
    uint64_t offset;
    uint32_t bundle, piece, link;
    int fd; /* ours */
    uint64_t at;
    size_t done, waiting;     /* in its file; behind that, in the pipe */
    struct digesting *digest; /* of what is done; NULL before the place is used first */
    int error;                /* of the file; 0: none */
};

enum { INFLOWS = 64 };

/* One thing to be done with files. */
struct deed {
    enum effect_kind kind;
    struct effect_bundle bundle;
    struct effect_page page;
    struct effect_piece piece;
    uint8_t *bytes; /* ours: a page, a descriptor */
};

struct opened {
    bool open;
    uint64_t awaits; /* the fabric of this transfer: the mover is told then; 0: it was told */
    int error;       /* that came up while it was sent, and is to be told; 0: none */
    char why[256];
    struct depot_bundle *in;
    struct survey *out;
    bool beside;   /* pieces of it are written by the writer */
    bool near;     /* it goes from here to nodes of this machine only */
    uint32_t told; /* pages that the mover was told of, if it is on offer and grows */
};

/* A piece that the writer has. */
struct pending {
    struct effect_piece piece;
    uint64_t since; /* for the diary */
};

/* What is under way. */
struct lent {
    struct effect_put put;
    struct original *file; /* that it lies in; NULL: it lies in a buffer */
    uint64_t since;        /* for the diary */
};

struct offer {
    uint64_t number;
    uint64_t run; /* whose folder it is from; 0: from none */
    struct survey *survey;
    uint64_t
        until; /* ours, when nobody has taken any of it for a while; 0: whoever made it keeps it */
};

/* An offer that is looked over while it is given. */
struct growing {
    struct source source;
    struct survey *survey; /* NULL: none does */
};

struct porter {
    struct porter_config config;
    struct growing growing;
    struct links *links;
    struct link_counts counts;
    struct alarms alarms;
    struct buffers buffers;
    struct carriage *carriage;
    struct depot *depot;
    struct mover *mover;
    struct machine machine;
    struct effects effects;
    void *arena;
    size_t arena_bytes;
    struct mover_config limits;
    struct nodeset scratch[2];
    void *scratch_storage;
    struct opened *bundles;
    struct twin twins[TWINS]; /* buffer 0: none */
    struct inflow inflows[INFLOWS];
    int pipe[2]; /* that inflows go through; -1: not made yet */
    bool no_splice;
    struct offer offers[PORTER_OFFERS_MAX];
    uint32_t offer_count;
    struct deed *deeds; /* ring */
    uint32_t deed_at, deed_count, deed_cap;
    struct input_sent *sent; /* to be told */
    uint32_t sent_count, sent_cap;
    struct loans loans;
    struct writer writer;
    struct pending pending[WRITER_MAX]; /* by tag */
    uint64_t pending_count;             /* since ever */
    uint32_t receivers;                 /* of the last transfer that was ordered */
    struct diary diary;
    uint64_t asked_at; /* for a link, last; for the diary */
    bool spoilt;       /* some bundle has an error that is to be told */
    struct lent *lent; /* by tag */
    uint32_t *lent_free;
    uint32_t lent_cap, lent_free_count;
    uint64_t count_offer; /* that nodes are asked about */
};

/* A step of the mover, and what follows from it. */
void porter_feed(struct porter *p, struct input *in);

/* ---- porter_puts.c: pieces that go out and come in ---- */

void porter_put(struct porter *p, const struct effect_put *put);
/* What was put has left, or never will: to be told in the next round. */
void porter_sent(void *context, uint64_t tag);
/* Where a put of a link's goes; NULL: nowhere. */
uint8_t *porter_place(void *context, uint32_t link, const struct message_put *m);
enum refusal porter_came(void *context, uint32_t link, const struct message_put *m);
/* A piece is in its slot: stored in a file (or if not `stored` only read from there, perhaps long ago). */
void porter_note_twin(struct porter *p, const struct effect_piece *e, bool stored);
void porter_forget_twins(struct porter *p, uint32_t bundle);

/* ---- porter_draws.c: pieces that go from a socket into their file ---- */

/* As `draw` of links. */
ssize_t porter_draw(void *context, uint32_t link, int socket, const struct message_put *m,
                    size_t done);
/* Whether the piece in this slot came so; if it did, it is over now: how it went and, if that is 0, the digest of what is in the file. */
bool porter_drawn(struct porter *p, const struct effect_piece *e, int *ret_status,
                  uint8_t ret_digest[DIGEST_BYTES_MAX]);
void porter_draws_fini(struct porter *p);
/* Of this bundle. */
void porter_draws_forget(struct porter *p, uint32_t bundle);

/* ---- porter_files.c: what is to be done with files ---- */

/* After this step of the mover. */
void porter_do_later(struct porter *p, const struct effect *e);
void porter_work_off(struct porter *p);
/* The writer has something. */
void porter_written(struct source *s, uint32_t events);
/* Bundles whose fabric is open now, or never will be. */
void porter_tell_opened(struct porter *p);

/* ---- porter_offers.c: what can be had from here, and folders of runs ---- */

struct survey *porter_find_offer(const struct porter *p, uint64_t number); /* NULL: there is none */
void porter_growing_fini(struct porter *p);
/* Tells the mover what of this bundle has been found since, if it grows. */
void porter_tell_grown(struct porter *p, uint32_t bundle);
/* What nobody has asked for for a while goes. */
void porter_expire_offers(struct porter *p);
/* An OFFER: files of this node are wanted; looked over now, and on offer for a while. */
void porter_present(struct porter *p, const struct input_message *in);
/* A CLEAR: folders of runs are to go. */
void porter_clear(struct porter *p, const struct input_message *in);

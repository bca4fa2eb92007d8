/* SPDX-License-Identifier: MIT */
/* What the files of the mover share.
 *
 * A *haul* is one transfer here. A *way* leads towards whoever gives to us in one of its trees, a *taker* is one
 * who takes from us. Pieces lie in *slots*: those of a way fill as they come, those of the shelf are read
 * for takers who were not there when they came. */
#pragma once

#include "fm/mover.h"
#include "rm/spread.h"
#include "wire/bundle.h"
#include "wire/message.h"

enum { TREES = 2, SHELF_SLOTS = 8, PAGES_AHEAD = 8, TEXT_BYTES = 200, ADDRESS_BYTES = 128 };

/* Beats that somebody may miss, or that something may take, before it is held to be stuck. */
enum { SILENT_BEATS = 3 };

/* Deliberate bugs that the campaign must find; chosen when building, never in a release. Those of the
 * primitives have the numbers before. */
enum planted {
    PLANTED_COMMIT_EARLY = 7, /* make it visible when a piece is still missing */
    PLANTED_UNJUDGED,         /* pass on what was not judged yet */
    PLANTED_NOT_AGAIN,        /* do not ask another giver for what the last one was asked */
    PLANTED_REUSE,            /* use a slot again before all of it has left */
    PLANTED_LEAK,             /* forget a buffer */
};
#ifndef STORM_PLANTED_BUG
#define STORM_PLANTED_BUG 0
#endif

static inline bool planted(enum planted bug) {
    return STORM_PLANTED_BUG == (int)bug;
}

enum slot_state {
    SLOT_FREE,
    SLOT_BUSY, /* being stored, or loaded */
    SLOT_READY
};

struct slot {
    uint8_t state;
    uint16_t sends; /* that are under way */
    uint32_t piece;
    uint32_t len;
};

struct way {
    uint32_t link;   /* 0: none */
    uint64_t cookie; /* of the link that is being opened; 0: none is */
    uint64_t opened_at;
    uint32_t refused;     /* times in a row that it could not be opened */
    uint32_t rung;        /* 0: from our parent; 1: from its parent; ... */
    uint64_t retry_at;    /* 0, or when to try again */
    uint32_t buffer;      /* of the slots; 0: none yet */
    uint32_t came, freed; /* pieces, on all links so far: slots are used in turn */
    uint32_t base;        /* `came` when this link began */
    uint32_t told;        /* what room was told of */
    uint32_t page;        /* of the table: the next that we shall be told on this link */
    uint32_t asked;       /* the next that we say what we need of */
    uint32_t first;       /* all pieces of this tree that lie in pages before are here */
    uint32_t wrong;       /* what did not fit, from the source itself */
    bool moved;           /* something came since we began with the first rung */
    uint64_t heard_at;
    struct slot slots[SLOTS_MAX];
};

enum haul_phase { HAUL_OPENING, HAUL_MOVING, HAUL_COMMITTING, HAUL_HERE, HAUL_FAILED };

struct haul {
    uint64_t transfer; /* 0: the place is free */
    uint64_t offer;
    bool gives; /* we are its source */
    enum haul_phase phase;
    uint32_t source; /* NO_NODE: at `address` */
    uint8_t address[ADDRESS_BYTES];
    uint32_t address_len;
    struct nodeset set;
    struct spread spread;
    uint32_t *order, *ends; /* of its receivers by switch; used if the plan has groups */
    uint32_t trees;
    uint32_t position;
    uint32_t slots;
    uint32_t pieces, pages, page_pieces, piece_bytes;
    bool open;       /* there may be fewer pieces and pages: the last page tells */
    uint32_t kept;   /* pages that the world was told of */
    uint32_t known;  /* and has judged, without a gap */
    uint32_t judged; /* a bit for each page from `known` on: it was judged out of turn */
    uint8_t tellers[PAGES_AHEAD]; /* which tree those that are not known came by */
    uint8_t *have;                /* a bit a piece */
    uint32_t have_count;
    uint32_t wrong; /* what did not fit, from anybody */
    struct way ways[TREES];
    uint32_t shelf; /* its buffer, 0: none yet */
    struct slot shelf_slots[SHELF_SLOTS];
    uint64_t bytes_put;
    uint32_t furthest;
    uint64_t since;
    uint64_t moved_at;                  /* when something came last */
    uint32_t busy;                      /* slots that the world stores, or loads */
    uint64_t told_at;                   /* when it told of the last, or began with the first */
    uint64_t met_at, first_at, last_at; /* as in struct mover_view */
    bool asked, spared;                 /* the same */
    int32_t error;
    uint32_t text_len;
    uint8_t text[TEXT_BYTES];
};

struct taker {
    uint32_t link; /* 0: the place is free */
    uint64_t since;
    uint64_t
        transfer; /* 0: it has not said yet what it wants; a source's own number is its offer */
    struct haul *haul; /* NULL: we have not heard of that yet */
    uint8_t tree;
    uint32_t page;         /* the next to be told */
    bool fetching;         /* and it is being fetched */
    uint32_t first, asked; /* pages that it has said what it needs of; `asked` is the next */
    uint8_t need[PAGES_AHEAD][BUNDLE_PAGE_PIECES_MAX / 8];
    uint32_t cursor; /* it needs nothing before this piece */
    uint32_t buffer, slots, slot;
    uint32_t room, sent;
    uint32_t unsent;  /* puts that have not left */
    uint64_t left_at; /* when the last did, or the first was made */
    bool reads;       /* what it got last was not at hand any more */
    uint64_t said_at, heard_at;
};

struct mover {
    struct mover_config config;
    uint64_t now;
    struct effects *out;
    uint32_t host;    /* link to the node's manager; 0: none */
    uint32_t buffers; /* the last number that was given out */
    uint64_t cookies; /* the same */
    uint64_t timer_at;
    struct nodeset scratch[2];
    uint32_t *switches; /* of a transfer's receivers, for a moment */
    struct haul *hauls;
    struct taker *takers;
    uint32_t taker_end; /* all that are in use lie before this; behind it nothing is set */
};

enum mover_timer { TIMER_TICK = 1 };

#define HAULS_EACH(h, m)                                                       \
    for (struct haul *h = (m)->hauls; h < (m)->hauls + (m)->config.hauls; h++) \
        if (h->transfer != 0)
#define TAKERS_EACH(t, m)                                                      \
    for (struct taker *t = (m)->takers; t < (m)->takers + (m)->taker_end; t++) \
        if (t->link != 0)

/* haul.c: a transfer, from its order to its end */
struct haul *haul_find(const struct mover *m, uint64_t transfer);
void haul_begin(struct mover *m, const struct message_transfer *t);
void haul_enough(struct mover *m, const struct message_enough *e);
void haul_opened(struct mover *m, const struct input_bundle *in);
void haul_page(struct mover *m, const struct input_page *in);
void haul_piece(struct mover *m, const struct input_piece *in);
/* The world has begun with one more slot, or told of one. */
void haul_busy(struct mover *m, struct haul *h);
void haul_told(struct mover *m, struct haul *h);
/* The world does not answer: we cannot give what we do not get. */
bool haul_stuck(const struct mover *m, const struct haul *h);
/* A piece is here. */
void haul_got(struct mover *m, struct haul *h, uint32_t piece);
void haul_fail(struct mover *m, struct haul *h, int32_t error, struct bytes text);
/* Tells the manager again how everything stands: it is another. */
void haul_report(struct mover *m);
static inline bool haul_has(const struct haul *h, uint32_t piece) {
    return h->gives || (h->have[piece / 8] >> piece % 8 & 1) != 0;
}
static inline uint32_t haul_page_pieces(const struct haul *h, uint32_t page) {
    uint32_t from = page * h->page_pieces;
    return h->pieces - from < h->page_pieces ? h->pieces - from : h->page_pieces;
}
static inline uint32_t haul_index(const struct mover *m, const struct haul *h) {
    return (uint32_t)(h - m->hauls);
}

/* The node at a position of its plan that is not the source's. */
static inline uint32_t haul_node(const struct haul *h, uint32_t position) {
    uint32_t receiver = h->spread.groups > 0 ? h->order[position - 1] : position - 1;
    return nodeset_at(&h->set, receiver);
}

/* way.c: towards who gives */
void way_begin(struct mover *m, struct haul *h, uint32_t tree);
void way_end(struct mover *m, struct haul *h, uint32_t tree);
void way_up(struct mover *m, const struct input_link *in);
void way_down(struct mover *m, const struct input_link *in);
void way_message(struct mover *m, struct haul *h, uint32_t tree, const struct input_message *in);
void way_put(struct mover *m, const struct input_put *in);
/* A piece that lay in one of its slots was judged. */
void way_stored(struct mover *m, struct haul *h, uint32_t tree, const struct input_piece *in);
/* Asks for what is known to be missing, and is not asked for. */
void way_ask(struct mover *m, struct haul *h, uint32_t tree);
/* Gives slots back that nobody waits for. */
void way_release(struct mover *m, struct haul *h, uint32_t tree);
/* Who gave us this cannot: the next. */
void way_next(struct mover *m, struct haul *h, uint32_t tree);
/* It was wrong. */
void way_wrong(struct mover *m, struct haul *h, uint32_t tree);
/* The haul and tree whose way has this link; NULL if none has. */
struct haul *way_of_link(const struct mover *m, uint32_t link, uint32_t *ret_tree);
void way_tick(struct mover *m, struct haul *h, uint32_t tree);
/* When it will want to be looked at, unless something happens before; UINT64_MAX: never. */
uint64_t way_due(const struct way *w);

/* taker.c: those who take */
void taker_up(struct mover *m, const struct input_link *in);
void taker_down(struct mover *m, uint32_t link);
struct taker *taker_find(const struct mover *m, uint32_t link);
void taker_message(struct mover *m, struct taker *t, const struct input_message *in);
/* We have heard of this transfer: who waited for it is served. */
void taker_adopt(struct mover *m, struct haul *h);
/* A page is at hand: to those who are to have it next. */
void taker_page(struct mover *m, struct haul *h, uint32_t page, struct bytes table);
/* Sends what can be sent to all who take this. */
void taker_serve(struct mover *m, struct haul *h);
/* Of those who take this, and of those who wait until we have it open. */
void taker_dismiss(struct mover *m, struct haul *h, int32_t error, struct bytes text);
/* A put to this one has left. */
void taker_sent(struct mover *m, uint32_t link);
/* Does any of them still need a piece, in this tree? */
bool taker_wants(const struct mover *m, const struct haul *h, uint32_t piece);
void taker_tick(struct mover *m, struct taker *t);

/* slot.c: pieces at hand */
/* Where a piece lies that is ready to be sent; NULL if nowhere. */
struct slot *slot_find(struct haul *h, uint32_t piece, uint32_t *ret_buffer, uint64_t *ret_offset);
/* Begins to read a piece onto the shelf, if there is a place on it and it is not there; `ahead`: it is not yet to be
 * sent. */
void slot_shelve(struct mover *m, struct haul *h, uint32_t piece, bool ahead);
void slot_loaded(struct mover *m, struct haul *h, const struct input_piece *in);
/* The bytes of a put have left. */
void slot_sent(struct mover *m, const struct input_sent *in);
uint32_t slot_buffer(struct mover *m, const struct haul *h, uint64_t bytes);

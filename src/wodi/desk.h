/* SPDX-License-Identifier: MIT */
/* The desk of a work distributor: masters, workers, cycles, steps (the CARMI paper, section 3).
 *
 * Pure logic: inputs change the state and may append records for the journal; desk_pump() then looks at the state and
 * says what is to be sent. Time is an argument, all memory is reserved at the start.
 *
 * What it holds on to:
 *  - A step is waiting, running (on one worker, or on two if it was late), or done. It is forgotten when the master has
 *    acknowledged its result; its number then is in `done` until the cycle ends.
 *  - Results to one master are numbered in the order of their records in the journal. A result is sent when its record is
 *    durable, so a number means the same result in every life of the server; an acknowledgement is one number, "all up to
 *    this". Hence what was acknowledged never comes again, and what was not does.
 *  - A step is executed again when its worker is lost; which of several results counts is decided by the first record.
 *  - Each master has its own share of everything. One that takes no results gets no more of its steps executed, and nobody
 *    else feels it. A worker that takes nothing is sent nothing more.
 *
 * Links are numbers of the world below limits.links; after CLOSE or desk_down() one may be used again. Before each input
 * the deeds need DESK_ROOM bytes. */
#pragma once

#include "wodi/deeds.h"
#include "wodi/profile.h"

struct desk;

enum { DESK_ROOM = 2 * DEED_MAX, DESK_MASTERS_MAX = 64 };

struct desk_limits {
    uint32_t links;   /* numbers of links are below */
    uint32_t masters; /* known at the same time, here or away */
    uint32_t workers; /* connected at the same time */
    uint32_t steps;   /* of one master that are not acknowledged */
    uint32_t history; /* steps whose lengths are remembered, a master */
    uint64_t bytes;   /* of one master: half for work, half for results; at least 4 WORD_BODY_MAX */
    uint32_t results_ahead; /* sent to a master that has not acknowledged them */
    uint32_t steps_ahead;   /* sent to a worker at once */
    uint64_t ahead_ns;      /* but only so much that will be done in this time */
    uint64_t worker_unsent; /* bytes: one that has not taken so much is sent nothing */
    uint64_t ping_ns;       /* an idle worker that is not heard for so long is asked */
    uint64_t silent_ns;     /* and is lost if it says nothing for so long */
    uint64_t token[2];
    bool in_order; /* steps as they come instead of longest first: for comparison */
    bool no_copies;
    struct bytes folder; /* told to masters of this machine, for their acknowledgements; it stays */
};

/* What is usual; token and folder are the caller's. */
void desk_usual(struct desk_limits *l);

size_t desk_bytes(const struct desk_limits *l);
/* False: bodies of so many masters would have more blocks than can be numbered. */
bool desk_fits(const struct desk_limits *l);
/* `mem`: so many bytes, all zero, aligned as malloc does. */
struct desk *desk_init(void *mem, const struct desk_limits *l);

/* ---- inputs ---- */

/* Somebody has connected; `local`: from this machine. */
void desk_up(struct desk *d, uint32_t link, bool local, uint64_t now);
/* A word has come. */
void desk_heard(struct desk *d, uint32_t link, const struct word *w, uint64_t now,
                struct deeds *out);
/* The connection has ended. */
void desk_down(struct desk *d, uint32_t link, uint64_t now);
/* What was sent to it has been taken by the socket. */
void desk_drained(struct desk *d, uint32_t link);
/* So many records, of all that were ever appended, survive. */
void desk_durable(struct desk *d, uint64_t records);
/* It is later: who is silent, who is late. */
void desk_time(struct desk *d, uint64_t now, struct deeds *out);
/* When desk_time() is due; 0: never. */
uint64_t desk_deadline(const struct desk *d, uint64_t now);

/* Says what is to be sent now, as far as it fits; true: there is more. */
bool desk_pump(struct desk *d, uint64_t now, struct deeds *out);

/* ---- lives ---- */

/* A record of a former life, in order, before any other input. False: it cannot be, the journal is damaged. */
bool desk_replay(struct desk *d, const struct word *w);

/* Records that lead to the present state, for a new journal: one at a time, 0: that was all. Begin with zeros. */
struct desk_cursor {
    uint32_t slot, phase, index;
    const void *at;
};
size_t desk_snapshot(const struct desk *d, struct desk_cursor *c, struct room out);

/* ---- masters, for the world ---- */

/* The master of this slot (below limits.masters); false: there is none. */
struct desk_master {
    struct bytes name;
    uint64_t cookie; /* names the file of its acknowledgements */
    uint64_t cycle, acked;
    uint32_t steps; /* not acknowledged */
    uint32_t running;
    bool here;
    uint64_t cycle_steps; /* of this cycle, as far as it is known; without cycles: under way */
};
bool desk_master(const struct desk *d, uint32_t slot, struct desk_master *ret);
/* What its file says; a number that cannot be is taken for the highest that can. */
void desk_master_acked(struct desk *d, uint32_t slot, uint64_t seq, struct deeds *out);
struct history *desk_history(struct desk *d, uint32_t slot);
/* Counts what has changed that is worth a look at histories: ends of cycles, masters that came or went. */
uint64_t desk_changes(const struct desk *d);

/* How many workers the master of this slot should have in a class: what it asked for, or, if it asked for that and lengths
 * of its steps are known, in class 0 the fewest that make its cycles as short as they can be; never more than the cycle has
 * steps. Whoever starts workers asks this. `scratch`: limits.history numbers, twice. */
uint32_t desk_wanted(const struct desk *d, uint32_t slot, uint32_t class, uint64_t *scratch);

/* What has become of a host that workers said they are on: it stands still, so what they have is done elsewhere too and they are
 * given nothing; or it goes on. Or it is gone, and so are they. */
void desk_host_rests(struct desk *d, uint64_t host, bool rests);
void desk_host_gone(struct desk *d, uint64_t host, struct deeds *out);
/* Somebody there has a step. */
bool desk_host_busy(const struct desk *d, uint64_t host);

uint32_t desk_workers(const struct desk *d);
/* Results that workers of a class have said in this life. */
uint64_t desk_results(const struct desk *d, uint32_t class);
/* Bytes of bodies that are kept, for tests. */
uint64_t desk_kept_bytes(const struct desk *d);

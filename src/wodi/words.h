/* SPDX-License-Identifier: MIT */
/* What is said between masters, workers and the server of a work distributor, and what the server writes down.
 *
 * A word is a kind and the fields that this kind has, in one order for all: a table says which. The same walk writes and
 * reads them (wire/codec.h). On a connection a word has its length before it, in the journal also a checksum. Reading is
 * total; whatever does not belong to a word makes it none. */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"

enum word_kind {
    /* From a master. */
    WORD_MASTER,   /* the first: who it is, what every worker is to know */
    WORD_BEGIN,    /* a cycle */
    WORD_WORK,     /* a step */
    WORD_ACK,      /* everything delivered up to seq is done with */
    WORD_END,      /* the cycle; acknowledges as well */
    WORD_COMPLETE, /* there will be no more of it; acknowledges as well */
    /* From a worker. */
    WORD_WORKER, /* the first */
    WORD_RESULT,
    WORD_PONG,
    /* To a master. */
    WORD_WELCOME,
    WORD_ANSWER,  /* to begin, end, complete: status 0, 1 (it was done before) or an error number */
    WORD_KEPT,    /* so many of the steps said on this connection survive */
    WORD_CONFIRM, /* so does the acknowledgement of seq */
    WORD_KNOWN,   /* that step was known already: no further result comes for it */
    WORD_DELIVER,
    /* To a worker. */
    WORD_INIT,
    WORD_START,
    WORD_STEP, /* flag STEP_BENCH: it only measures the worker */
    WORD_FINISH,
    WORD_OVER, /* that master has no more work */
    WORD_PING,
    /* To anybody: the connection ends, and why. */
    WORD_REFUSED,
    /* In the journal. */
    WORD_LOG_MASTER,
    WORD_LOG_BEGIN,
    WORD_LOG_WORK,
    WORD_LOG_RESULT,
    WORD_LOG_ACK,
    WORD_LOG_END,
    WORD_LOG_COMPLETE,
    WORD_LOG_RANGE, /* steps [step, step + count) of the open cycle were acknowledged */
    WORD_KINDS
};

enum { STEP_BENCH = 1 };

/* How a master wants the speed of workers to be known. */
enum speed_source { SPEED_BY_CLASS, SPEED_BY_ATTRIBUTE, SPEED_BY_BENCHMARK, SPEED_SOURCES };

enum { WORD_NAME_MAX = 256, WORD_BODY_MAX = 1 << 20 };
/* The longest word without its body. */
enum { WORD_HEAD_MAX = 384, WORD_BYTES_MAX = WORD_HEAD_MAX + WORD_BODY_MAX };

/* Only the fields that the kind has mean anything. */
struct word {
    uint8_t kind;
    uint8_t flag;
    uint32_t status;
    uint32_t session; /* the server's number for a master; never given twice */
    uint32_t id;      /* of a step while it is under way; class of a worker */
    uint64_t cycle;
    uint64_t step;
    uint64_t seq;   /* results to one master are numbered in the order of the journal, from 1 */
    uint64_t ns;    /* a result: how long it took; a worker: its speed */
    uint64_t count; /* steps, workers, ... */
    uint64_t
        bytes; /* to a master: how much of its room for work is taken, or there is, in blocks (blocks.h) */
    uint64_t token[2];
    struct bytes name;
    struct bytes body;
};

/* The word without a length before it. 0: no room. */
size_t word_write(const struct word *w, struct room out);
/* False: these bytes are no word. Views borrow from them. */
bool word_read(struct word *w, struct bytes in);

/* ---- on a connection: the length (4 bytes), the word ---- */

enum { WORD_PREFIX = 4 };
size_t word_frame(const struct word *w, struct room out);
/* The first word of what has come: bytes it takes, 0: some are missing, -1: that is none. */
long word_next(struct bytes in, struct word *ret);

/* ---- in the journal: the length, a checksum of the word (4 bytes), the word ---- */

enum { RECORD_PREFIX = 8 };
size_t record_frame(const struct word *w, struct room out);
/* The same; -1: what follows was not written whole, or is damaged: the journal ends here. Missing bytes are 0. */
long record_next(struct bytes in, struct word *ret);

/* SPDX-License-Identifier: MIT */
/* What customers have asked for, and what they were told: the history of a simulated cluster of jobs.
 *
 * It belongs to nobody who can die. Customers write it, the auditor (sim/audit.h) reads it. */
#pragma once

#include "sim/verdict.h"
#include "wire/message.h"

enum { WORDS_MAX = 160, NO_ORDER = -1 };

/* How one job of an order has ended, as its customer was told. */
struct ended {
    bool settled;
    uint8_t state;
    uint32_t status;
    uint8_t cause;
    uint32_t node;
    uint64_t run;
    uint64_t output;
};

struct order {
    uint32_t customer;
    uint64_t request[2];
    enum job_kind kind;
    uint32_t flags;
    uint32_t nodes, ppn, procs;
    uint32_t count;    /* of jobs: an array */
    int32_t around;    /* STEP: the order of its allocation; JOB_FAMILY: that of its job */
    uint32_t together; /* JOB_FAMILY */
    uint64_t limit_ns;
    int32_t priority;
    uint32_t after;             /* the order whose end it waits for, plus one; 0: none */
    uint8_t after_kind;         /* enum await_kind */
    uint64_t begin_ns;          /* not before that long after it is asked for; 0: at once */
    uint32_t reservation;       /* of this number that it is to start in; 0: in none */
    int32_t on, exclude;        /* a node that it insists on, or will not have; -1: none */
    uint32_t speed;             /* that its nodes must have, see hall_speed; 0: any */
    bool faster;                /* or more */
    uint32_t hosts, hosts_more; /* that come with it at once, and later */
    uint64_t typed;             /* bytes for its standard input */
    const char *program;
    uint32_t words_len; /* strings, as in wire/spec.h */
    char words[WORDS_MAX];
    /* what became of it */
    uint64_t asked_at; /* 0: not yet */
    uint64_t answered_at;
    enum answer code;
    uint32_t job;   /* the first; 0: not told */
    bool killed;    /* somebody has asked for its end, or sent a signal */
    bool abandoned; /* its customer has died, or left it alone for long */
    bool complete;  /* all output was received */
    uint64_t received;
    struct ended *ends;
};

/* Some have their nodes in two sections: half of them, rounded down, have what the order needs. */
static inline bool order_splits(const struct order *o) {
    return (o->kind == JOB_RUN || o->kind == JOB_BATCH) && o->nodes >= 2 &&
           o->procs == o->nodes * o->ppn && o->request[0] % 5 == 0 &&
           (o->flags & (JOB_SCRIPT | JOB_LISTED)) == 0 && o->hosts + o->hosts_more == 0;
}

/* A customer was told that an order is accepted, or how one of its jobs has ended. */
struct told {
    int32_t order;
    bool ended;
    uint32_t k; /* `ended`: which of its jobs */
};

struct book {
    struct order *orders;
    uint32_t count, cap;
    struct told *told; /* in the order of time, everything once */
    uint32_t told_count, told_cap;
    struct verdict *verdict; /* what customers find wrong at once */
};

void book_fini(struct book *b);

/* A copy of it is written down; its number. */
int32_t book_add(struct book *b, const struct order *o);

/* The order that this one waits for, and has been told to; NULL: none. */
const struct order *book_awaited(const struct book *b, const struct order *o);

/* The order that has this job, NO_ORDER if none was told so. */
int32_t book_find(const struct book *b, uint32_t job);

/* A customer was told this. */
void book_answer(struct book *b, int32_t order, const struct message_answer *a, uint64_t now);
void book_news(struct book *b, int32_t order, const struct message_news *n);

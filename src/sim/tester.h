/* SPDX-License-Identifier: MIT */
/* The test machine: the daemon on every node of a fault campaign.
 *
 * While it is a member it makes random requests of every kind at random times, all drawn from its
 * own stream, and writes down what it asks and hears. What it sees in memory the history finds out
 * by itself. In the last stage the root's tester makes requests to all nodes that have to
 * succeed. */
#pragma once

#include "base/random.h"
#include "sim/history.h"
#include "sim/world.h"

enum tester_stage {
    TESTER_ASK,   /* random requests */
    TESTER_STOP,  /* none, so that the run can settle */
    TESTER_CLOSE, /* the root makes the closing requests */
};

/* What all testers of a run share. */
struct tester_config {
    struct limits limits;
    struct layout layout;
    uint64_t period_ns;
    uint64_t gap_ns; /* mean time between two actions of one tester */
    uint64_t seed;
    enum tester_stage stage;
    struct history *history;
    struct world *world; /* for buffers */
    uint32_t asked;      /* operations so far */
    uint32_t closing;    /* closing requests made */
    uint32_t empties;    /* XFERs without a body so far: each has an offset of its own */
};

enum { TESTER_OUTSTANDING_MAX = 64, TESTER_CLOSINGS = 3 };

struct tester_slot {
    bool used;
    bool buffer; /* owns one */
    uint64_t tag;
};

struct tester {
    struct tester_config *config;
    uint32_t node;
    struct globals globals;
    struct random random;
    bool member;
    struct tester_slot slots[TESTER_OUTSTANDING_MAX];
    struct nodeset set; /* scratch */
    uint64_t *set_storage;
};

/* A tester for a node that boots for the `boots`-th time; the storage of its set is kept. */
void tester_init(struct tester *t, struct tester_config *config, uint32_t node, uint32_t boots,
                 struct globals globals);
void tester_fini(struct tester *t);
struct machine tester_machine(struct tester *t);

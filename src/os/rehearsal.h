/* SPDX-License-Identifier: MIT */
/* One launcher, its manager played by us: gangs on one node without a cluster, for benches and tests.
 *
 * The launcher is the program storm-pl in a folder and a control group of its own. We set gangs up, say whose turn it is, and
 * hear how they ended. */
#pragma once

#include <limits.h>
#include <sys/types.h>

#include "os/cast.h"
#include "os/confine.h"
#include "os/grounds.h"
#include "os/links.h"
#include "wire/message.h"

enum { REHEARSAL_GANGS = 64 };

struct rehearsal_gang {
    bool ended;
    uint64_t ended_at;
    struct ending end;
    uint64_t output; /* bytes that it has written, taken at once */
    char text[256];  /* the first of them */
};

struct rehearsal {
    char folder[64];
    pid_t launcher;
    struct grounds ground;
    bool grouped;
    struct address address;
    struct loop loop;
    struct links *links;
    struct link_counts counts;
    uint32_t link; /* 0 while it is down */
    struct caster caster;
    bool by_link;    /* strobes go by the link, as from a node's manager; else past it */
    uint64_t number; /* of the last strobe */
    uint32_t turned; /* answers */
    struct message_turned answer;
    struct rehearsal_gang gangs[REHEARSAL_GANGS]; /* by number */
};

/* 0 or -errno; with the reason on stderr. Then there is nothing to end. */
int rehearsal_begin(struct rehearsal *r, const char *storm_pl, enum confine confine);
void rehearsal_end(struct rehearsal *r);

/* Starts so many processes of a program; `arguments` each with a zero byte behind it. */
int rehearsal_launch(struct rehearsal *r, uint32_t gang, uint64_t slots, uint32_t processes,
                     const char *program, struct bytes arguments);
void rehearsal_command(struct rehearsal *r, uint32_t gang, enum verb verb, uint32_t value);
void rehearsal_slots(struct rehearsal *r, uint32_t gang, uint64_t slots);
/* When it was sent. */
uint64_t rehearsal_turn(struct rehearsal *r, uint8_t slot, uint32_t quantum_us, bool tell);
/* The same, and these slots take turns from then on by themselves. */
uint64_t rehearsal_cycle(struct rehearsal *r, uint8_t slot, uint32_t quantum_us, uint64_t cycle,
                         bool tell);

/* Hears what there is, waiting at most so long. */
void rehearsal_listen(struct rehearsal *r, int timeout_ms);

/* SPDX-License-Identifier: MIT */
/* What the hosts of `storm exec` say, and how that is shown.
 *
 * Line by line as it comes, behind the host's name; or at the end: hosts whose output is the same together, or all of it
 * as JSON. What went wrong is told at once for a host that cannot be reached, and at the end for what its command has
 * ended with. */
#pragma once

#include "cli/roll.h"
#include "client/sink.h"
#include "spread/frame.h"
#include "spread/hop.h"

/* Words of a host, fit for a terminal: free() them. NULL: no memory. */
char *voices_words(struct bytes from);

enum voices_manner { VOICES_LINES, VOICES_PLAIN, VOICES_GATHER, VOICES_JSON };

struct voice;

struct voices {
    const struct roll *roll;
    enum voices_manner manner;
    bool quiet; /* failures show in the status only */
    struct sink out, err;
    struct voice *each;
    uint32_t reached, over, failed;
    int unwritten; /* -errno of JSON; 0: all is */
};

/* 0 or -ENOMEM. */
int voices_init(struct voices *v, const struct roll *roll, struct loop *loop,
                enum voices_manner manner);
void voices_fini(struct voices *v);

/* A frame that came up. */
void voices_take(struct voices *v, const struct frame *f);
/* More than one should keep waits for whoever reads us. */
bool voices_full(const struct voices *v);
/* At the end of every turn. */
void voices_settle(struct voices *v);
bool voices_waiting(const struct voices *v);

/* Output was lost: -errno; 0: none, or nobody wants it. */
int voices_error(const struct voices *v);

/* Hosts that were reached and are not over, folded: free() it. */
char *voices_at_work(const struct voices *v, uint32_t *ret_count);

/* Everything is over: shows what was kept for the end. */
void voices_finish(struct voices *v);
/* That of the command: the highest of all; 124: one took too long; 125: one was not reached, or was lost. */
int voices_status(const struct voices *v);

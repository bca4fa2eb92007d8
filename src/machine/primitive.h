/* SPDX-License-Identifier: MIT */
/* What a daemon may ask of the primitives, and what it hears back.
 *
 * The three primitives of the STORM paper (section 2.4.1), split-phase: a request carries the
 * caller's tag, its completion arrives later as an input with the same tag. Reading a variable or
 * an event counter is local and immediate (struct globals). The set and the body of a request are
 * borrowed for the step in which it is made. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/nodeset.h"

#define NO_EVENT    UINT32_MAX
#define NO_VARIABLE UINT32_MAX
#define NO_NODE     UINT32_MAX
#define NO_CHANNEL  UINT32_MAX

enum relation { RELATION_GE, RELATION_LT, RELATION_EQ, RELATION_NE, RELATIONS };

enum primitive_kind {
    PRIMITIVE_XFER,    /* XFER-AND-SIGNAL with a small body */
    PRIMITIVE_COMPARE, /* COMPARE-AND-WRITE; without the write when write_variable is NO_VARIABLE */
    PRIMITIVE_STANDING, /* the same, answered when the condition has become true */
    PRIMITIVE_BULK,     /* XFER-AND-SIGNAL of a large block, by slots */
    PRIMITIVE_STROBE,   /* latest value wins, never answered */
    PRIMITIVE_SET,      /* local: store into one's own copy of a variable */
    PRIMITIVE_RECORD,   /* local: what this node answers when the channel is gathered */
    PRIMITIVE_GATHER,   /* at the acting root: the records of a set, answered by INPUT_GATHERED */
    PRIMITIVE_MAIL, /* a message to nodes below, or upwards; may be lost when a link breaks, never answered */
    PRIMITIVE_VOTE, /* local: what the daemon says to an operation that asks it */
    PRIMITIVE_KINDS
};

/* Where mail goes. Below: to every node of `set` that can be reached now. */
enum mail_way { MAIL_DOWN, MAIL_PARENT, MAIL_ROOT, MAIL_WAYS };

/* One request. Fields that a kind does not use are ignored. */
struct primitive {
    enum primitive_kind kind;
    uint64_t tag; /* returned with the completion */
    const struct nodeset *set;
    uint64_t timeout_ns; /* from now; then an undecided operation is aborted */

    uint32_t heap_offset; /* XFER, BULK: where the data goes on every node */
    struct bytes body;    /* XFER, STROBE, RECORD */
    uint32_t remote_event;
    uint32_t local_event;
    bool hint; /* XFER: tell the daemons when it is prepared, before it is decided */
    bool ask;  /* XFER: and wait for the VOTE of each; one that refuses makes it fail */

    uint32_t variable; /* COMPARE, STANDING, SET */
    enum relation relation;
    uint64_t value; /* compared with; stored by SET */
    uint32_t write_variable;
    uint64_t write_value;
    uint64_t order; /* VOTE: on which; `value` 1: it shall not be */

    uint32_t channel; /* STROBE, RECORD, GATHER (NO_CHANNEL: only who is there) */

    uint32_t buffer; /* BULK: the world's buffer that holds the block */
    uint64_t buffer_bytes;

    enum mail_way way; /* MAIL; `body` is the body of a message of this type, which says the lane */
    uint16_t type;
};

enum outcome {
    OUTCOME_DONE,    /* data everywhere; or the condition held (and the write is everywhere) */
    OUTCOME_FALSE,   /* COMPARE: the condition did not hold on every node */
    OUTCOME_FAILED,  /* nothing was written anywhere; culprit names the node if one is known */
    OUTCOME_REFUSED, /* never ordered: a limit is reached or a node of the set is not up */
    OUTCOME_UNKNOWN, /* the manager cannot be asked now; a final outcome follows, unless fenced */
    OUTCOME_LOST,    /* this node was fenced meanwhile: what became of it will not be known here */
    OUTCOMES
};

struct completion {
    uint64_t tag;
    enum outcome outcome;
    uint32_t culprit; /* the node to blame, or NO_NODE */
    uint64_t order;   /* place in the total order, 0 if it never had one */
};

/* A node's record among those gathered. As bytes: u32 node, u16 length, the record. */
struct reply {
    uint32_t node;
    struct bytes record;
};

enum { REPLY_HEAD_BYTES = 6 };

/* Length written; there must be room. */
size_t reply_store(struct room out, const struct reply *r);

/* The reply at *at, which moves on; false at the end, or where the bytes are no reply. */
bool reply_next(struct bytes replies, size_t *at, struct reply *ret);

/* Global memory as one node sees it: read-only for the daemon, changed by the primitives. */
struct globals {
    const uint64_t *variables;
    const uint64_t *events; /* how often each was signalled */
};

bool relation_holds(enum relation relation, uint64_t left, uint64_t right);
const char *outcome_name(enum outcome outcome);

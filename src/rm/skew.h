/* SPDX-License-Identifier: MIT */
/* How far apart nodes switch, and how long after the strobe: from what they answer.
 *
 * Answers to one strobe belong together; those of a former one that come late are passed over. Times are compared as they are, so the
 * nodes' clocks must be one, as on one machine; between machines a difference of clocks would show as skew. */
#pragma once

#include "machine/machine.h"
#include "wire/message.h"

enum { SKEW_KEPT = 128 };

/* Of one strobe. */
struct skew_sample {
    uint64_t number;
    uint32_t nodes;             /* that have answered */
    uint64_t first_ns, last_ns; /* after it was sent */
    uint32_t slowest;           /* the node that was last */
    uint32_t took_ns;           /* the longest switch, on a node by itself */
};

struct skew {
    struct skew_sample now;             /* answers may still come */
    struct skew_sample kept[SKEW_KEPT]; /* the last ones, a ring */
    uint64_t count;                     /* that were ever kept */
    uint64_t missed;                    /* strobes, by nodes, in all */
    uint32_t
        unprompt; /* a node whose launcher has no real-time priority, NO_NODE if none has said so */
    uint32_t unwhole; /* a node that switches by stopping, the same */
};

void skew_init(struct skew *s);
void skew_heard(struct skew *s, uint32_t node, const struct message_turned *m);

/* Over the strobes that are kept: the skew, and from sending until the last node had switched; of 100. */
struct skew_sum {
    uint32_t samples;
    uint64_t skew_ns, reach_ns;
};
void skew_percentile(const struct skew *s, uint32_t percent, struct skew_sum *ret);

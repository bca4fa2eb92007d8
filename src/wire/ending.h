/* SPDX-License-Identifier: MIT */
/* How a run ended on one node, as messages and the log have it. */
#pragma once

#include "wire/codec.h"

/* How a run ended on one node; the worst of its processes stands for them. */
enum cause {
    CAUSE_EXITED,  /* value: the highest status */
    CAUSE_KILLED,  /* value: the signal */
    CAUSE_FAILED,  /* could not be started; value: errno, step: where */
    CAUSE_LOST,    /* the launcher died, and the processes with it */
    CAUSE_UNKNOWN, /* this node has never had it */
    CAUSE_MEMORY,  /* killed for using more than it may; value: the limit, in MEMORY_UNITs */
    CAUSES
};

struct ending {
    uint32_t node;
    uint8_t cause;
    uint8_t step;
    bool ours;     /* some were ended by STORM, which does not count */
    bool more;     /* it is not over here: this one has ended badly, others go on */
    bool loose;    /* memory is not limited here as was asked for */
    uint32_t rank; /* of that process */
    uint32_t value;
    uint32_t bad;    /* processes that did not end with status 0 */
    uint64_t output; /* bytes that all its processes wrote, to both streams */
    struct usage usage;
};

/* FIXED: what the log keeps of one, without the usage. */
enum { ENDING_FIXED_BYTES = 27, ENDING_BYTES = ENDING_FIXED_BYTES + USAGE_BYTES };

void ending_store(uint8_t out[ENDING_BYTES], const struct ending *e);
bool ending_load(struct ending *ret, struct bytes ends, uint32_t index);
void ending_fixed_store(uint8_t out[ENDING_FIXED_BYTES], const struct ending *e);
bool ending_fixed_load(struct ending *ret, struct bytes ending);

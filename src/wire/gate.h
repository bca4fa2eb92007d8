/* SPDX-License-Identifier: MIT */
/* The gate: what a frame must be before anyone looks at its body.
 *
 * Both worlds pass every frame through it. A refusal is counted by reason and closes the link,
 * except for a duplicate, which is dropped, and for nothing else is anything disturbed. A gap in
 * the sequence means the link lost something: it closes, and the ends attach anew. */
#pragma once

#include <stdint.h>

#include "machine/machine.h"
#include "wire/header.h"

enum refusal {
    REFUSAL_NONE,
    REFUSAL_TRUNCATED, /* the link ended inside a frame */
    REFUSAL_MAGIC,
    REFUSAL_VERSION,
    REFUSAL_TYPE, /* no such message */
    REFUSAL_ROLE, /* this sender may not send it */
    REFUSAL_LANE,
    REFUSAL_SIZE,      /* larger than the table or our limits allow */
    REFUSAL_SENDER,    /* not the node, or not the life, that opened the link */
    REFUSAL_GAP,       /* frames are missing */
    REFUSAL_DUPLICATE, /* seen before */
    REFUSAL_BODY,      /* fields do not decode */
    REFUSAL_EPOCH,     /* of a former epoch: dropped */
    REFUSAL_LIFE,      /* of a former incarnation: dropped */
    REFUSAL_SEAL, /* does not hold the key of whom it says it is, or says nothing of the kind */
    REFUSALS
};

/* The receiving end of one link. */
struct gate {
    uint32_t node; /* of the peer */
    uint32_t life;
    enum role role;
    uint32_t next[LANES]; /* sequence expected next, from 1 */
};

void gate_init(struct gate *g, uint32_t node, uint32_t life, enum role role);

/* Judges a header; advances the sequence when it returns REFUSAL_NONE. */
enum refusal gate_check(struct gate *g, const struct header *h, uint32_t max_bytes);

const char *refusal_name(enum refusal r);

/* SPDX-License-Identifier: MIT */
/* A process of a simulated run that talks to the machine manager: it says where it is reached, and asks for its own job and
 * its family, again and again, as long as it lives. What it hears must be the answer to what it asked last, and that once. */
#pragma once

#include "machine/machine.h"

struct caller {
    uint64_t run; /* 0: it does not talk */
    bool opened, open;
    bool gone;    /* its process is */
    bool wanted;  /* a frame is */
    bool anew;    /* it is to say that it begins anew */
    bool unsaid;  /* its question is */
    bool reached; /* it has said, in this conversation, where it is reached */
    uint64_t asked, answered;
    uint64_t next_at; /* the next question */
    uint8_t frame[128];
};

void caller_begin(struct caller *c, uint64_t run, uint64_t now);
/* Its process has ended. */
void caller_end(struct caller *c);
void caller_carry(struct caller *c, const struct effect *e, uint64_t now);

/* Is there something to tell? And when will there be, by itself; UINT64_MAX: never, or there is. */
bool caller_due(const struct caller *c, uint64_t now);
uint64_t caller_wakes(const struct caller *c, uint64_t now);
bool caller_tell(struct caller *c, uint32_t group, uint64_t now, struct input *ret);

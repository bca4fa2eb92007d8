/* SPDX-License-Identifier: MIT */
/* The workers of storm work, as jobs of one process each: they start as processors come free, so there are as many of them
 * as the cluster has room for just now. Where nodes are other machines their program is sent there, by this command. */
#pragma once

#include "cli/contact.h"

struct pilot {
    uint32_t job;
    uint8_t state; /* enum job_state */
};

struct pilots {
    struct contact *contact;
    /* What they are to be; set by the owner before the first is asked for. */
    const char *name, *need, *on, *exclude;
    const char *setting; /* of their environment */
    uint32_t most;
    bool sent; /* their program goes to the nodes first */

    struct order *order; /* if it does: the request, with what it gives */
    struct pilot *at;
    uint32_t count; /* that were accepted */
    uint32_t over;  /* of them */
    uint32_t asked; /* of the request under way; 0: there is none */
    struct contact_answer answer;
    bool full;         /* the cluster took no more */
    uint64_t waits_at; /* when to say what they wait for; 0: not any more */
    char trouble[600]; /* why one has failed, or was refused; "": none has */
};

/* Sees to it that there are so many, or as many as there may be. 0, or the exit status after a complaint. */
int pilots_want(struct pilots *p, uint64_t wanted);
/* After each turn of the loop: what has become of the request. */
void pilots_settle(struct pilots *p);
/* For the session's callbacks. */
void pilots_news(struct pilots *p, const struct message_news *n);

uint32_t pilots_running(const struct pilots *p);
/* All there were, or could be, are over. */
bool pilots_gone(const struct pilots *p);

/* Ends those that are not over, and waits until they are, but not for long. `leaving`: those that run have been told to end,
 * and may have a moment for it. */
void pilots_end(struct pilots *p, bool leaving);
/* Before the loop ends. */
void pilots_fini(struct pilots *p);

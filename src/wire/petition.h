/* SPDX-License-Identifier: MIT */
/* The messages that carry what programs say to the machine manager, and what they hear; of the table in message.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/* What a program says as if it were a client. Of a conversation the launcher counts what goes up, and the root what
 * goes down; both tell how much they have heard. */
struct message_petition {
    uint64_t run;
    uint32_t rank;     /* that the program says to have */
    uint32_t number;   /* of the conversation, never given before in this run on its node */
    uint32_t sequence; /* of this frame, from 1 on; type NONE: of the last that was said */
    uint32_t heard;    /* sequence of the last REPLY that was passed on */
    bool over;         /* type NONE: nothing more will be said or heard */
    uint16_t type;     /* of the message inside; MESSAGE_NONE: there is none */
    struct bytes body;
};

struct message_reply {
    uint64_t run;      /* 0: all conversations of this node begin anew */
    uint32_t number;   /* of the conversation */
    uint32_t sequence; /* as in PETITION */
    uint32_t heard;    /* sequence of the last PETITION */
    bool reset;        /* type NONE: something was lost; the program begins anew */
    uint16_t type;
    struct bytes body;
};

/* A program's process: so others of its family reach me (wire/peer.h). It is known as long as its conversation goes on. */
struct message_reach {
    uint64_t token[2]; /* who knows it is let in */
    uint64_t door;     /* of the same node: the name of a Unix socket */
    uint64_t ip[2];    /* of others: as IPv6 has it, the bytes in order */
    uint16_t port;     /* 0: nobody of another node comes in */
};

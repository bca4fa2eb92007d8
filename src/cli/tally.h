/* SPDX-License-Identifier: MIT */
/* What a copy came to: how much was given, and when it had got how far, as the command that gave it saw it.
 *
 * These are the stages of a file distribution's time: looked over, connected, taken on by the machine manager, the first
 * node has come, it gets its first piece, the last piece has left, all nodes have it under its name. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include "wire/message.h"

enum tally_stage {
    TALLY_LOOKED,
    TALLY_CONNECTED,
    TALLY_ACCEPTED,
    TALLY_MET,
    TALLY_FIRST,
    TALLY_LAST,
    TALLY_DONE,
    TALLY_STAGES
};

/* What one mover gave, and got, which way. */
struct tally_mover {
    char name[32];
    uint64_t put_fabric, put_stream, came_fabric, came_stream;
    bool silent;   /* it did not say */
    char why[200]; /* it used streams though a fabric was asked for; "": it did not */
};

struct tally {
    uint32_t nodes, pieces;
    uint64_t bytes; /* of the bundle */
    uint64_t read;  /* of files, to look them over; what was known of them is not read */
    uint64_t given; /* by this command, to all who take from it */
    char shape[32];
    char fabric[FABRIC_NAME_MAX + 1]; /* "": streams */
    struct tally_mover *movers;       /* of all who took part, if they were asked */
    uint32_t mover_count;
    uint32_t switches,
        crossed; /* that nodes hang on, and the way's links between them; 0: not known */
    uint64_t began_ns;
    uint64_t at_ns[TALLY_STAGES]; /* 0: it did not happen */
};

const char *tally_word(enum tally_stage stage); /* for people */
const char *tally_name(enum tally_stage stage); /* in JSON */

/* Since the beginning, never before the stage before: what did not happen took no time. */
uint64_t tally_since(const struct tally *t, enum tally_stage stage);

/* NULL: it did not say. */
void tally_mover_set(struct tally_mover *v, const struct message_counted *m);

void tally_print(const struct tally *t, FILE *out);
/* An object on a line; `tally_read` reads it again, 0 or -EBADMSG. */
void tally_json(const struct tally *t, FILE *out);
int tally_read(struct tally *t, const char *text);

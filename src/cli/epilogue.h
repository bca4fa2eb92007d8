/* SPDX-License-Identifier: MIT */
/* How a job ended, in a line for people. */
#pragma once

#include <stdio.h>

#include "client/cluster.h"
#include "wire/message.h"

struct epilogue {
    const char *program; /* as it was typed, NULL: not known */
    const char *folder;
    uint64_t limit_ns; /* 0: not known */
    bool verbose;      /* a nonzero status too */
    bool loose_told;   /* epilogue_loose has said what there is to say */
};

/* If a node does not limit memory as was asked for: says so. */
void epilogue_loose(FILE *out, const struct cluster *c, const struct message_news *n);

/* Says what a job that is over has used, if that is known. */
void epilogue_usage(FILE *out, const struct cluster *c, const struct message_news *n);

/* Writes what is to be said of a job that is over; nothing if it ended as programs do. */
void epilogue_write(FILE *out, const struct cluster *c, const struct message_news *n,
                    const struct epilogue *v);

/* The same, to standard error. */
void epilogue_print(const struct cluster *c, const struct message_news *n,
                    const struct epilogue *v);

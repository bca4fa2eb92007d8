/* SPDX-License-Identifier: MIT */
/* The lines of a file, plain or compressed by gzip, one after the other to whoever understands them.
 *
 * A line that is not understood is told of with its number and passed over, or, strictly, ends the reading. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { LINES_WHY_MAX = 120 };

struct lines {
    const char *path; /* "-": standard input */
    const char *command;
    bool strict;
    /* 0; -EINVAL: the line is malformed, and `why` says in words how; -ENOMEM. */
    int (*take)(void *context, struct bytes line, char why[LINES_WHY_MAX]);
    void *context;
    uint64_t count, malformed; /* so far */
};

/* 0, or the exit status after a complaint. */
int lines_read(struct lines *l);

/* SPDX-License-Identifier: MIT */
/* How storm work shows what has become of a line: what it has written, as text or as JSON, and a log for the record. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "wodi/chore.h"

struct showing {
    bool json;
    FILE *log;    /* NULL: none */
    int error;    /* what could not be written: -errno */
    uint64_t cut; /* lines that had more output than was kept */
};

/* Opens the log, behind what is in it already. 0 or -errno. */
int showing_open_log(struct showing *e, const char *path);

/* The log has lines as they end, whatever the order of the output. */
void showing_log(struct showing *e, uint64_t seq, const char *command,
                 const struct chore_result *r);
void showing_show(struct showing *e, uint64_t seq, const char *command,
                  const struct chore_result *r);
/* All that was shown has left. 0 or -errno. */
int showing_flush(struct showing *e);
int showing_close(struct showing *e);

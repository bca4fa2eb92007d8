/* SPDX-License-Identifier: MIT */
/* What became of each line of storm work, so that it can be gone on with.
 *
 * A file that only grows: a line was sent, it has ended and its output is held, its output was shown. What is held lies there
 * and not in memory: one slow line keeps the output of all that follow it waiting. Records gather until workbook_flush; what was
 * flushed survives the death of this command. The file may end in the middle of a record, which is then cut off. */
#pragma once

#include <stdbool.h>

#include "client/wodi_side.h"

enum workbook_state { WORKBOOK_UNKNOWN, WORKBOOK_SENT, WORKBOOK_HELD, WORKBOOK_SHOWN };

struct workbook_line {
    uint64_t hash;  /* of the command line */
    uint64_t place; /* HELD: where it is in the file */
    char *command;  /* until its output was shown; NULL: not sent in this life */
    uint32_t len;   /* HELD: of its result */
    uint16_t tries; /* so often it was sent again */
    uint8_t state;  /* enum workbook_state */
    bool failed;    /* it has, in the end */
    bool early;     /* it had ended before its line was read, in this life */
};

struct workbook {
    int fd;
    uint64_t end; /* of the file, with what has gathered */
    struct wodi_bytes out;
    struct workbook_line *lines; /* by number, from 1 */
    uint64_t count, cap;
};

/* Reads what there is; `again`: lines that have failed are forgotten. 0 or -errno; -EBUSY: another command has it open. */
int workbook_open(struct workbook *b, int folder, bool again);
void workbook_close(struct workbook *b);

/* The line of this number, new if need be; valid until the next call. NULL: no memory. */
struct workbook_line *workbook_line(struct workbook *b, uint64_t number);

/* -ESTALE: in a former life that was another line; -ENOMEM. */
int workbook_sent(struct workbook *b, uint64_t number, const char *command);
/* It has ended: a result as the worker has sent it. 0 or -ENOMEM. */
int workbook_hold(struct workbook *b, uint64_t number, bool failed, struct bytes result);
int workbook_shown(struct workbook *b, uint64_t number, bool failed);
/* The result that was held, and is written; free() it. NULL: it cannot be read. */
uint8_t *workbook_held(struct workbook *b, uint64_t number, size_t *ret_len);

/* It is in the file already: it can be read without a flush. */
bool workbook_is_written(struct workbook *b, uint64_t number);
/* So much has gathered that it should be flushed. */
bool workbook_is_full(const struct workbook *b);
/* 0 or -errno. */
int workbook_flush(struct workbook *b);

/* SPDX-License-Identifier: MIT */
/* Command lines as work steps: what storm work says to its workers, and what they answer.
 *
 * The setting is what every worker is told at the beginning, the command line alone is the step, and the result says how it
 * has ended and what it has written. Reading is total. */
#pragma once

#include <stdbool.h>

#include "base/bytes.h"

/* Where commands run, and in which environment: strings NAME=VALUE, each with its NUL. */
struct chore_setting {
    uint64_t limit_ns; /* each may take so long; 0: as long as it likes */
    struct bytes folder;
    struct bytes environment;
};

enum chore_end {
    CHORE_EXITED,    /* value: the code */
    CHORE_SIGNALLED, /* value: the signal */
    CHORE_LATE,      /* it has taken too long */
    CHORE_ENDS
};

struct chore_result {
    uint8_t end; /* enum chore_end */
    uint32_t value;
    uint64_t began_ns; /* the calendar's */
    uint64_t ns;
    uint64_t cut; /* bytes of output that were not kept */
    struct bytes node;
    struct bytes out, err;
};

/* Numbers of steps: the line, and above it how often it was sent before. */
#define CHORE_LINE_MASK (((uint64_t)1 << 40) - 1)
#define CHORE_TRY_ONE   ((uint64_t)1 << 40)

/* What a result has room for beside the output. */
enum { CHORE_HEAD_MAX = 512, CHORE_NODE_MAX = 255 };

/* 0: no room. */
size_t chore_setting_write(const struct chore_setting *s, struct room out);
bool chore_setting_read(struct chore_setting *s, struct bytes in);
size_t chore_result_write(const struct chore_result *r, struct room out);
bool chore_result_read(struct chore_result *r, struct bytes in);

/* As a shell tells it: the code, 128 and the signal's number, 124 if it has taken too long. */
uint32_t chore_status(const struct chore_result *r);

/* The words of a line that means the same with a shell and without, cut in place; NULL stands behind the last. 0: it needs
 * one, or has more than `most` words; then the line is untouched. */
int chore_words(char *line, char **words, int most);

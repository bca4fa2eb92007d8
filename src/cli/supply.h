/* SPDX-License-Identifier: MIT */
/* Where the command lines of storm work come from: a stream of lines, or values in all combinations, with or without a
 * command that they are put into.
 *
 *     storm work < list                  lines are commands
 *     storm work -f list gzip            lines are values
 *     storm work cp {} {//}/old/ ::: a b     values are words
 *     storm work echo ::: 1 2 :::: file     every word with every line of the file */
#pragma once

#include "cli/template.h"

struct supply_list {
    char *text; /* of a file; NULL: words that were typed */
    struct bytes *at;
    uint64_t count;
};

struct supply {
    char separator;
    char *command; /* what values are put into; NULL: they are commands */
    uint64_t seq;  /* the last that was given */
    /* a stream; -1: lists */
    int fd;
    bool ended;
    char *buffer;
    size_t from, len, cap;
    /* lists */
    struct supply_list lists[TEMPLATE_VALUES_MAX];
    uint32_t list_count;
    uint64_t given, total; /* combinations */
};

/* `words`: behind the options, NULL behind the last; `file` to read from, NULL: standard input, "-" too. 0, or the exit status
 * after a complaint. supply_fini is needed in any case. */
int supply_open(struct supply *s, const char *what, char **words, const char *file, char separator);
void supply_fini(struct supply *s);

/* The next command line, to be freed: 1. 0: more has to be read first; -ENODATA: that was all; -ENOMEM. */
int supply_next(struct supply *s, char **ret);

/* Reads once from the stream, which may block. 0 or -errno. */
int supply_read(struct supply *s);

/* How many there are in all, 0: that is not known yet. */
uint64_t supply_total(const struct supply *s);

/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with a text that somebody has written, and where.
 *
 * Readers of texts fill it in; commands show it. Columns are counted in bytes and from 0 here, but from 1 wherever
 * people see them, as compilers do.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum {
    MISTAKE_WORDS_MAX = 320, /* with the NUL */
    MISTAKE_WIDTH = 76       /* of the line that is shown: more is cut off on either side */
};

struct mistake {
    uint32_t line;   /* from 1; 0: the text is one line */
    uint32_t column; /* from 0; the length of the line if something is missing at its end */
    uint32_t length; /* of what is wrong, at least 1 */
    char words[MISTAKE_WORDS_MAX];
};

/* Notes the place; the words are to be written to the text that is given back. */
struct text mistake_at(struct mistake *m, size_t column, size_t length);

/* A piece of somebody's text in quotes: short, and without anything that a terminal would obey. */
void mistake_quote(struct text *t, const char *at, size_t len);

/* "; did you mean NIC?", or nothing if there is no such name. */
void mistake_suggest(struct text *t, const char *name);

/* "nodespec:3:25: there is no ..."; without a name: "column 12: ...". As all that format: with a NUL, cut to `cap`;
 * the length of the whole. */
size_t mistake_format(const struct mistake *m, const char *name, char *buf, size_t cap);

/*
 * Three lines for a terminal, the last without its end: the same, the line of the text, and what marks the place. `text` is all of the text, as
 * it was read.
 */
size_t mistake_show(const struct mistake *m, const char *name, const char *text, char *buf,
                    size_t cap);

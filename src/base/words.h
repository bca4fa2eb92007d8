/* SPDX-License-Identifier: MIT */
/* A line cut into words, as a shell would: quotes of either kind keep a word together, and nothing else has a meaning. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* In place; NULL stands behind the last word, so `words` has room for `most` + 1. How many there are; -E2BIG: more than
 * `most`; -EINVAL: a quote is not closed. */
int words_split(char *line, char **words, int most);

/* The same, and where in the line each word began. If a quote is not closed, its word is the last one. */
int words_split_where(char *line, char **words, uint32_t *where, int most);

/* Cuts the line where a comment begins: at a # where a word could, as a shell has it. */
void words_cut_comment(char *line);

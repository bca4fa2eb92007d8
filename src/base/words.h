/* SPDX-License-Identifier: MIT */
/* A line cut into words, as a shell would: quotes of either kind keep a word together, and nothing else has a meaning. */
#pragma once

#include <stdbool.h>

/* In place; NULL stands behind the last word, so `words` has room for `most` + 1. How many there are; -E2BIG: more than
 * `most`; -EINVAL: a quote is not closed. */
int words_split(char *line, char **words, int most);

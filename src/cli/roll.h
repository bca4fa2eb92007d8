/* SPDX-License-Identifier: MIT */
/* Hosts as a user names them, each once.
 *
 *     h[0-31],gate,@FILE
 *
 * A file has host lists, one in a line, perhaps followed by switch=NAME; what follows a # is a comment. */
#pragma once

#include <stdint.h>

struct roll {
    uint32_t count;
    char **names;
    uint16_t *crates; /* its switch: 0 is one that is not known */
    char **switches;  /* their names, from 1 on */
    uint32_t switch_count;
};

/* Those of `hosts` that are not of `except` (NULL: none). 0, or the exit status after a complaint by `who`. */
int roll_read(struct roll *r, const char *who, const char *hosts, const char *except);
void roll_free(struct roll *r);

/* Some of the names, by number, folded: free() it. NULL if there is no memory. */
char *roll_fold(const struct roll *r, const uint32_t *which, uint32_t count);

/* SPDX-License-Identifier: MIT */
/* A line cut into words: see words.h. */
#include "base/words.h"

#include <errno.h>
#include <string.h>

static bool is_blank(char c) {
    return c != '\0' && strchr(" \t\r\n\v\f", c) != NULL;
}

/* The word at *in, without its quotes, to *out: what is written never passes what was read. */
static int take(char **in, char **out) {
    char quote = '\0', *at = *in;
    for (; *at != '\0' && (quote != '\0' || !is_blank(*at)); at++) {
        if (quote == '\0' && (*at == '"' || *at == '\''))
            quote = *at;
        else if (*at == quote)
            quote = '\0';
        else
            *(*out)++ = *at;
    }
    if (*at != '\0')
        at++;
    *(*out)++ = '\0';
    *in = at;
    return quote == '\0' ? 0 : -EINVAL;
}

int words_split_where(char *line, char **words, uint32_t *where, int most) {
    char *in = line, *out = line;
    for (int count = 0;; count++) {
        while (is_blank(*in))
            in++;
        words[count] = NULL;
        if (*in == '\0')
            return count;
        if (count == most)
            return -E2BIG;
        words[count] = out;
        words[count + 1] = NULL;
        if (where != NULL)
            where[count] = (uint32_t)(in - line);
        if (take(&in, &out) < 0)
            return -EINVAL;
    }
}

int words_split(char *line, char **words, int most) {
    return words_split_where(line, words, NULL, most);
}

void words_cut_comment(char *line) {
    char quote = '\0';
    bool between = true; /* words */
    for (char *at = line; *at != '\0'; at++) {
        if (quote == '\0' && between && *at == '#') {
            *at = '\0';
            return;
        }
        if (quote == '\0' && (*at == '"' || *at == '\''))
            quote = *at;
        else if (*at == quote)
            quote = '\0';
        between = quote == '\0' && is_blank(*at);
    }
}

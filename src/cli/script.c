/* SPDX-License-Identifier: MIT */
/* Options in a script: see script.h. */
#include "cli/script.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "cli/complain.h"

enum { SCRIPT_BYTES = 64 * 1024, WORDS_MAX = 64 };

static const char mark[] = "#STORM";

static int read_line(char *line, const char *path, unsigned number, const struct option *table) {
    char *words[WORDS_MAX + 1], place[256];
    const char *slash = strrchr(path, '/');
    snprintf(place, sizeof place, "%.200s:%u", slash != NULL ? slash + 1 : path, number);
    words[0] = place;
    int count = words_split(line, words + 1, WORDS_MAX - 1);
    if (count < 0)
        return complain(place, count == -E2BIG ? "more than %d words" : "a quote is not closed",
                        WORDS_MAX - 1);
    int r = options_parse(table, count + 1, words);
    if (r == OPTIONS_HELP || r > 0)
        return complain(place, "only options may stand behind #STORM");
    return r < 0 ? STATUS_USAGE : 0;
}

static int read_lines(char *text, const char *path, const struct option *table) {
    unsigned number = 1;
    for (char *next; text != NULL; text = next, number++) {
        next = strchr(text, '\n');
        if (next != NULL)
            *next++ = '\0';
        size_t blank = strspn(text, " \t\r");
        if (text[blank] == '\0')
            continue;
        if (text[0] != '#')
            return 0; /* the commands begin */
        if (strncmp(text, mark, sizeof mark - 1) != 0 || !isblank(text[sizeof mark - 1]))
            continue;
        int r = read_line(text + sizeof mark, path, number, table);
        if (r != 0)
            return r;
    }
    return 0;
}

int script_options(struct script *s, const char *path, const struct option *table) {
    FILE *f = fopen(path, "re");
    s->text = NULL;
    if (f == NULL)
        return 0;
    s->text = malloc(SCRIPT_BYTES);
    size_t len = s->text == NULL ? 0 : fread(s->text, 1, SCRIPT_BYTES - 1, f);
    fclose(f);
    if (len < 2 || strncmp(s->text, "#!", 2) != 0)
        return 0;
    s->text[len] = '\0';
    return read_lines(s->text, path, table);
}

void script_fini(struct script *s) {
    free(s->text);
    s->text = NULL;
}

/* SPDX-License-Identifier: MIT */
/* The programs of a job as they were typed: `-n 1 ./master : -n 31 ./worker`, or each on a line of a file.
 *
 * A word that is only a colon ends a part, unless "--" stood before the part's program: then all that follows is that
 * program's. A part has a size (-n, -N, --size), --need, -D and --env of its own; other options before the first program are
 * the whole job's. In a file a line is a part, and a colon nothing special. */
#pragma once

#include "cli/options.h"

enum { PARTS_MAX = 4096, PART_PLACE_MAX = 320 };

struct part {
    const char *procs; /* -n; NULL: one process */
    const char *nodes, *size, *need;
    const char *chdir; /* NULL: as the job */
    struct text_list env;
    char **argv;      /* the program and its arguments; NULL ends them */
    const char *file; /* NULL: it was typed */
    uint32_t line;
    char **words; /* of the line, as they stand there */
    uint32_t *where;
};

/* More than one, or from a file; otherwise none. */
struct parts {
    uint32_t count;
    struct part *at;
    char *text; /* of the file */
};

/* Whether `argv`, a program with arguments, holds more than one. */
bool parts_several(char *const *argv);

/* Takes `argv` apart, which is a program of so many words with its arguments, perhaps more programs. The first has
 * what `own` says. 0, or the exit status after a complaint that begins with `command`. parts_fini is needed in any
 * case. */
int parts_split(struct parts *p, const char *command, const struct part *own, int count,
                char **argv);

/* Reads them from a file. */
int parts_load(struct parts *p, const char *path);

void parts_fini(struct parts *p);

/* What a complaint about a word of it begins with: "FILE:LINE:COLUMN", or `command` if it was typed. */
const char *part_place(const struct part *p, const char *word, const char *command,
                       char out[PART_PLACE_MAX]);

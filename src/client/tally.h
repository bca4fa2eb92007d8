/* SPDX-License-Identifier: MIT */
/* How far the output of a run has been written to files, kept in a file of its own.
 *
 * Whoever writes output for others may die at any moment. What it has acknowledged is gone elsewhere, so
 * the next life must know it: which bytes of each stream are in the files, and how long the files were then.
 * What was written after that is cut off and comes again. A note is one write, at the end of the file;
 * one that is not whole counts for nothing. */
#pragma once

#include <stdint.h>

struct tally;

struct tally_note {
    uint64_t run;
    uint32_t stream;
    uint32_t check; /* filled in */
    uint64_t taken; /* bytes of the stream */
    uint64_t size;  /* of its file, then */
};

/* Opens it, or makes it. NULL and errno. */
struct tally *tally_open(const char *path);
void tally_close(struct tally *t);

/* Adds a note, then all that were added become part of the file at once. 0 or -errno. */
int tally_add(struct tally *t, const struct tally_note *n);
int tally_commit(struct tally *t);

/* What former lives have noted of a run, in order. */
void tally_each(const struct tally *t, uint64_t run,
                void (*note)(void *context, const struct tally_note *n), void *context);

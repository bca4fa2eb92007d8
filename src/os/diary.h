/* SPDX-License-Identifier: MIT */
/* What a mover does, and when: for benches that show where time goes.
 *
 * It is kept only where somebody has laid a file for it, so that otherwise nothing is asked of the clock. A line a
 * deed: its name, its beginning and end by the machine's monotonic clock, and what it was about. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum diary_deed {
    DIARY_OPEN,   /* a bundle was opened */
    DIARY_LINK,   /* a link was asked for, and came up */
    DIARY_PAGE,   /* a page was looked up in the depot */
    DIARY_CAME,   /* a piece had come */
    DIARY_STORE,  /* it was judged and written */
    DIARY_LOAD,   /* a piece was made ready to be sent */
    DIARY_SEND,   /* it was sent: from when it was handed over until the socket had taken it */
    DIARY_COMMIT, /* modes, times, names */
    /* What a command notes of itself. */
    DIARY_SURVEY,  /* files were looked over */
    DIARY_SUBMIT,  /* until the manager had it */
    DIARY_LAUNCH,  /* files sent, until all processes ran */
    DIARY_EXECUTE, /* until the last had ended */
    DIARY_REPORT,  /* until the command knew, and ended */
    DIARY_DEEDS
};

struct diary_note {
    enum diary_deed deed;
    uint64_t from_ns, to_ns;
    uint64_t what; /* a piece, a page, the node at the other end of a link */
};

struct diary {
    FILE *out; /* NULL: none is kept */
};

/* Keeps one if the file is there: it is not made. */
void diary_open(struct diary *d, const char *path);
void diary_close(struct diary *d);

/* Now, if one is kept; otherwise 0. */
uint64_t diary_now(const struct diary *d);
void diary_note(struct diary *d, enum diary_deed deed, uint64_t from_ns, uint64_t to_ns,
                uint64_t what);
/* Others may read it as far as it is now. */
void diary_flush(struct diary *d);

/* The next note; false at the end, or if it is none. */
bool diary_read(FILE *in, struct diary_note *ret);

/* SPDX-License-Identifier: MIT */
/* What was found out about files, kept so that they need not be read again: a folder with a small file for
 * each, named by its device and inode.
 *
 * What is in it is believed if its own digest is right and size and times of the file are what they were. A ledger
 * that cannot be used is an empty one; nobody has to know. Several processes may use one. */
#pragma once

#include "os/pieces.h"
#include "os/walk.h"

/* Files that are kept, those used last; others are worth reading again. */
enum { LEDGER_FILES_MAX = 256, LEDGER_FILE_BYTES_MIN = 256 << 10 };

struct ledger {
    int folder;        /* -1: there is none */
    bool sums;         /* who asks wants to know files by their sums, too */
    uint32_t asked;    /* for how many files */
    uint32_t kept;     /* since it was opened */
    int64_t opened_ns; /* when, by the clock of files */
};

/* `path` NULL: none. */
void ledger_open(struct ledger *l, const char *path);
/* What is too much goes. */
void ledger_close(struct ledger *l);

/* If the file is known as it is, gives it its sum, which may be unknown if nobody wants that, and adds its rows to the pieces. */
bool ledger_find(struct ledger *l, struct found *f, struct pieces *p);
/* The rows from this one on are those of the file, which was read after the ledger was opened. Nothing is kept
 * of files so small that reading is as fast, nor of those that were changed so shortly before that
 * another change might not show in their times. */
void ledger_keep(struct ledger *l, const struct found *f, const struct pieces *p, uint32_t from);

/* SPDX-License-Identifier: MIT */
/* --debug: some processes of a job are started by a debugger, the others as always.
 *
 * One process is debugged as if there were no others: it has what is typed, and our terminal if there is one. Several
 * cannot share a terminal: each has a window where there are windows, or else waits for somebody to connect (gdb), or
 * simply writes lines behind its rank. */
#pragma once

#include "base/bytes.h"
#include "wire/ranks.h"

struct order;
struct wish;

enum { DEBUGGER_BYTES = 4096, DEBUGGER_WORDS = 64 };

struct debugging {
    bool windows; /* each has one of its own */
    bool served;  /* each waits for a debugger that is elsewhere */
    uint8_t ranks[RANKS_BYTES_MAX];
    char strings[3 * DEBUGGER_BYTES];
};

/* Which ranks, and who has the terminal; when the size is known, before input and output are looked at. 0, or the exit
 * status after a complaint. */
int debugging_ranks(struct order *o, struct wish *w);

/* What starts them; when the environment is known. The same. */
int debugging_command(struct order *o, const struct wish *w);

/* Words for the debugger that stand before the program's name, "" if there are none: "--args". */
const char *debugging_bridge(const char *debugger);

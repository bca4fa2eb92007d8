/* SPDX-License-Identifier: MIT */
/* A program of whoever looks after the machine, run when a node goes down or comes back.
 *
 * It hears of it from the notes of the machine manager, as the log does: "node n[3,5] down" becomes
 * PROGRAM 'n[3,5]' down. Nobody waits for it; what it prints goes where our complaints go. */
#pragma once

#include "base/bytes.h"

/* Ends of hooks need not be asked for: call once before the first. */
void hook_prepare(void);

/* Starts the program if the note is about a node. 1 if it was started, 0, or -errno. */
int hook_call(const char *program, struct bytes note);

/* SPDX-License-Identifier: MIT */
/* The first steps of a process that was forked to live on its own: it keeps nothing of its parent's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Ends with its parent, whose number it knew before the fork. Exits if the parent is gone already. */
void child_follow(pid_t parent);

enum { CHILD_LAST_SIGNAL = 64 };

/* Whether a signal is ignored, and the default for it. The library keeps two signals to itself and
 * hides them from everybody; whoever started us may have ignored them all the same, and what we
 * start would inherit that. So both ask the kernel. */
bool child_ignores(int signal);
void child_default(int signal);

/* What the parent does with signals is the parent's affair, except for those of a program's own
 * mistakes: a sanitizer wants to tell of them. SIGPIPE is ignored. */
void child_forget_signals(void);

/* Closes this descriptor and all higher ones: one that leaked would hide the end of somebody else's
 * link. */
void child_close_from(unsigned int first);

/* Puts `fd` at the place `at`, close-on-exec or not; -1: nothing is there afterwards. */
void child_place(int fd, int at, int flags);

/* A descriptor from which a key can be read, 16 bytes, once: for a program that is executed next. */
int child_secret(const uint64_t key[2]);

/* As many descriptors as are allowed: a root may hold a link to every node. Returns how many that were before; what is executed next
 * may count on that (child_set_files), as programs that use select() do. */
uint64_t child_raise_limits(void);
/* So many; 0: as it is. */
void child_set_files(uint64_t files);

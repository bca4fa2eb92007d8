/* SPDX-License-Identifier: MIT */
/* The little language that tells a process in a test what to do.
 *
 * The words are its arguments after the first (the program's name), done one after the other; at the end it
 * exits with 0. The model kernel (sim/kernel.h) plays them in virtual time, the program tests/actor.c
 * in the real world.
 *
 *     run T          takes so long ("5ms", "1s"); "run 1ms-20ms" takes any time between (the model draws)
 *     hang           goes on for ever
 *     write N        N bytes to the standard output, act_byte each
 *     error N        the same to the standard error
 *     read N         so many bytes from the standard input, or until its end
 *     cat            copies its input to its output until the end of the input
 *     exit N         ends with this status
 *     signal N       ends by this signal
 *     ignore-term    from now on SIGTERM does nothing
 *     catch-term N   from now on SIGTERM makes it exit with this status
 *     rank N         the next word is for the process of this rank only
 *     fork           a child of it goes on for ever; it does the rest itself
 *     fork-away      a grandchild in a session of its own does the rest; it exits with 0 itself
 *
 * A program named /none is not there, one named /none-on-1 is not there for rank 1; one named /etc/passwd may not be executed. A folder named /none
 * is not there either. */
#pragma once

#include "base/bytes.h"

enum act_kind {
    ACT_RUN,
    ACT_HANG,
    ACT_WRITE,
    ACT_ERROR,
    ACT_READ,
    ACT_CAT,
    ACT_EXIT,
    ACT_SIGNAL,
    ACT_IGNORE_TERM,
    ACT_CATCH_TERM,
    ACT_RANK,
    ACT_FORK,
    ACT_FORK_AWAY,
    ACT_KINDS
};

struct act {
    enum act_kind kind;
    uint64_t number;    /* bytes, status, signal */
    uint64_t low, high; /* RUN, ns */
};

/* The next of a list of strings (wire/spec.h), at *at, which moves on: 1, 0 at the end, or -EINVAL. */
int act_next(struct bytes words, size_t *at, struct act *ret);

/* What is written at this place of a stream. */
static inline uint8_t act_byte(uint64_t offset) {
    return offset % 64 == 63 ? '\n' : (uint8_t)('a' + offset % 26);
}

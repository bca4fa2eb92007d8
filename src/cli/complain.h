/* SPDX-License-Identifier: MIT */
/* How the storm command says that something is wrong: one line on stderr.
 *
 *     storm: what: why; what to do */
#pragma once

/* Exit statuses of the storm command. */
enum {
    STATUS_OK = 0,
    STATUS_FAILED = 1,
    STATUS_USAGE = 2,
    STATUS_STORM = 125,     /* we could not: no cluster, a request refused, a node lost */
    STATUS_NOT_RUN = 126,   /* the program cannot be executed */
    STATUS_NOT_FOUND = 127, /* there is no such program */
    STATUS_SIGNAL = 128     /* and the signal's number */
};

/* `what` may be NULL. Returns STATUS_USAGE, for the common case. */
__attribute__((format(printf, 2, 3))) int complain(const char *what, const char *format, ...);

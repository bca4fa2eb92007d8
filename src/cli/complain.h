/* SPDX-License-Identifier: MIT */
/* How the storm command says that something is wrong: one line on stderr.
 *
 *     storm: what: why; what to do */
#pragma once

/* Exit statuses of the storm command. */
enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

/* `what` may be NULL. Returns STATUS_USAGE, for the common case. */
__attribute__((format(printf, 2, 3))) int complain(const char *what, const char *format, ...);

/* SPDX-License-Identifier: MIT */
/* One line on stderr: see complain.h. */
#include "cli/complain.h"

#include <stdarg.h>
#include <stdio.h>

int complain(const char *what, const char *format, ...) {
    va_list args;
    fflush(stdout);
    fputs("storm: ", stderr);
    if (what != NULL)
        fprintf(stderr, "%s: ", what);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return STATUS_USAGE;
}

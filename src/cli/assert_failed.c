/* SPDX-License-Identifier: MIT */
/*
 * What every executable does when an ASSERT fails: say where and die with a core dump.
 *
 * Logic declares the function in base/assert.h but may not print, so the body lives up here. The
 * same file is linked into the storm command, the unit tests and the fuzz targets.
 */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void assert_failed(const char *expr, const char *file, int line) {
    fflush(stdout);
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, expr);
    abort();
}

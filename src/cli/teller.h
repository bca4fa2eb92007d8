/* SPDX-License-Identifier: MIT */
/* Tells a story line by line, each with its time, and counts what was checked on the way. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct teller {
    FILE *out;
    uint32_t checks;
    uint32_t failed;
};

void teller_chapter(const struct teller *t, const char *words);
void teller_line(const struct teller *t, uint64_t ns, const char *format, va_list args);
/* A line that says what was checked, and whether it holds. Returns that. */
bool teller_check(struct teller *t, uint64_t ns, bool holds, const char *format, va_list args);

/* The last line. Returns an exit status. */
int teller_conclude(const struct teller *t);

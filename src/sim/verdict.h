/* SPDX-License-Identifier: MIT */
/* What the checker found wrong, in words.
 *
 * Keeps the first few sentences and counts the rest. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { VERDICT_LINES = 24, VERDICT_LINE_BYTES = 240 };

struct verdict {
    uint32_t count;
    char lines[VERDICT_LINES][VERDICT_LINE_BYTES];
};

/* Adds a violation; `rule` is a short name that tests and people can look for. */
__attribute__((format(printf, 3, 4))) void verdict_add(struct verdict *v, const char *rule,
                                                       const char *format, ...);

/* Is there a sentence of this rule among those kept? */
bool verdict_has(const struct verdict *v, const char *rule);

void verdict_print(const struct verdict *v, uint32_t max, FILE *out);

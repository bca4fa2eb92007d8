/* SPDX-License-Identifier: MIT */
/* What the checker found wrong: see verdict.h.
 *
 * Each kept line begins with its rule and a colon. */
#include "sim/verdict.h"

#include <stdarg.h>
#include <string.h>

void verdict_add(struct verdict *v, const char *rule, const char *format, ...) {
    if (v->count++ >= VERDICT_LINES)
        return;
    char *line = v->lines[v->count - 1];
    int used = snprintf(line, VERDICT_LINE_BYTES, "%s: ", rule);
    if (used < 0 || used >= VERDICT_LINE_BYTES)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(line + used, (size_t)(VERDICT_LINE_BYTES - used), format, args);
    va_end(args);
}

bool verdict_has(const struct verdict *v, const char *rule) {
    size_t len = strlen(rule);
    for (uint32_t i = 0; i < v->count && i < VERDICT_LINES; i++)
        if (strncmp(v->lines[i], rule, len) == 0 && v->lines[i][len] == ':')
            return true;
    return false;
}

void verdict_print(const struct verdict *v, uint32_t max, FILE *out) {
    for (uint32_t i = 0; i < v->count && i < VERDICT_LINES && i < max; i++)
        fprintf(out, "  %s\n", v->lines[i]);
    if (v->count > max)
        fprintf(out, "  ... %u in all\n", (unsigned)v->count);
}

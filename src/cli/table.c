/* SPDX-License-Identifier: MIT */
/* A table of texts: see table.h. */
#include "cli/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cli/terminal.h"

static char *cell(const struct table *t, uint32_t row, uint32_t column) {
    return t->cells[(size_t)row * t->columns + column];
}

static void add_row(struct table *t) {
    if (t->rows == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 32;
        t->cells = realloc(t->cells, (size_t)t->cap * t->columns * sizeof *t->cells);
        ASSERT(t->cells != NULL);
    }
    for (uint32_t i = 0; i < t->columns; i++)
        cell(t, t->rows, i)[0] = '\0';
    t->rows++;
    t->at = 0;
}

void table_init(struct table *t, const char *const *titles) {
    *t = (struct table){0};
    while (titles[t->columns] != NULL)
        t->columns++;
    ASSERT(t->columns <= TABLE_COLUMNS_MAX);
    t->at = t->columns;
    for (uint32_t i = 0; i < t->columns; i++) {
        t->right[i] = titles[i][0] == '>';
        table_cell(t, "%s", titles[i] + t->right[i]);
    }
}

void table_fini(struct table *t) {
    free(t->cells);
    t->cells = NULL;
}

/* What others have named may hold anything: a terminal gets only what can be shown. */
static void make_plain(char *text) {
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

void table_cell(struct table *t, const char *format, ...) {
    va_list args;
    if (t->at == t->columns)
        add_row(t);
    char *at = cell(t, t->rows - 1, t->at++);
    va_start(args, format);
    vsnprintf(at, TABLE_CELL_MAX, format, args);
    va_end(args);
    make_plain(at);
}

void table_print(const struct table *t, FILE *out) {
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    for (uint32_t r = 0; r < t->rows; r++)
        for (uint32_t c = 0; c < t->columns; c++)
            if (strlen(cell(t, r, c)) > widths[c])
                widths[c] = strlen(cell(t, r, c));
    for (uint32_t r = 0; r < t->rows; r++) {
        fputs(r == 0 ? terminal_tint(out, TINT_HEAD) : "", out);
        for (uint32_t c = 0; c < t->columns; c++) {
            int width = (int)widths[c];
            bool last = c + 1 == t->columns;
            if (t->right[c])
                fprintf(out, "%*s", width, cell(t, r, c));
            else
                fprintf(out, "%-*s", last ? 0 : width, cell(t, r, c));
            fputs(last ? "" : "  ", out);
        }
        fputs(r == 0 ? terminal_tint(out, TINT_NONE) : "", out);
        fputc('\n', out);
    }
}

/* SPDX-License-Identifier: MIT */
/* A table of texts: see table.h. */
#include "cli/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cli/terminal.h"

/* Those of the last row that were not given yet are empty. */
static const char *cell(const struct table *t, uint32_t row, uint32_t column) {
    const char *text = t->cells[(size_t)row * t->columns + column];
    return text != NULL ? text : "";
}

static void add_row(struct table *t) {
    if (t->rows == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 32;
        t->cells = realloc(t->cells, (size_t)t->cap * t->columns * sizeof *t->cells);
        ASSERT(t->cells != NULL);
    }
    memset(t->cells + (size_t)t->rows * t->columns, 0, t->columns * sizeof *t->cells);
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
    for (size_t i = 0; i < (size_t)t->rows * t->columns; i++)
        free(t->cells[i]);
    free(t->cells);
    t->cells = NULL;
    t->rows = 0;
}

/* What others have named may hold anything: a terminal gets only what can be shown. */
static void make_plain(char *text) {
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

void table_whole(struct table *t, const char *text) {
    char *copy = strdup(text);
    ASSERT(copy != NULL);
    make_plain(copy);
    if (t->at == t->columns)
        add_row(t);
    t->cells[(size_t)(t->rows - 1) * t->columns + t->at++] = copy;
}

void table_cell(struct table *t, const char *format, ...) {
    char text[TABLE_CELL_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    table_whole(t, text);
}

static size_t width_of(const struct table *t, uint32_t column) {
    size_t width = 0;
    for (uint32_t r = 0; r < t->rows; r++) {
        size_t len = strlen(cell(t, r, column));
        width = len < TABLE_CELL_MAX && len > width ? len : width;
    }
    return width;
}

void table_print(const struct table *t, FILE *out) {
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    for (uint32_t c = 0; c < t->columns; c++)
        widths[c] = width_of(t, c);
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

/* SPDX-License-Identifier: MIT */
/* A table of texts, as wide as its cells need. A whole text that is wider than any other cell can be moves the rest of its
 * row, and no other row. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { TABLE_COLUMNS_MAX = 16, TABLE_CELL_MAX = 96 };

struct table {
    uint32_t columns;
    uint32_t rows, cap; /* the first row is the head */
    uint32_t at;        /* the next cell of the last row */
    bool right[TABLE_COLUMNS_MAX];
    char **cells;
};

/* Titles, NULL at the end; one that begins with '>' is for a column of numbers. */
void table_init(struct table *t, const char *const *titles);
void table_fini(struct table *t);

/* The next cell; what is too long is cut. A row ends with its last cell. */
__attribute__((format(printf, 2, 3))) void table_cell(struct table *t, const char *format, ...);
/* The next cell, which is never cut. */
void table_whole(struct table *t, const char *text);

void table_print(const struct table *t, FILE *out);

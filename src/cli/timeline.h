/* SPDX-License-Identifier: MIT */
/* Draws what happened when, as SVG: a row for each thing that was done, a bar for each time that it was. */
#pragma once

#include <stdint.h>
#include <stdio.h>

enum { TIMELINE_ROWS_MAX = 32 };

struct timeline_span {
    uint64_t from_ns, to_ns;
};

struct timeline_row {
    char name[40];
    char words[64]; /* behind its name: how much it was */
    uint32_t colour;
    struct timeline_span *spans;
    uint32_t count, cap;
};

struct timeline {
    const char *title, *subtitle;
    uint64_t from_ns, to_ns; /* what is shown */
    uint32_t count;
    struct timeline_row rows[TIMELINE_ROWS_MAX];
};

/* A new row; NULL if there are too many. */
struct timeline_row *timeline_add(struct timeline *t, uint32_t colour, const char *name);
void timeline_span(struct timeline_row *r, uint64_t from_ns, uint64_t to_ns);
void timeline_fini(struct timeline *t);

/* 0, or -EIO if the file cannot be written. */
int timeline_write(const struct timeline *t, FILE *out);

/* SPDX-License-Identifier: MIT */
/* Writes a plot as SVG: lines over a logarithmic axis of node counts.
 *
 * Self-contained, readable on light and on dark ground, no scripts. The vertical axis is
 * logarithmic if the values span much, else it begins at zero. Coordinates are whole hundredths of
 * a pixel, so the same numbers give the same file everywhere. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/svg.h"

enum { PLOT_SERIES_MAX = 16, PLOT_POINTS_MAX = 64, PLOT_COLOURS = SVG_COLOURS };

struct plot_point {
    uint64_t x; /* at least 1 */
    uint64_t y; /* at least 1 */
};

struct plot_series {
    char name[48];
    uint32_t colour; /* below PLOT_COLOURS */
    bool dashed;
    uint32_t count;
    struct plot_point points[PLOT_POINTS_MAX];
};

struct plot {
    const char *title;
    const char *subtitle;
    const char *x_words;
    const char *y_words;
    /* The text of a tick on the vertical axis. */
    void (*label)(uint64_t value, char *buf, size_t cap);
    uint32_t count;
    struct plot_series series[PLOT_SERIES_MAX];
};

/* A new series without points, NULL if there are too many. */
struct plot_series *plot_add(struct plot *p, uint32_t colour, bool dashed);
void plot_point(struct plot_series *s, uint64_t x, uint64_t y);

/* There must be a point. Returns 0, or -EIO if the file cannot be written. */
int plot_write(const struct plot *p, FILE *out);

/* Labels for times in nanoseconds and rates in bytes a second. */
void plot_label_time(uint64_t ns, char *buf, size_t cap);
void plot_label_rate(uint64_t bytes_per_s, char *buf, size_t cap);

/* SPDX-License-Identifier: MIT */
/* Pictures as SVG: self-contained, readable on light and on dark ground, no scripts.
 *
 * Coordinates are whole hundredths of a pixel, so the same numbers give the same file everywhere. Classes: `title`,
 * `words`, `tick`, `name` for texts (`y`: ends there, `mid`: its middle is there), `grid` and `axis` for lines, `cN` for
 * lines and `dN` for areas of colour N. */
#pragma once

#include <stdint.h>
#include <stdio.h>

enum { SVG_COLOURS = 8 };

/* In pixels. */
void svg_begin(FILE *out, int width, int height, const char *label);
/* 0, or -EIO if it could not be written. */
int svg_end(FILE *out);

void svg_number(FILE *out, const char *before, int32_t at);
void svg_text(FILE *out, const char *class, int32_t x, int32_t y, const char *words);
void svg_line(FILE *out, const char *class, int32_t x1, int32_t y1, int32_t x2, int32_t y2);
/* Filled with this colour. */
void svg_rect(FILE *out, int colour, int32_t x, int32_t y, int32_t width, int32_t height);

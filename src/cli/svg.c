/* SPDX-License-Identifier: MIT */
/* Pictures as SVG: see svg.h. */
#include "cli/svg.h"

#include <errno.h>

void svg_number(FILE *out, const char *before, int32_t at) {
    fprintf(out, "%s%d.%02d", before, at / 100, at % 100);
}

void svg_text(FILE *out, const char *class, int32_t x, int32_t y, const char *words) {
    fprintf(out, "<text class=\"%s\"", class);
    svg_number(out, " x=\"", x);
    svg_number(out, "\" y=\"", y);
    fputs("\">", out);
    for (; *words; words++) {
        if (*words == '<')
            fputs("&lt;", out);
        else if (*words == '&')
            fputs("&amp;", out);
        else
            fputc(*words, out);
    }
    fputs("</text>\n", out);
}

void svg_line(FILE *out, const char *class, int32_t x1, int32_t y1, int32_t x2, int32_t y2) {
    fprintf(out, "<line class=\"%s\"", class);
    svg_number(out, " x1=\"", x1);
    svg_number(out, "\" y1=\"", y1);
    svg_number(out, "\" x2=\"", x2);
    svg_number(out, "\" y2=\"", y2);
    fputs("\"/>\n", out);
}

void svg_rect(FILE *out, int colour, int32_t x, int32_t y, int32_t width, int32_t height) {
    fprintf(out, "<rect class=\"d%d\"", colour);
    svg_number(out, " x=\"", x);
    svg_number(out, "\" y=\"", y);
    svg_number(out, "\" width=\"", width);
    svg_number(out, "\" height=\"", height);
    fputs("\"/>\n", out);
}

/* Colours of everything that has no colour of its own, then those of the series. */
static void colours(const char *ground, const char *ink, const char *faint, const char *grid,
                    const char *const *series, FILE *out) {
    fprintf(out,
            ".ground { fill: %s; }\ntext { fill: %s; }\n.words, .tick { fill: %s; }\n"
            ".grid { stroke: %s; }\n.axis { stroke: %s; }\n",
            ground, ink, faint, grid, faint);
    for (int i = 0; i < SVG_COLOURS; i++)
        fprintf(out, ".c%d { stroke: %s; } .d%d { fill: %s; }\n", i, series[i], i, series[i]);
}

void svg_begin(FILE *out, int width, int height, const char *label) {
    static const char *const light[SVG_COLOURS] = {"#1d6fd8", "#d9730d", "#0f9d76", "#c0366b",
                                                   "#7a52cc", "#8a6d00", "#3a8fa3", "#6b7280"};
    static const char *const dark[SVG_COLOURS] = {"#6db1ff", "#ffab52", "#3fdcab", "#ff7fae",
                                                  "#b79cff", "#e3c84a", "#7fd4e6", "#a3abb8"};
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n<style>\n"
            "text { font: 13px \"DejaVu Sans\", Verdana, sans-serif; }\n"
            ".title { font-size: 17px; font-weight: bold; }\n"
            ".y { text-anchor: end; }\n.mid { text-anchor: middle; }\n"
            ".grid, .axis { stroke-width: 1; }\n"
            ".line { fill: none; stroke-width: 2.2; stroke-linejoin: round; }\n"
            ".dash { stroke-dasharray: 5 4; }\n",
            width, height, width, height, label);
    colours("#ffffff", "#1f2430", "#5b6472", "#e4e7ec", light, out);
    fputs("@media (prefers-color-scheme: dark) {\n", out);
    colours("#14171f", "#e6e9ef", "#a0a9b8", "#2a2f3a", dark, out);
    fprintf(out, "}\n</style>\n<rect class=\"ground\" width=\"%d\" height=\"%d\"/>\n", width,
            height);
}

int svg_end(FILE *out) {
    fputs("</svg>\n", out);
    return fflush(out) == 0 && !ferror(out) ? 0 : -EIO;
}

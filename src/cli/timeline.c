/* SPDX-License-Identifier: MIT */
/* Draws what happened when: see timeline.h. */
#include "cli/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cli/plot.h"
#include "cli/svg.h"

/* Layout, in pixels. A bar is never too thin to be seen. */
enum { WIDTH = 960, LEFT = 270, RIGHT = 24, TOP = 70, BOTTOM = 44, ROW = 24, BAR = 14 };
enum { THIN = 60, TICKS = 8 }; /* hundredths of a pixel */

struct timeline_row *timeline_add(struct timeline *t, uint32_t colour, const char *name) {
    if (t->count == TIMELINE_ROWS_MAX)
        return NULL;
    struct timeline_row *r = &t->rows[t->count++];
    *r = (struct timeline_row){.colour = colour % SVG_COLOURS};
    snprintf(r->name, sizeof r->name, "%s", name);
    return r;
}

void timeline_span(struct timeline_row *r, uint64_t from_ns, uint64_t to_ns) {
    if (r->count == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 64;
        r->spans = realloc(r->spans, r->cap * sizeof *r->spans);
        ASSERT(r->spans != NULL);
    }
    r->spans[r->count++] = (struct timeline_span){from_ns, to_ns};
}

void timeline_fini(struct timeline *t) {
    for (uint32_t i = 0; i < t->count; i++)
        free(t->rows[i].spans);
    t->count = 0;
}

static int32_t place(const struct timeline *t, uint64_t ns) {
    uint64_t span = t->to_ns > t->from_ns ? t->to_ns - t->from_ns : 1;
    uint64_t at = ns < t->from_ns ? 0 : ns - t->from_ns;
    at = at < span ? at : span;
    return LEFT * 100 + (int32_t)(at * (WIDTH - LEFT - RIGHT) * 100 / span);
}

/* 1, 2 or 5 and zeros: so that there are about as many ticks as fit. */
static uint64_t tick_step(uint64_t span) {
    uint64_t unit = 1;
    while (unit <= span / TICKS / 10)
        unit *= 10;
    return span / unit <= TICKS ? unit : span / unit / 2 <= TICKS ? 2 * unit : 5 * unit;
}

static void draw_axis(const struct timeline *t, int32_t bottom, FILE *out) {
    uint64_t span = t->to_ns - t->from_ns, step = tick_step(span);
    for (uint64_t at = 0; at <= span; at += step) {
        char text[24];
        int32_t x = place(t, t->from_ns + at);
        plot_label_time(at, text, sizeof text);
        svg_line(out, "grid", x, TOP * 100, x, bottom);
        svg_text(out, "tick mid", x, bottom + 1900, at == 0 ? "0" : text);
    }
    svg_line(out, "axis", LEFT * 100, bottom, (WIDTH - RIGHT) * 100, bottom);
}

static void draw_row(const struct timeline *t, const struct timeline_row *r, int32_t top,
                     FILE *out) {
    svg_text(out, "name", 1600, top + 1500, r->name);
    svg_text(out, "tick y", (LEFT - 10) * 100, top + 1500, r->words);
    for (uint32_t i = 0; i < r->count; i++) {
        int32_t x = place(t, r->spans[i].from_ns), width = place(t, r->spans[i].to_ns) - x;
        fprintf(out, "<rect class=\"d%u\"", r->colour);
        svg_number(out, " x=\"", x);
        svg_number(out, "\" y=\"", top + (ROW - BAR) * 50);
        svg_number(out, "\" width=\"", width < THIN ? THIN : width);
        svg_number(out, "\" height=\"", BAR * 100);
        fputs("\"/>\n", out);
    }
}

int timeline_write(const struct timeline *t, FILE *out) {
    int height = TOP + (int)t->count * ROW + BOTTOM;
    int32_t bottom = (TOP + (int32_t)t->count * ROW) * 100;
    svg_begin(out, WIDTH, height, t->title);
    svg_text(out, "title", 1600, 2800, t->title);
    svg_text(out, "words", 1600, 4900, t->subtitle);
    draw_axis(t, bottom, out);
    for (uint32_t i = 0; i < t->count; i++)
        draw_row(t, &t->rows[i], (TOP + (int32_t)i * ROW) * 100, out);
    return svg_end(out);
}

/* SPDX-License-Identifier: MIT */
/* Writes a plot as SVG: see plot.h. */
#include "cli/plot.h"

#include <inttypes.h>

#include "base/assert.h"
#include "base/log2.h"
#include "base/units.h"
#include "cli/svg.h"

/* Layout, in pixels. */
enum { WIDTH = 890, HEIGHT = 500, LEFT = 96, RIGHT = 256, TOP = 70, BOTTOM = 58 };
/* The vertical axis is logarithmic if values span that factor; more octaves get fewer ticks. */
enum { LOG_FROM = 8, MANY_OCTAVES = 12 };

struct axis {
    uint64_t low, high; /* values at both ends */
    bool log;
    int32_t from, to; /* where these are, in hundredths of a pixel */
};

struct plot_series *plot_add(struct plot *p, uint32_t colour, bool dashed) {
    if (p->count == PLOT_SERIES_MAX)
        return NULL;
    struct plot_series *s = &p->series[p->count++];
    *s = (struct plot_series){.colour = colour % PLOT_COLOURS, .dashed = dashed};
    return s;
}

void plot_point(struct plot_series *s, uint64_t x, uint64_t y) {
    if (s->count < PLOT_POINTS_MAX)
        s->points[s->count++] = (struct plot_point){.x = x > 0 ? x : 1, .y = y > 0 ? y : 1};
}

/* ---- axes ---- */

static int32_t place(const struct axis *a, uint64_t value) {
    uint64_t low = a->log ? log2_fixed(a->low) : a->low;
    uint64_t high = a->log ? log2_fixed(a->high) : a->high;
    uint64_t at = a->log ? log2_fixed(value) : value;
    int64_t span = high > low ? (int64_t)(high - low) : 1;
    return a->from + (int32_t)((int64_t)(at - low) * (a->to - a->from) / span);
}

/* The next round number: 1, 2 or 5 and zeros. */
static uint64_t round_after(uint64_t value) {
    uint64_t unit = 1;
    while (unit <= value / 10)
        unit *= 10;
    static const uint64_t steps[] = {1, 2, 5, 10};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (steps[i] * unit > value)
            return steps[i] * unit;
    return 20 * unit;
}

static uint64_t round_before(uint64_t value) {
    uint64_t before = 1;
    for (uint64_t next = 1; next <= value; next = round_after(next))
        before = next;
    return before;
}

static void find_axes(const struct plot *p, struct axis *x, struct axis *y) {
    *x = (struct axis){.low = UINT64_MAX, .log = true, .from = LEFT * 100};
    *y = (struct axis){.low = UINT64_MAX, .from = (HEIGHT - BOTTOM) * 100, .to = TOP * 100};
    x->to = (WIDTH - RIGHT) * 100;
    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t k = 0; k < p->series[i].count; k++) {
            const struct plot_point *at = &p->series[i].points[k];
            x->low = at->x < x->low ? at->x : x->low;
            x->high = at->x > x->high ? at->x : x->high;
            y->low = at->y < y->low ? at->y : y->low;
            y->high = at->y > y->high ? at->y : y->high;
        }
    ASSERT(x->high > 0);
    if (x->low == x->high)
        x->high = 2 * x->low;
    y->log = y->high / LOG_FROM >= y->low;
    y->low = y->log ? round_before(y->low) : 0;
    y->high = round_after(y->high - 1);
}

/* ---- drawing ---- */

static void draw_x(const struct plot *p, const struct axis *x, const struct axis *y, FILE *out) {
    uint64_t octaves = (log2_fixed(x->high) - log2_fixed(x->low)) / LOG2_ONE;
    uint64_t step = octaves > 8 ? 4 : 2;
    for (uint64_t at = x->low; at <= x->high; at *= step) {
        char text[24];
        int32_t px = place(x, at);
        snprintf(text, sizeof text, "%" PRIu64, at);
        svg_line(out, "grid", px, y->to, px, y->from);
        svg_text(out, "tick mid", px, y->from + 1900, text);
    }
    svg_line(out, "axis", x->from, y->from, x->to, y->from);
    svg_text(out, "words mid", (x->from + x->to) / 2, (HEIGHT - 14) * 100, p->x_words);
}

/* The tick after a value; 0 is before the first. Powers of ten if the axis spans much. */
static uint64_t tick_after(const struct axis *y, uint64_t value) {
    uint64_t octaves = y->log ? (log2_fixed(y->high) - log2_fixed(y->low)) / LOG2_ONE : 0;
    uint64_t fifth = y->high / 5 > 0 ? y->high / 5 : 1;
    if (!y->log)
        return value + fifth;
    if (octaves <= MANY_OCTAVES)
        return round_after(value);
    uint64_t power = 1;
    while (power <= value)
        power *= 10;
    return power;
}

static void draw_y(const struct plot *p, const struct axis *x, const struct axis *y, FILE *out) {
    for (uint64_t at = y->log ? tick_after(y, y->low - 1) : 0; at <= y->high;
         at = tick_after(y, at)) {
        char text[24];
        int32_t py = place(y, at);
        p->label(at, text, sizeof text);
        svg_line(out, "grid", x->from, py, x->to, py);
        svg_text(out, "tick y", x->from - 900, py + 450, text);
    }
    int32_t middle = (y->from + y->to) / 2;
    fputs("<g transform=\"rotate(-90", out);
    svg_number(out, " ", 1800);
    svg_number(out, " ", middle);
    fputs(")\">\n", out);
    svg_text(out, "words mid", 1800, middle, p->y_words);
    fputs("</g>\n", out);
}

static void draw_series(const struct plot_series *s, const struct axis *x, const struct axis *y,
                        FILE *out) {
    fprintf(out, "<polyline class=\"line c%u%s\" points=\"", s->colour, s->dashed ? " dash" : "");
    for (uint32_t i = 0; i < s->count; i++) {
        svg_number(out, i ? " " : "", place(x, s->points[i].x));
        svg_number(out, ",", place(y, s->points[i].y));
    }
    fputs("\"/>\n", out);
    for (uint32_t i = 0; i < s->count; i++) {
        fprintf(out, "<circle class=\"d%u\" r=\"%s\"", s->colour, s->dashed ? "2.2" : "3");
        svg_number(out, " cx=\"", place(x, s->points[i].x));
        svg_number(out, "\" cy=\"", place(y, s->points[i].y));
        fputs("\"/>\n", out);
    }
}

static void draw_legend(const struct plot *p, FILE *out) {
    int32_t x = (WIDTH - RIGHT + 18) * 100;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct plot_series *s = &p->series[i];
        char class[32];
        int32_t y = (TOP + 10 + 22 * (int32_t)i) * 100;
        snprintf(class, sizeof class, "line c%u%s", s->colour, s->dashed ? " dash" : "");
        svg_line(out, class, x, y, x + 2600, y);
        svg_text(out, "name", x + 3400, y + 450, s->name);
    }
}

int plot_write(const struct plot *p, FILE *out) {
    struct axis x, y;
    find_axes(p, &x, &y);
    svg_begin(out, WIDTH, HEIGHT, p->title);
    svg_text(out, "title", LEFT * 100, 2800, p->title);
    svg_text(out, "words", LEFT * 100, 4900, p->subtitle);
    draw_y(p, &x, &y, out);
    draw_x(p, &x, &y, out);
    for (uint32_t i = 0; i < p->count; i++)
        if (p->series[i].count > 0)
            draw_series(&p->series[i], &x, &y, out);
    draw_legend(p, out);
    return svg_end(out);
}

/* ---- labels ---- */

static void print_scaled(uint64_t value, uint64_t unit, const char *name, char *buf, size_t cap) {
    if (value % unit == 0)
        snprintf(buf, cap, "%" PRIu64 " %s", value / unit, name);
    else
        snprintf(buf, cap, "%" PRIu64 ".%" PRIu64 " %s", value / unit, value % unit * 10 / unit,
                 name);
}

void plot_label_time(uint64_t ns, char *buf, size_t cap) {
    if (ns >= NS_PER_S)
        print_scaled(ns, NS_PER_S, "s", buf, cap);
    else if (ns >= NS_PER_MS)
        print_scaled(ns, NS_PER_MS, "ms", buf, cap);
    else
        print_scaled(ns, NS_PER_US, "\u00b5s", buf, cap);
}

void plot_label_rate(uint64_t bytes_per_s, char *buf, size_t cap) {
    if (bytes_per_s >= (uint64_t)1000 * 1000)
        print_scaled(bytes_per_s, (uint64_t)1000 * 1000, "MB/s", buf, cap);
    else
        print_scaled(bytes_per_s, 1000, "KB/s", buf, cap);
}

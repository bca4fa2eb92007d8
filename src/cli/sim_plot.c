/* SPDX-License-Identifier: MIT */
/* storm sim: a picture of a schedule; see sim_plot.h. */
#include "cli/sim_plot.h"

#include <inttypes.h>
#include <string.h>

#include "cli/svg.h"
#include "sim/batch.h"

/* In hundredths of a pixel. */
enum {
    LEFT = 7000,
    TOP = 7000,
    CELL_X = 100,
    CELL_Y = 400,
    PANEL = 12000,
    GAP = 5000,
    WIDTH = LEFT + SIM_PLOT_COLUMNS * CELL_X + 3000,
    GANTT = SIM_PLOT_ROWS * CELL_Y,
    HEIGHT = TOP + GANTT + 2 * (GAP + PANEL) + 6000,
    DAY_S = 86400
};

void sim_plot_init(struct sim_plot *p, uint64_t begin, uint64_t end, uint32_t pes) {
    memset(p, 0, sizeof *p);
    p->begin = begin;
    p->end = end > begin ? end : begin + 1;
    p->pes = pes;
}

static double column_of(const struct sim_plot *p, uint64_t tick) {
    return (double)(tick - p->begin) * SIM_PLOT_COLUMNS / (double)(p->end - p->begin);
}

/* The first cell whose middle is not before `at`. */
static int cell_from(double at) {
    int cell = (int)at;
    return at - cell > 0.5 ? cell + 1 : cell;
}

void sim_plot_run(struct sim_plot *p, uint64_t job, uint64_t from, uint64_t to, uint32_t first,
                  uint32_t last) {
    double rows = (double)SIM_PLOT_ROWS / p->pes;
    int a = cell_from(column_of(p, from)), b = cell_from(column_of(p, to));
    int top = cell_from(first * rows), bottom = cell_from((last + 1) * rows);
    for (int row = top; row < bottom && row < SIM_PLOT_ROWS; row++)
        for (int i = a; i < b && i < SIM_PLOT_COLUMNS; i++)
            p->cells[row][i] = (uint8_t)(1 + job % SVG_COLOURS);
}

static void integrate(const struct sim_plot *p, double *columns, uint64_t from, uint64_t to,
                      double value) {
    double a = column_of(p, from), b = column_of(p, to);
    for (int i = (int)a; i < SIM_PLOT_COLUMNS && i < b; i++) {
        double low = i > a ? i : a, high = i + 1 < b ? i + 1 : b;
        columns[i] += value * (high - low);
    }
}

void sim_plot_used(struct sim_plot *p, uint64_t from, uint64_t to, double pes) {
    integrate(p, p->used, from, to, pes);
}

void sim_plot_waited(struct sim_plot *p, uint64_t from, uint64_t to) {
    integrate(p, p->queued, from, to, 1);
}

static void gantt(const struct sim_plot *p, FILE *out) {
    char words[32];
    for (int row = 0; row < SIM_PLOT_ROWS; row++)
        for (int i = 0, from; i < SIM_PLOT_COLUMNS; i++) {
            uint8_t colour = p->cells[row][from = i];
            while (i + 1 < SIM_PLOT_COLUMNS && p->cells[row][i + 1] == colour)
                i++;
            if (colour > 0)
                svg_rect(out, colour - 1, LEFT + from * CELL_X, TOP + row * CELL_Y,
                         (i + 1 - from) * CELL_X, CELL_Y);
        }
    svg_text(out, "tick y", LEFT - 800, TOP + 1000, "0");
    snprintf(words, sizeof words, "%" PRIu32, p->pes - 1);
    svg_text(out, "tick y", LEFT - 800, TOP + GANTT, words);
    svg_text(out, "words", LEFT, TOP - 900, "processors");
}

static void area(const double *values, double most, int32_t top, int colour, FILE *out) {
    fprintf(out, "<path class=\"d%d\" d=\"M", colour);
    svg_number(out, "", LEFT);
    svg_number(out, " ", top + PANEL);
    for (int i = 0; i < SIM_PLOT_COLUMNS; i++) {
        int32_t y = top + PANEL - (int32_t)(most > 0 ? values[i] / most * PANEL : 0);
        svg_number(out, "L", LEFT + i * CELL_X);
        svg_number(out, " ", y);
        svg_number(out, "H", LEFT + (i + 1) * CELL_X);
    }
    svg_number(out, "V", top + PANEL);
    fputs("Z\"/>\n", out);
}

static void panel(const char *words, const double *values, double most, int32_t top, int colour,
                  FILE *out) {
    char tick[32];
    area(values, most, top, colour, out);
    svg_line(out, "axis", LEFT, top + PANEL, LEFT + SIM_PLOT_COLUMNS * CELL_X, top + PANEL);
    svg_line(out, "grid", LEFT, top, LEFT + SIM_PLOT_COLUMNS * CELL_X, top);
    snprintf(tick, sizeof tick, "%.*f", most < 10 ? 1 : 0, most);
    svg_text(out, "tick y", LEFT - 800, top + 1000, tick);
    svg_text(out, "tick y", LEFT - 800, top + PANEL, "0");
    svg_text(out, "words", LEFT, top - 900, words);
}

static void time_axis(const struct sim_plot *p, FILE *out) {
    double seconds = (double)(p->end - p->begin) / (double)BATCH_TICKS;
    bool days = seconds > 3 * DAY_S;
    for (int i = 0; i <= 8; i++) {
        char words[48];
        double at = seconds * i / 8;
        snprintf(words, sizeof words, days ? "%.0f d" : "%.0f s", days ? at / DAY_S : at);
        svg_text(out, "tick mid", LEFT + i * SIM_PLOT_COLUMNS * CELL_X / 8, HEIGHT - 3500, words);
    }
    svg_text(out, "words mid", LEFT + SIM_PLOT_COLUMNS * CELL_X / 2, HEIGHT - 1200,
             "since the first submission");
}

int sim_plot_write(const struct sim_plot *p, const char *title, const char *words, FILE *out) {
    double most = 0;
    for (int i = 0; i < SIM_PLOT_COLUMNS; i++)
        most = p->queued[i] > most ? p->queued[i] : most;
    svg_begin(out, WIDTH / 100, HEIGHT / 100, "a schedule of jobs");
    svg_text(out, "title", LEFT, 2600, title);
    svg_text(out, "words", LEFT, 4500, words);
    gantt(p, out);
    panel("processors that run jobs", p->used, p->pes, TOP + GANTT + GAP, 0, out);
    panel("jobs that wait", p->queued, most, TOP + GANTT + 2 * GAP + PANEL, 1, out);
    time_axis(p, out);
    return svg_end(out);
}

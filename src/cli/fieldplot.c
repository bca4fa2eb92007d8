/* SPDX-License-Identifier: MIT */
/* The figures of the CARMI paper's section 4: see fieldplot.h. */
#include "cli/fieldplot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/units.h"
#include "cli/svg.h"

/* In hundredths of a pixel. */
enum {
    LEFT = 7000,
    TOP = 7000,
    WIDE = 66000,
    HIGH = 30000,
    RIGHT = 3000,
    BOTTOM = 6000,
    PIXEL = 100
};
enum { TICKS = 5, WORKERS_SHOWN = 30, ROW = 900, LOW_HIGH = 14000, GAP = 5000, DOT = 500 };
enum { BLUE, ORANGE, GREEN, RED };
#define MINUTE_NS (60 * NS_PER_S)

/* Where values lie: from 0 to these. */
struct frame {
    FILE *out;
    int32_t top, high;
    uint64_t x_most, y_most;
    uint64_t x_unit; /* of what ticks say; 0: 1 */
};

static int32_t at_x(const struct frame *f, uint64_t x) {
    return LEFT + (int32_t)(x * WIDE / f->x_most);
}

static int32_t at_y(const struct frame *f, uint64_t y) {
    return f->top + f->high - (int32_t)(y * (uint64_t)f->high / f->y_most);
}

static void axes(const struct frame *f, const char *x_words, const char *y_words) {
    char tick[24];
    int32_t end = f->top + f->high;
    for (uint64_t i = 0; i <= TICKS; i++) {
        int32_t y = at_y(f, f->y_most * i / TICKS), x = at_x(f, f->x_most * i / TICKS);
        svg_line(f->out, "grid", LEFT, y, LEFT + WIDE, y);
        snprintf(tick, sizeof tick, "%" PRIu64, f->y_most * i / TICKS);
        svg_text(f->out, "tick y", LEFT - 800, y + 400, tick);
        snprintf(tick, sizeof tick, "%" PRIu64,
                 f->x_most * i / TICKS / (f->x_unit ? f->x_unit : 1));
        svg_text(f->out, "tick mid", x, end + 2000, tick);
    }
    svg_line(f->out, "axis", LEFT, end, LEFT + WIDE, end);
    svg_text(f->out, "words", LEFT, f->top - 900, y_words);
    svg_text(f->out, "words mid", LEFT + WIDE / 2, end + 4200, x_words);
}

static FILE *begin(const char *folder, const char *name, const char *title, int32_t high) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.svg", folder, name);
    FILE *out = fopen(path, "we");
    if (out == NULL)
        return NULL;
    svg_begin(out, (LEFT + WIDE + RIGHT) / PIXEL, (TOP + high + BOTTOM) / PIXEL, title);
    svg_text(out, "title", LEFT, 3000, title);
    return out;
}

static int finish(FILE *out) {
    int r = svg_end(out);
    return fclose(out) == 0 ? r : -EIO;
}

/* A whole number of fives of the unit, so that ticks are whole. */
static uint64_t round_up(uint64_t value) {
    return value / TICKS * TICKS + TICKS;
}

/* ---- figure 6 ---- */

static int plot_steps(const struct fieldplot *p, const char *folder) {
    uint64_t most = 1;
    for (uint32_t i = 0; i < p->plan.steps; i++)
        most = p->steps[i].mean_ns > most ? p->steps[i].mean_ns : most;
    FILE *out = begin(folder, "wodi-steps", "Time of each step, and how it varies", HIGH);
    if (out == NULL)
        return -errno;
    struct frame f = {.out = out,
                      .top = TOP,
                      .high = HIGH,
                      .x_most = round_up(p->plan.steps),
                      .y_most = round_up(most / NS_PER_S)};
    axes(&f, "step", "seconds");
    for (uint32_t i = 0; i < p->plan.steps; i++) {
        const struct fieldplot_step *s = &p->steps[i];
        int32_t x = at_x(&f, i + 1), y = at_y(&f, s->mean_ns / NS_PER_S);
        int32_t d = (int32_t)(s->deviation_ns * HIGH / NS_PER_S / f.y_most);
        svg_rect(out, BLUE, x - DOT, y, 2 * DOT, f.top + f.high - y);
        svg_line(out, "line c1", x, y - d, x, y + d);
    }
    return finish(out);
}

/* ---- figures 7 and 8 ---- */

static void curve(const struct frame *f, const char *class, const uint64_t values[]) {
    for (uint32_t n = 2; n <= FIELDPLOT_LEVELS; n++)
        svg_line(f->out, class, at_x(f, n - 1), at_y(f, values[n - 1]), at_x(f, n),
                 at_y(f, values[n]));
}

static int plot_levels(const char *folder, const char *name, const char *title, const char *unit,
                       const uint64_t bound[], const uint64_t run[], uint64_t most) {
    FILE *out = begin(folder, name, title, HIGH);
    if (out == NULL)
        return -errno;
    struct frame f = {.out = out,
                      .top = TOP,
                      .high = HIGH,
                      .x_most = round_up(FIELDPLOT_LEVELS),
                      .y_most = round_up(most)};
    axes(&f, "workers", unit);
    curve(&f, "line c1", run);
    curve(&f, "line dash c0", bound);
    svg_text(out, "name d0", LEFT + WIDE - 20000, TOP + 2000, "dashed: by theory");
    svg_text(out, "name d1", LEFT + WIDE - 20000, TOP + 4000, "runs");
    return finish(out);
}

static int plot_both(const struct fieldplot *p, const char *folder) {
    uint64_t bound[FIELDPLOT_LEVELS + 1], run[FIELDPLOT_LEVELS + 1];
    for (uint32_t n = 1; n <= FIELDPLOT_LEVELS; n++) {
        bound[n] = p->levels[n].bound_ns / NS_PER_S;
        run[n] = p->levels[n].run_ns / NS_PER_S;
    }
    int r = plot_levels(folder, "wodi-time", "Time of a cycle", "seconds", bound, run, run[1]);
    for (uint32_t n = 1; n <= FIELDPLOT_LEVELS; n++) {
        bound[n] = p->levels[n].bound_permille / 10;
        run[n] = p->levels[n].run_permille / 10;
    }
    return r < 0 ? r
                 : plot_levels(folder, "wodi-efficiency", "Efficiency of a cycle", "percent", bound,
                               run, 99);
}

/* ---- figure 9 ---- */

struct drawing {
    struct frame upper;
    bool drawing; /* the first time it is only looked how large it is */
    uint64_t end_ns;
    uint32_t rows;
};

static void draw_step(void *context, enum fieldwork_event event, uint32_t worker, uint64_t step,
                      uint64_t from, uint64_t to) {
    struct drawing *d = context;
    (void)step;
    d->end_ns = to > d->end_ns ? to : d->end_ns;
    d->rows = worker + 1 > d->rows ? worker + 1 : d->rows;
    if (!d->drawing || event == FIELDWORK_COMES)
        return;
    int32_t x = at_x(&d->upper, from / NS_PER_S), width = at_x(&d->upper, to / NS_PER_S) - x;
    int32_t y = TOP + (int32_t)worker * ROW;
    bool lost = event == FIELDWORK_LOST;
    svg_rect(d->upper.out, lost ? RED : BLUE, x, y, width > 60 ? width - 30 : 30, ROW - 150);
}

/* Workers that are there, above those that work: changes by column of the picture, summed up at the end. */
enum { COLUMNS = WIDE / PIXEL };
struct use {
    const struct frame *frame;
    int32_t here[COLUMNS + 2], busy[COLUMNS + 2];
    uint64_t came[FIELDWORK_WORKERS_MAX];
    bool present[FIELDWORK_WORKERS_MAX];
};

static void add(int32_t *columns, const struct frame *f, uint64_t from, uint64_t to) {
    columns[(at_x(f, from / NS_PER_S) - LEFT) / PIXEL]++;
    columns[(at_x(f, to / NS_PER_S) - LEFT) / PIXEL]--;
}

static void count_use(void *context, enum fieldwork_event event, uint32_t worker, uint64_t step,
                      uint64_t from, uint64_t to) {
    struct use *u = context;
    (void)step;
    if (event == FIELDWORK_COMES) {
        u->present[worker] = true;
        u->came[worker] = to;
    } else {
        add(u->busy, u->frame, from, to);
    }
    if (event == FIELDWORK_LOST) {
        u->present[worker] = false;
        add(u->here, u->frame, u->came[worker], to);
    }
}

static void draw_use(struct use *u, uint64_t end_ns) {
    const struct frame *f = u->frame;
    for (uint32_t i = 0; i < FIELDWORK_WORKERS_MAX; i++)
        if (u->present[i])
            add(u->here, f, u->came[i], end_ns);
    int32_t here = 0, busy = 0;
    for (int i = 0; i < COLUMNS; i++) {
        here += u->here[i];
        busy += u->busy[i];
        int32_t top = at_y(f, here > 0 ? (uint64_t)here : 0);
        int32_t bottom = at_y(f, busy > 0 ? (uint64_t)busy : 0);
        if (bottom > top)
            svg_rect(f->out, ORANGE, LEFT + i * PIXEL, top, PIXEL, bottom - top);
    }
}

static int plot_run(const struct fieldplot *p, const char *folder) {
    static struct use use;
    struct drawing d = {0};
    struct fieldwork_outcome o;
    if (!fieldwork_run(&p->plan, draw_step, &d, &o))
        return -ENOMEM;
    int32_t upper = (int32_t)d.rows * ROW;
    FILE *out = begin(folder, "wodi-run", "One run: steps by worker, and workers without work",
                      upper + GAP + LOW_HIGH);
    if (out == NULL)
        return -errno;
    uint64_t seconds = round_up(d.end_ns / MINUTE_NS) * 60;
    d.upper = (struct frame){.out = out, .top = TOP, .high = upper, .x_most = seconds, .y_most = 1};
    struct frame lower = {.out = out,
                          .top = TOP + upper + GAP,
                          .high = LOW_HIGH,
                          .x_most = seconds,
                          .x_unit = 60,
                          .y_most = round_up(d.rows)};
    svg_text(out, "words", LEFT, TOP - 900, "workers; red: lost");
    d.drawing = true;
    axes(&lower, "minutes", "workers that are there, down to those that work");
    bool good = fieldwork_run(&p->plan, draw_step, &d, &o);
    memset(&use, 0, sizeof use);
    use.frame = &lower;
    good = good && fieldwork_run(&p->plan, count_use, &use, &o);
    draw_use(&use, d.end_ns);
    int r = finish(out);
    return good ? r : -ENOMEM;
}

/* ---- figure 10 ---- */

static int plot_runs(const struct fieldplot *p, const char *folder) {
    uint64_t most = 1;
    for (uint32_t i = 0; i < p->run_count; i++)
        most = p->runs[i].ns > most ? p->runs[i].ns : most;
    FILE *out =
        begin(folder, "wodi-runs", "Run length and average number of workers; theory", HIGH);
    if (out == NULL)
        return -errno;
    struct frame f = {.out = out,
                      .top = TOP,
                      .high = HIGH,
                      .x_most = WORKERS_SHOWN * 1000,
                      .x_unit = 1000,
                      .y_most = round_up(most / MINUTE_NS)};
    axes(&f, "workers", "minutes");
    for (uint64_t x = 1000; x < f.x_most; x += 500) {
        uint64_t y = fieldwork_bound(&p->plan, x) / MINUTE_NS;
        uint64_t next = fieldwork_bound(&p->plan, x + 500) / MINUTE_NS;
        if (y <= f.y_most)
            svg_line(out, "line dash c0", at_x(&f, x), at_y(&f, y), at_x(&f, x + 500),
                     at_y(&f, next));
    }
    for (uint32_t i = 0; i < p->run_count; i++)
        svg_rect(out, RED, at_x(&f, p->runs[i].workers_x1000) - DOT / 2,
                 at_y(&f, p->runs[i].ns / MINUTE_NS) - DOT / 2, DOT, DOT);
    return finish(out);
}

int fieldplot_write(const struct fieldplot *p, const char *folder) {
    if (mkdir(folder, 0777) < 0 && errno != EEXIST)
        return -errno;
    int r = plot_steps(p, folder);
    r = r < 0 ? r : plot_both(p, folder);
    r = r < 0 ? r : plot_run(p, folder);
    return r < 0 ? r : plot_runs(p, folder);
}

/* SPDX-License-Identifier: MIT */
/* The Lublin-Feitelson model; see lublin.h. */
#include "sim/lublin.h"

#include <math.h>

#include "base/random.h"

enum {
    BUCKETS = 48,
    BUCKET_SECONDS = 1800,
    DAY_START = 11
}; /* half hours; the quietest is at 05:30 */

static const double serial_share = 0.244, power_share = 0.576;
static const double log_size_low = 0.8,
                    log_size_first = 0.86; /* and the share of the first stage */
static const double run_a1 = 4.2, run_b1 = 0.94, run_a2 = 312, run_b2 = 0.03;
static const double run_slope = -0.0054, run_base = 0.78;
static const double gap_a = 10.23, gap_b = 0.4871;
static const double day_a = 8.1737, day_b = 3.9631;
static const double log_run_max = 12, log_gap_max = 13; /* beyond that it is drawn again */

struct lublin {
    struct random random;
    uint32_t pes;
    double weights[BUCKETS]; /* of the half hours of a day: 1 in the mean */
    uint64_t bucket;         /* the half hour we are in, from the first on */
    double spent;            /* of its weight, in seconds */
};

static double uniform(struct lublin *l) {
    return ((double)(random_u64(&l->random) >> 11) + 0.5) * 0x1p-53;
}

static double normal(struct lublin *l) {
    double u = uniform(l), v = uniform(l);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* Marsaglia and Tsang's method; a is above 1 here. */
static double gamma_draw(struct lublin *l, double a, double b) {
    double d = a - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = normal(l), v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(uniform(l)) < x * x / 2 + d - d * v + d * log(v))
            return d * v * b;
    }
}

static void init_day(struct lublin *l) {
    double sum = 0;
    for (int i = 0; i < BUCKETS; i++) {
        double x = DAY_START + i + 0.5;
        l->weights[(DAY_START + i) % BUCKETS] = exp((day_a - 1) * log(x) - x / day_b);
    }
    for (int i = 0; i < BUCKETS; i++)
        sum += l->weights[i];
    for (int i = 0; i < BUCKETS; i++)
        l->weights[i] *= BUCKETS / sum;
    l->bucket = DAY_START;
}

static uint32_t draw_size(struct lublin *l) {
    double high = log2(l->pes), middle = high > 3.3 ? high - 2.5 : log_size_low;
    double kind = uniform(l), stage = uniform(l), u = uniform(l);
    if (kind < serial_share || l->pes == 1)
        return 1;
    double low = log_size_low < high ? log_size_low : high;
    double x = stage < log_size_first ? low + u * (middle - low) : middle + u * (high - middle);
    double size = exp2(kind < serial_share + power_share ? floor(x + 0.5) : x);
    uint32_t n = (uint32_t)(size + 0.5);
    return n < 1 ? 1 : n > l->pes ? l->pes : n;
}

static uint64_t draw_run(struct lublin *l, uint32_t size) {
    double first = run_slope * size + run_base, x;
    do {
        double u = uniform(l);
        x = u < first ? gamma_draw(l, run_a1, run_b1) : gamma_draw(l, run_a2, run_b2);
    } while (x > log_run_max);
    uint64_t seconds = (uint64_t)(exp(x) + 0.5);
    return seconds > 1 ? seconds : 1;
}

/* Seconds since the first midnight. */
static double draw_arrival(struct lublin *l) {
    double gap;
    do
        gap = gamma_draw(l, gap_a, gap_b);
    while (gap > log_gap_max);
    l->spent += exp(gap);
    double room;
    while (l->spent >= (room = l->weights[l->bucket % BUCKETS] * BUCKET_SECONDS)) {
        l->spent -= room;
        l->bucket++;
    }
    return (double)l->bucket * BUCKET_SECONDS + l->spent / room * BUCKET_SECONDS;
}

static void stretch(struct workload *w, uint32_t pes, double load) {
    double work = 0, first = (double)w->jobs[0].submit;
    double span = (double)w->jobs[w->count - 1].submit - first;
    for (size_t i = 0; i < w->count; i++)
        work += (double)w->jobs[i].pes * (double)w->jobs[i].run;
    double factor = span > 0 ? work / ((double)pes * load * span) : 1;
    for (size_t i = 0; i < w->count; i++)
        w->jobs[i].submit = (uint64_t)(((double)w->jobs[i].submit - first) * factor + 0.5);
}

int lublin_draw(const struct lublin_config *c, struct workload *w) {
    struct lublin l = {.pes = c->pes};
    random_init(&l.random, c->seed);
    init_day(&l);
    for (uint64_t i = 0; i < c->jobs; i++) {
        struct workload_job j = {.id = i + 1, .status = 1};
        j.submit = (uint64_t)draw_arrival(&l);
        j.pes = draw_size(&l);
        j.run = j.estimate = draw_run(&l, j.pes);
        int r = workload_add(w, &j);
        if (r < 0)
            return r;
    }
    w->pes = c->pes;
    if (c->load_permille > 0 && w->count > 0)
        stretch(w, c->pes, c->load_permille / 1000.0);
    return 0;
}

/* SPDX-License-Identifier: MIT */
/* Shows what `storm bench primitives` has measured: a table, JSON lines, plots. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "cli/cases.h"
#include "cli/options.h"
#include "sim/measure.h"

/* One case on one cluster. */
struct bench_value {
    bool measured;
    uint32_t runs;
    uint64_t median_ns;
    uint64_t ci95_ns;
    uint64_t floor_ns;
    uint64_t rate;         /* bytes a second, for cases that have one */
    uint64_t messages_x10; /* to or from a node in one run, in tenths */
    uint64_t steps;
};

struct bench_row {
    uint32_t nodes;
    uint32_t levels;
    struct bench_value values[BENCH_CASES];
};

/* All clusters of one shape. */
struct bench_series {
    struct tree tree;
    bool cases[BENCH_CASES]; /* which are measured at all */
    uint32_t count;
    struct bench_row rows[NUMBERS_MAX];
};

/* What all of them have in common. */
struct bench_setting {
    const char *network;
    struct link_model link;
    enum depth depth;
    uint64_t seed;
};

void report_table_head(const struct bench_series *s, FILE *out);
void report_table_row(const struct bench_series *s, const struct bench_row *r, FILE *out);
void report_table_foot(const struct bench_series *s, FILE *out);

/* A time among the keys of an object: `,"key":1.234567`. */
void report_json_ms(const char *key, uint64_t ns, FILE *out);
void report_json(const struct bench_setting *b, const struct tree *t, const struct bench_row *r,
                 FILE *out);

/* Both return 0 or -errno. */
int report_plot_latency(const struct bench_setting *b, const struct bench_series *series,
                        uint32_t count, const char *path);
int report_plot_rate(const struct bench_setting *b, const struct bench_series *series,
                     uint32_t count, const char *path);

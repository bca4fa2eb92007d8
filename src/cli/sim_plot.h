/* SPDX-License-Identifier: MIT */
/* storm sim: a picture of a schedule: who had which processors when, how many were used, who waited.
 *
 * A raster of a fixed number of cells, so that the file stays small whatever the trace is: a cell has the colour of
 * the job that holds the processor in its middle. */
#pragma once

#include <stdint.h>
#include <stdio.h>

enum { SIM_PLOT_COLUMNS = 800, SIM_PLOT_ROWS = 64 };

struct sim_plot {
    uint64_t begin, end; /* ticks */
    uint32_t pes;
    uint8_t cells[SIM_PLOT_ROWS][SIM_PLOT_COLUMNS]; /* 0: idle, else a colour and one */
    double used[SIM_PLOT_COLUMNS];                  /* processors, in the mean of the column */
    double queued[SIM_PLOT_COLUMNS];                /* jobs */
};

/* A zeroed plot from `begin` to `end`. */
void sim_plot_init(struct sim_plot *p, uint64_t begin, uint64_t end, uint32_t pes);

/* A job had these processors from when to when; it had so many in all; it waited. */
void sim_plot_run(struct sim_plot *p, uint64_t job, uint64_t from, uint64_t to, uint32_t first,
                  uint32_t last);
void sim_plot_used(struct sim_plot *p, uint64_t from, uint64_t to, double pes);
void sim_plot_waited(struct sim_plot *p, uint64_t from, uint64_t to);

/* 0 or -EIO. */
int sim_plot_write(const struct sim_plot *p, const char *title, const char *words, FILE *out);

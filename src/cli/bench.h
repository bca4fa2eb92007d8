/* SPDX-License-Identifier: MIT */
/* What `storm bench` was asked for, and the two ways to do it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/report.h"
#include "os/crew.h"

struct bench_settings {
    bool sim, json;
    struct number_list nodes;
    const char *shape_text, *depth_text, *network_text, *cases_text, *links_text;
    uint64_t arity, runs, seed, period_ns;
    uint64_t latency_ns, jitter_ns, bytes_per_s, cpu_ns; /* UINT64_MAX: as the network has it */
    const char *svg, *svg_bandwidth;
    /* found out from these */
    struct bench_setting common;
    enum transport links;
    bool shapes[SHAPES];
    bool cases[BENCH_CASES];
};

/* All return an exit status. */
int bench_real(const struct bench_settings *s);
int bench_sim(const struct bench_settings *s);
int bench_idle(const struct bench_settings *s);

/* With command lines of their own. */
int bench_launch(int argc, char **argv);
int bench_throughput(int argc, char **argv);
int bench_transfer(int argc, char **argv);
int bench_delivery(int argc, char **argv); /* transfer --sim */
int bench_load(int argc, char **argv);
int bench_exec(int argc, char **argv);
int bench_exec_link(int argc, char **argv);
int bench_gang(int argc, char **argv);
int bench_gang_node(int argc, char **argv);
int bench_wodi(int argc, char **argv);

/* "1MB,12MB"; false if it is not a list of sizes, each from 1 byte to 64 GB. */
bool bench_sizes(const char *text, struct number_list *ret);

/* SPDX-License-Identifier: MIT */
/* What `storm bench transfer --sim` was asked for, and how it shows what came out: a table, JSON lines, a plot. */
#pragma once

#include "cli/options.h"
#include "sim/delivery.h"

enum { DELIVERY_TREES_MAX = 16 };

/* What the combinations differ in. */
enum factor { BY_TREE, BY_ORDER, BY_SIZE, BY_SLOTS, BY_CHUNK, BY_ARITY, BY_NODES, FACTORS };

struct delivery_settings {
    struct number_list nodes, sizes, chunks, slots, arities;
    uint32_t tree_count, order_count;
    struct spread trees[DELIVERY_TREES_MAX];
    enum delivery_order orders[DELIVERY_ORDERS];
    const char *size_text, *chunk_text, *tree_text, *order_text, *over_text, *network, *svg;
    uint64_t latency_ns, bytes_per_s, cpu_ns, host_bytes_per_s, exec_ns, seed;
    uint64_t per_switch, between_bytes_per_s;
    bool sim, even, start, json;
    /* found out from these */
    struct delivery_config common;
    enum factor over; /* what is along the axis of a plot */
};

struct delivery_row {
    struct delivery_config config;
    struct delivery result;
    uint32_t at[FACTORS]; /* in the lists */
};

/* How many values there are; at least one. */
uint32_t delivery_count(const struct delivery_settings *s, enum factor f);

/* "nodes", "chunk", "slots", "arity", "size"; false if it is none of them. */
bool delivery_axis(const char *name, enum factor *ret);

void delivery_print_head(const struct delivery_settings *s);
void delivery_print_row(const struct delivery_settings *s, const struct delivery_row *row);
void delivery_print_foot(void);
void delivery_print_json(const struct delivery_settings *s, const struct delivery_row *row);
/* 0, or -errno after complaining. */
int delivery_plot(const struct delivery_settings *s, const struct delivery_row *rows,
                  uint32_t count);

/* SPDX-License-Identifier: MIT */
/* Everything about one run, drawn from its seed: see scenario.h. */
#include "sim/scenario.h"

#include <inttypes.h>

#include "base/random.h"

#define US ((uint64_t)1000)
#define MS ((uint64_t)1000000)

/* Small numbers as likely as large ones: uniform over the powers of two, then within. */
static uint64_t draw_scale(struct random *r, uint64_t low, uint64_t high) {
    uint32_t doublings = 0;
    while (low << (doublings + 1) <= high)
        doublings++;
    uint64_t from = low << random_below(r, doublings + 1);
    uint64_t to = from * 2 < high ? from * 2 : high;
    return random_between(r, from, to);
}

static uint32_t draw32(struct random *r, uint32_t low, uint32_t high) {
    return (uint32_t)random_between(r, low, high);
}

static uint32_t draw_nodes(struct random *r) {
    uint64_t kind = random_below(r, 100);
    if (kind < 40)
        return draw32(r, 2, 8);
    if (kind < 75)
        return draw32(r, 9, 32);
    if (kind < 95)
        return draw32(r, 33, 80);
    return draw32(r, 81, 200);
}

/* Deep and flat trees only where waves stay short enough to simulate many of them. */
static void draw_tree(struct random *r, uint32_t nodes, struct tree *tree) {
    *tree = (struct tree){.nodes = nodes, .arity = draw32(r, 2, 8)};
    uint64_t kind = random_below(r, 8);
    if (kind == 0 && nodes <= 20)
        tree->shape = SHAPE_CHAIN;
    else if (kind == 1 && nodes <= 64)
        tree->shape = SHAPE_FLAT;
    else if (kind < 4)
        tree->shape = SHAPE_BINOMIAL;
    else
        tree->shape = SHAPE_KARY;
}

static uint32_t fan_out(const struct tree *tree) {
    uint32_t bits = 1;
    switch (tree->shape) {
    case SHAPE_KARY:
        return tree->arity;
    case SHAPE_FLAT:
        return tree->nodes;
    case SHAPE_BINOMIAL:
        while (tree->nodes >> bits)
            bits++;
        return bits + 1;
    default:
        return 1;
    }
}

static void draw_limits(struct random *r, const struct tree *tree, struct limits *l) {
    uint32_t fan = tree->shape == SHAPE_FLAT ? 1 : fan_out(tree);
    *l = (struct limits){.nodes = tree->nodes, .roots = 1};
    l->variables = draw32(r, 4, 16);
    l->events = draw32(r, 2, 8);
    l->children = fan + draw32(r, 1, fan + 4);
    l->window = draw32(r, 2, 32);
    l->queue = draw32(r, 4, 64);
    l->outstanding = draw32(r, 1, 8);
    l->standing = draw32(r, 1, 8);
    l->transfers = draw32(r, 1, 4);
    l->chunk_bytes = draw32(r, 8, 128) * 8;
    l->slots = draw32(r, 1, 8);
}

static void draw_layout(struct random *r, struct limits *l, struct layout *layout) {
    uint32_t cell_bytes = draw32(r, 1, 8) * 8;
    l->body_bytes = cell_bytes * draw32(r, 1, 4);
    layout_init(layout, l, draw32(r, 2, 8), cell_bytes);
    layout_add_bulk(layout, l->chunk_bytes / 2 / 8 * 8 + 8);
    layout_add_bulk(layout, l->chunk_bytes * draw32(r, 2, 4) + 8);
    layout_add_bulk(layout, l->chunk_bytes * draw32(r, 5, 16));
    l->heap_bytes = layout->heap_bytes;
}

static void draw_link(struct random *r, struct link_model *m) {
    *m = (struct link_model){.latency_ns = draw_scale(r, US, 2 * MS)};
    m->jitter_ns = random_below(r, m->latency_ns + 1);
    if (random_chance(r, 3, 4))
        m->bytes_per_s = draw_scale(r, 10000000, 10000000000);
    m->cpu_receive_ns = draw_scale(r, 200, 5 * US);
    m->cpu_send_ns = draw_scale(r, 200, 3 * US);
    m->connect_ns = m->latency_ns * random_between(r, 2, 6);
    m->durable_ns = draw_scale(r, 10 * US, 5 * MS);
}

/* Down and up through all levels, every message handled one after the other. */
static uint64_t estimate_wave(const struct scenario *s) {
    const struct link_model *m = &s->link;
    uint64_t message = m->cpu_receive_ns + m->cpu_send_ns;
    if (m->bytes_per_s)
        message += (uint64_t)512 * 1000000000 / m->bytes_per_s;
    uint64_t level = m->latency_ns + m->jitter_ns + message * (fan_out(&s->prim.tree) + 1);
    return 2 * level * (tree_depth(&s->prim.tree) + 1);
}

static void draw_rates(struct random *r, struct scenario *s) {
    uint64_t period = s->prim.period_ns;
    uint64_t universe = limits_universe(&s->prim.limits);
    s->faults = draw32(r, 5, 9);
    s->asked_min = 200;
    s->asked_max = 800;
    s->fault_gap_ns = period * random_between(r, 1, 24);
    uint64_t duration = s->faults * (s->fault_gap_ns + 12 * period);
    s->gap_ns = duration / random_between(r, 250, 600) * universe;
    s->boot_spread_ns = period * random_below(r, 6) + 1;
    s->late_nodes = random_chance(r, 1, 4);
}

void scenario_draw(struct scenario *s, uint64_t seed) {
    struct random r;
    *s = (struct scenario){.seed = seed};
    random_init(&r, seed);
    draw_tree(&r, draw_nodes(&r), &s->prim.tree);
    draw_limits(&r, &s->prim.tree, &s->prim.limits);
    draw_layout(&r, &s->prim.limits, &s->layout);
    draw_link(&r, &s->link);
    s->wave_ns = estimate_wave(s);
    uint64_t period = s->wave_ns * random_between(&r, 3, 10);
    if (period < s->link.durable_ns)
        period = s->link.durable_ns;
    prim_config_times(&s->prim, period);
    draw_rates(&r, s);
    s->prim.limits.record_channels = draw32(&r, 1, 3);
    s->prim.limits.record_bytes = 8 * draw32(&r, 1, 8);
}

void scenario_print(const struct scenario *s, FILE *out) {
    const struct limits *l = &s->prim.limits;
    const struct link_model *m = &s->link;
    fprintf(out, "seed %" PRIu64 ": %" PRIu32 " nodes, %s %" PRIu32 ", period %" PRIu64 " us\n",
            s->seed, l->nodes, shape_name(s->prim.tree.shape), s->prim.tree.arity,
            s->prim.period_ns / US);
    fprintf(out,
            "  window %" PRIu32 " queue %" PRIu32 " outstanding %" PRIu32 " variables %" PRIu32
            " events %" PRIu32 " children %" PRIu32 " body %" PRIu32 " chunk %" PRIu32
            " slots %" PRIu32 " transfers %" PRIu32 " standing %" PRIu32 "\n",
            l->window, l->queue, l->outstanding, l->variables, l->events, l->children,
            l->body_bytes, l->chunk_bytes, l->slots, l->transfers, l->standing);
    fprintf(out,
            "  latency %" PRIu64 " ns jitter %" PRIu64 " ns bandwidth %" PRIu64 " B/s cpu %" PRIu64
            "+%" PRIu64 " ns connect %" PRIu64 " us durable %" PRIu64 " us\n",
            m->latency_ns, m->jitter_ns, m->bytes_per_s, m->cpu_receive_ns, m->cpu_send_ns,
            m->connect_ns / US, m->durable_ns / US);
    fprintf(out, "  %" PRIu32 " faults, gap %" PRIu64 " us, testers act every %" PRIu64 " us\n",
            s->faults, s->fault_gap_ns / US, s->gap_ns / US);
}

/* SPDX-License-Identifier: MIT */
/* What a run of a campaign of files is like: see files_plan.h. */
#include "sim/files_plan.h"

#include "base/assert.h"
#include "base/units.h"
#include "rm/spread.h"
#include "wire/message.h"

static uint32_t draw32(struct random *r, uint32_t low, uint32_t high) {
    return (uint32_t)random_between(r, low, high);
}

static uint32_t draw_nodes(struct random *r) {
    uint64_t kind = random_below(r, 100);
    if (kind < 60)
        return draw32(r, 2, 9);
    return kind < 92 ? draw32(r, 10, 24) : draw32(r, 25, 80);
}

static void draw_link(struct random *r, struct link_model *m) {
    *m = (struct link_model){.latency_ns = random_between(r, 5, 1000) * NS_PER_US};
    m->jitter_ns = random_below(r, m->latency_ns + 1);
    m->bytes_per_s = random_between(r, 1, 20) * 62500000;
    m->cpu_receive_ns = random_between(r, 500, 5000);
    m->cpu_send_ns = random_between(r, 500, 5000);
    m->connect_ns = 3 * m->latency_ns;
    m->window_bytes = random_chance(r, 1, 4) ? 0 : random_between(r, 1, 64) * 4 * KIB;
}

static void draw_mover(struct random *r, struct mover_config *m) {
    *m = mover_usual(0, 0);
    m->hauls = 8;
    m->takers = random_chance(r, 1, 5) ? draw32(r, 1, 4) : 128;
    m->pieces = 4096;
    m->slot_bytes = random_between(r, 1, 128) * 64 * KIB;
}

static void draw_depot(struct random *r, struct sim_depot_config *d) {
    d->bytes_per_s = random_chance(r, 1, 4) ? 0 : random_between(r, 1, 40) * 50000000;
    d->latency_ns = random_between(r, 0, 300) * NS_PER_US;
    d->jitter_ns = random_chance(r, 1, 4) ? 0 : random_between(r, 1, 2000) * NS_PER_US;
    d->commit_ns = random_between(r, 0, 20) * NS_PER_MS;
}

static void draw_cargo(struct random *r, struct cargo_config *c) {
    uint32_t most = random_chance(r, 1, 8) ? 1500 : random_chance(r, 1, 2) ? 200 : 20;
    c->pieces = draw32(r, 1, most);
    uint32_t few = draw32(r, 1, 16), many = draw32(r, 17, BUNDLE_PAGE_PIECES_MAX);
    c->page_pieces = random_chance(r, 2, 3) ? few : many;
    while (c->pieces / c->page_pieces >= BUNDLE_PAGES_MAX)
        c->page_pieces *= 2;
    c->piece_bytes = draw32(r, 1, 64) * (random_chance(r, 1, 3) ? 4096 : 1024);
    c->holes_percent = random_chance(r, 1, 3) ? draw32(r, 1, 60) : 0;
    c->changes_percent = draw32(r, 1, 40);
}

static void draw_cargoes(struct random *r, struct files_plan *p) {
    p->cargoes = draw32(r, 1, PLAN_CARGOES_MAX);
    for (uint32_t i = 0; i < p->cargoes; i++) {
        draw_cargo(r, &p->cargo[i]);
        p->like[i] = i > 0 && random_chance(r, 1, 2) ? draw32(r, 0, i - 1) : i;
        if (p->like[i] != i) /* or the longest might be too long */
            p->cargo[i].piece_bytes = p->cargo[p->like[i]].piece_bytes;
    }
}

/* Some are looked over while they are given. Drawn aside, as switches are. */
static void draw_open(const struct random *r, struct files_plan *p) {
    struct random own = random_fork(r, 0x6F70656E);
    for (uint32_t i = 0; i < p->cargoes; i++) {
        struct cargo_config *c = &p->cargo[i];
        uint64_t most = (uint64_t)c->page_pieces * BUNDLE_PAGES_MAX;
        most = most < p->yard.mover.pieces ? most : p->yard.mover.pieces;
        c->open = random_chance(&own, 1, 3) && c->pieces < most;
        c->spare =
            !c->open || random_chance(&own, 1, 3) ? 0 : draw32(&own, 1, (uint32_t)most - c->pieces);
    }
}

void files_plan_draw(struct files_plan *p, uint64_t seed) {
    struct random r;
    random_init(&r, seed ^ 0x66696C6573);
    *p = (struct files_plan){
        .yard = {.seed = seed, .nodes = draw_nodes(&r), .clients = 2, .hash = true, .hosts = true}};
    draw_link(&r, &p->yard.link);
    draw_mover(&r, &p->yard.mover);
    draw_depot(&r, &p->yard.depot);
    p->single = p->yard.mover.takers < 8;
    p->yard.skew_ns = random_chance(&r, 1, 2) ? 0 : random_between(&r, 1, 200) * NS_PER_MS;
    draw_cargoes(&r, p);
    draw_open(&r, p);
    p->cached_percent = random_chance(&r, 1, 2) ? 0 : draw32(&r, 1, 100);
    p->rounds = draw32(&r, 1, 3);
    p->faults = random_chance(&r, 1, 10) ? 0 : draw32(&r, 1, 6);
    p->fault_gap_ns = random_between(&r, 1, 400) * NS_PER_MS;
    if (random_chance(&r, 1, 3)) { /* one after the other, while everything moves */
        p->faults = draw32(&r, 4, 20);
        p->fault_gap_ns = random_between(&r, 20, 4000) * NS_PER_US;
    }
    p->ill_percent = random_chance(&r, 1, 2) ? 0 : draw32(&r, 1, 30);
    p->late_ns = random_chance(&r, 1, 3) ? random_between(&r, 1, 300) * NS_PER_MS : 0;
}

static void draw_set(const struct files_plan *p, struct random *r, struct nodeset *set) {
    uint32_t nodes = p->yard.nodes, percent = random_chance(r, 1, 2) ? 100 : draw32(r, 10, 90);
    for (uint32_t i = 0; i < nodes; i++)
        if (random_below(r, 100) < percent)
            nodeset_add(set, i);
    if (nodeset_empty(set))
        nodeset_add(set, draw32(r, 0, nodes - 1));
}

size_t files_plan_storage(const struct files_plan *p) {
    return nodeset_bytes(p->yard.nodes + 1) + p->yard.nodes * sizeof(uint32_t);
}

/* Of some transfers the plan knows switches. Drawn aside: what else a seed draws stays as it was. */
static void draw_switches(const struct files_plan *p, const struct random *r, uint32_t *at,
                          struct shipment *s) {
    struct random own = random_fork(r, 0x73776974636873);
    uint32_t most = draw32(&own, 1, 6);
    bool unknown = random_chance(&own, 1, 3);
    if (!random_chance(&own, 1, 3))
        return;
    for (uint32_t i = 0; i < p->yard.nodes; i++)
        at[i] = draw32(&own, unknown ? 0 : 1, most);
    s->switches = at;
    s->source_switch = draw32(&own, 0, most);
}

void files_plan_shipment(const struct files_plan *p, struct stock *f, struct random *r,
                         void *storage, struct shipment *ret) {
    const struct cargo *any = f->cargoes[random_below(r, f->count)];
    *ret = (struct shipment){.cargo = stock_find(f, any->descriptor), /* the first of equals */
                             .source = NO_NODE};
    nodeset_init(&ret->set, p->yard.nodes + 1, storage);
    draw_set(p, r, &ret->set);
    ret->client = draw32(r, 0, p->yard.clients - 1);
    uint32_t node = draw32(r, 0, p->yard.nodes - 1);
    /* Where places for takers are few, those that wait for a node must not keep others from what it gives. */
    bool fits = !p->single || !nodeset_has(&ret->set, node);
    if (random_chance(r, 2, 5) && fits)
        ret->source = node;
    ret->shape = (uint8_t)draw32(r, SPREAD_CHAIN, SPREAD_SHAPES - 1);
    ret->arity = draw32(r, 1, 6);
    ret->slots = random_chance(r, 1, 3) ? draw32(r, 1, SLOTS_MAX) : draw32(r, 1, 8);
    size_t set = nodeset_bytes(p->yard.nodes + 1);
    draw_switches(p, r, (uint32_t *)(void *)((uint8_t *)storage + set), ret);
}

void files_plan_ills(struct random *r, bool source, uint32_t pieces, struct sim_depot_ills *ret) {
    uint32_t kind = draw32(r, 0, 6), piece = draw32(r, 1, pieces);
    uint32_t permille = draw32(r, 1, random_chance(r, 1, 8) ? 1000 : 100);
    *ret = (struct sim_depot_ills){0};
    if (kind == 0 && !source)
        ret->full_after = piece;
    else if (kind == 1 && !source)
        ret->way_chance = permille;
    else if (kind == 2)
        ret->load_chance = permille;
    else if (kind == 3)
        ret->page_chance = permille;
    else if (kind == 4)
        ret->error_chance = permille;
    else if (kind == 5)
        ret->refuses = true;
    else
        ret->uncommitted = true;
}

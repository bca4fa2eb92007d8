/* SPDX-License-Identifier: MIT */
/* A file to many nodes, simulated: see delivery.h. */
#include "sim/delivery.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/cut.h"
#include "base/units.h"
#include "rm/switches.h"
#include "sim/foreman.h"
#include "sim/inside.h"
#include "sim/yard.h"

/* Far beyond the end of any. */
#define TIME_MAX (100000 * NS_PER_S)

enum { ORDER_SLACK = 512, COMMAND_BYTES = 512, TAKERS_SPARE = 4, SOURCE_SWITCH = 1 };

struct delivery_config delivery_usual(const struct link_model *link) {
    return (struct delivery_config){.link = *link,
                                    .host_bytes_per_s = UINT64_C(5000) * 1000 * 1000,
                                    .commit_ns = 100 * NS_PER_US,
                                    .exec_ns = NS_PER_MS,
                                    .seed = 1};
}

/* ---- what is sent ---- */

static struct spread_terms terms_of(const struct delivery_config *c, uint32_t piece_bytes) {
    return (struct spread_terms){.bytes = c->bytes,
                                 .receivers = c->nodes,
                                 .piece_bytes = piece_bytes,
                                 .bytes_per_s = c->link.bytes_per_s,
                                 .latency_ns = c->link.latency_ns,
                                 .message_ns = c->link.cpu_receive_ns};
}

/* Lengths of pieces as random bytes are cut. */
struct cutting {
    struct cut cut;
    struct random random;
    uint8_t *window;
    size_t filled, used;
    uint64_t left; /* bytes that were not drawn yet */
};

static void draw_more(struct cutting *k) {
    size_t rest = k->filled - k->used, room = (size_t)4 * k->cut.most;
    memmove(k->window, k->window + k->used, rest);
    size_t more = room - rest < k->left ? room - rest : (size_t)k->left;
    random_bytes(&k->random, k->window + rest, more);
    k->left -= more;
    k->filled = rest + more;
    k->used = 0;
}

static uint32_t next_cut(struct cutting *k) {
    if (k->filled - k->used < k->cut.most && k->left > 0)
        draw_more(k);
    uint32_t len = cut_next(&k->cut, bytes_of(k->window + k->used, k->filled - k->used));
    k->used += len;
    return len;
}

/* As many lengths as there is room for; how many there are. */
static uint32_t cut_all(const struct delivery_config *c, uint32_t piece_bytes, uint32_t *lens,
                        uint32_t cap) {
    struct cutting k = {.left = c->bytes};
    uint32_t count = 0;
    cut_init(&k.cut, piece_bytes);
    random_init(&k.random, c->seed);
    k.window = malloc((size_t)4 * k.cut.most);
    ASSERT(k.window != NULL);
    for (uint64_t at = 0; at < c->bytes && count < cap; count++) {
        lens[count] = next_cut(&k);
        at += lens[count];
    }
    free(k.window);
    return count;
}

static uint32_t cut_even(const struct delivery_config *c, uint32_t piece_bytes, uint32_t *lens) {
    uint32_t count = 0;
    for (uint64_t at = 0; at < c->bytes; at += piece_bytes)
        lens[count++] = c->bytes - at < piece_bytes ? (uint32_t)(c->bytes - at) : piece_bytes;
    return count;
}

static int load(struct stock *f, const struct delivery_config *c, uint32_t piece_bytes) {
    uint64_t most = c->bytes / (piece_bytes - piece_bytes / 4) + 1;
    if (most > (uint64_t)BUNDLE_PAGES_MAX * BUNDLE_PAGE_PIECES_MAX)
        return -EINVAL;
    uint32_t *lens = malloc(most * sizeof *lens);
    if (lens == NULL)
        return -ENOMEM;
    struct cargo_config k = {.page_pieces = BUNDLE_PAGE_PIECES, .lens = lens};
    k.pieces =
        c->even ? cut_even(c, piece_bytes, lens) : cut_all(c, piece_bytes, lens, (uint32_t)most);
    while (k.pieces > k.page_pieces * BUNDLE_PAGES_MAX)
        k.page_pieces *= 2;
    struct random r;
    random_init(&r, c->seed);
    stock_add(f, &k, &r);
    free(lens);
    return 0;
}

/* ---- where ---- */

static const char *const orders[DELIVERY_ORDERS] = {
    [DELIVERY_ALONG] = "along", [DELIVERY_ACROSS] = "across", [DELIVERY_AWARE] = "aware"};

const char *delivery_order_name(enum delivery_order order) {
    return order < DELIVERY_ORDERS ? orders[order] : "?";
}

bool delivery_order_parse(const char *name, enum delivery_order *ret) {
    for (int i = 0; i < DELIVERY_ORDERS; i++)
        if (strcmp(orders[i], name) == 0) {
            *ret = (enum delivery_order)i;
            return true;
        }
    return false;
}

static uint32_t *place_nodes(const struct delivery_config *c) {
    if (c->per_switch == 0)
        return NULL;
    uint32_t *at = malloc(c->nodes * sizeof *at);
    ASSERT(at != NULL);
    uint32_t switches = (c->nodes - 1) / c->per_switch + 1;
    for (uint32_t i = 0; i < c->nodes; i++)
        at[i] = c->order == DELIVERY_ALONG ? i / c->per_switch : i % switches;
    return at;
}

static struct yard_config yard_of(const struct delivery_config *c, const struct prim_config *prim,
                                  uint32_t pieces, const uint32_t *switches) {
    struct yard_config y = {.nodes = c->nodes,
                            .clients = 1,
                            .link = c->link,
                            .seed = c->seed,
                            .switches = switches,
                            .between_bytes_per_s = c->between_bytes_per_s,
                            .prim = prim,
                            .host = foreman_host};
    y.mover = mover_usual(0, 0);
    y.mover.hauls = 1;
    y.mover.pieces = pieces;
    y.depot.bytes_per_s = c->host_bytes_per_s;
    y.depot.commit_ns = c->commit_ns;
    return y;
}

/* As a plan is told: 0 is none that is known. */
static uint32_t *told_switches(const struct delivery_config *c, const uint32_t *switches) {
    if (switches == NULL || c->order != DELIVERY_AWARE)
        return NULL;
    uint32_t *told = malloc(c->nodes * sizeof *told);
    ASSERT(told != NULL);
    for (uint32_t i = 0; i < c->nodes; i++)
        told[i] = switches[i] + 1;
    return told;
}

/* Simulated movers have no more places for takers than they need. */
static void fit_to(struct yard_config *y, const struct spread *s) {
    y->mover.takers = TAKERS_SPARE;
    y->client_takers = TAKERS_SPARE;
    for (uint32_t tree = 0; tree < spread_trees(s); tree++) {
        y->client_takers += spread_child_count(s, tree, 0);
        for (uint32_t i = 1; i <= s->receivers; i++) {
            uint32_t children = spread_child_count(s, tree, i);
            if (y->mover.takers < children + TAKERS_SPARE)
                y->mover.takers = children + TAKERS_SPARE;
        }
    }
}

static void fit_takers(struct yard_config *y, struct spread s, const uint32_t *told) {
    uint32_t *order = NULL;
    if (told != NULL) {
        order = malloc((2 * (size_t)s.receivers + 1) * sizeof *order);
        ASSERT(order != NULL);
        s.groups = spread_arrange(&s, told, SOURCE_SWITCH, order, order + s.receivers);
        s.ends = order + s.receivers;
    }
    fit_to(y, &s);
    free(order);
}

/* ---- running it ---- */

struct trip {
    const struct delivery_config *config;
    struct delivery *result;
    struct stock *stock;
    struct foreman *foreman;
    struct yard *yard;
    uint32_t *told; /* switches of nodes, that the plan is told; or NULL */
};

static bool over(const struct trip *t) {
    const struct foreman_times *times = foreman_times(t->foreman);
    return foreman_failed(t->foreman) ||
           (t->config->start ? times->ended_at : times->known_at) != 0;
}

static int come_up(struct trip *t) {
    struct world *w = yard_world(t->yard);
    yard_boot_all(t->yard);
    for (uint32_t i = 0; i < t->config->nodes; i++)
        yard_boot(t->yard, i);
    while (foreman_times(t->foreman)->up_at == 0)
        if (world_now(w) > TIME_MAX || !world_step(w))
            return -ETIME;
    world_run_until(w, world_now(w) + 10 * NS_PER_MS);
    return foreman_failed(t->foreman) ? -ETIME : 0;
}

static void ship(struct trip *t) {
    uint32_t universe = t->config->nodes + 1;
    void *storage = calloc(1, nodeset_bytes(universe));
    ASSERT(storage != NULL);
    struct shipment s = {.cargo = t->stock->cargoes[0],
                         .source = NO_NODE,
                         .shape = t->result->spread.shape,
                         .arity = t->result->spread.arity,
                         .slots = t->result->slots,
                         .switches = t->told,
                         .source_switch = t->told != NULL ? SOURCE_SWITCH : 0};
    nodeset_init(&s.set, universe, storage);
    nodeset_add_range(&s.set, 0, t->config->nodes - 1);
    yard_ship(t->yard, &s);
    free(storage);
}

static int travel(struct trip *t) {
    struct world *w = yard_world(t->yard);
    struct world_counts before = *world_counts(w);
    ship(t);
    while (!over(t))
        if (world_now(w) > TIME_MAX || !world_step(w))
            return -ETIME;
    if (foreman_failed(t->foreman))
        return -EIO;
    t->result->events = world_counts(w)->events - before.events;
    t->result->steps = world_counts(w)->steps - before.steps;
    t->result->messages = world_counts(w)->messages - before.messages;
    t->result->crossed_bytes = w->trunks.crossed_bytes;
    return 0;
}

static void read_times(struct trip *t) {
    const struct foreman_times *times = foreman_times(t->foreman);
    struct delivery *d = t->result;
    uint64_t whole_at = 0;
    for (uint32_t i = 0; i < t->config->nodes; i++) {
        const struct sim_depot_counts *n =
            sim_depot_counts(yard_depot(t->yard, yard_mover(t->yard, i)));
        whole_at = n->whole_at > whole_at ? n->whole_at : whole_at;
        d->again += n->again;
        d->read += n->loaded;
    }
    d->heard_ns = times->heard_at - times->asked_at;
    d->bytes_ns = whole_at - times->asked_at;
    d->known_ns = times->known_at - times->asked_at;
    d->ended_ns = t->config->start ? times->ended_at - times->asked_at : 0;
    d->spread_ns = d->bytes_ns - d->heard_ns;
}

static int run(struct trip *t, const uint32_t *switches) {
    const struct cargo *cargo = t->stock->cargoes[0];
    struct foreman_config f = {.nodes = t->config->nodes,
                               .order_bytes =
                                   (uint32_t)cargo->descriptor.len + ORDER_SLACK +
                                   (t->told == NULL ? 0 : t->config->nodes * SWITCH_RUN_BYTES),
                               .command_bytes = t->config->start ? COMMAND_BYTES : 0,
                               .exec_ns = t->config->exec_ns};
    struct prim_config prim = foreman_prim(&f, &t->config->link);
    struct yard_config y = yard_of(t->config, &prim, cargo->bundle.pieces, switches);
    fit_takers(&y, t->result->spread, t->told);
    t->foreman = foreman_new(&f);
    y.context = t->foreman;
    t->yard = yard_new(&y);
    *yard_stock(t->yard) = *t->stock; /* which it frees */
    t->stock = yard_stock(t->yard);
    int r = come_up(t);
    if (r == 0)
        r = travel(t);
    if (r == 0)
        read_times(t);
    yard_free(t->yard);
    foreman_free(t->foreman);
    return r;
}

static void choose(const struct delivery_config *c, struct delivery *d) {
    struct spread_terms t = terms_of(c, c->piece_bytes);
    d->spread = c->spread;
    d->piece_bytes = c->piece_bytes;
    if (d->piece_bytes == 0)
        d->piece_bytes = spread_piece_bytes(&c->spread, &t);
    t.piece_bytes = d->piece_bytes;
    if (c->spread.shape == SPREAD_AUTO)
        d->spread = spread_choose(&t);
    d->spread.receivers = c->nodes;
    d->predicted_ns = spread_cost_ns(&d->spread, &t);
}

static uint64_t bound(const struct delivery_config *c) {
    uint64_t doublings = 0, rate = c->link.bytes_per_s;
    while (UINT64_C(1) << doublings < c->nodes)
        doublings++;
    return doublings * c->link.latency_ns + (rate == 0 ? 0 : c->bytes * NS_PER_S / rate);
}

int delivery_run(const struct delivery_config *c, struct delivery *ret) {
    struct stock stock = {0};
    struct trip t = {.config = c, .result = ret, .stock = &stock};
    *ret = (struct delivery){.bound_ns = bound(c)};
    choose(c, ret);
    int r = load(&stock, c, ret->piece_bytes);
    if (r < 0)
        return r;
    const struct bundle *b = &stock.cargoes[0]->bundle;
    ret->pieces = b->pieces;
    struct spread_terms terms = {.piece_bytes = b->piece_bytes};
    ret->slots = c->slots == 0 ? spread_slots(&terms) : c->slots;
    uint32_t *switches = place_nodes(c);
    t.told = told_switches(c, switches);
    r = run(&t, switches);
    free(t.told);
    free(switches);
    return r;
}

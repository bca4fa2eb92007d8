/* SPDX-License-Identifier: MIT */
/* From waves and gathers to the state of each node: see liveness.h.
 *
 * A wave also counts nodes that are attached but no members yet, so a whole count proves nothing
 * about one that is silent: as long as anyone is, waves are followed by a gather. One takes half a
 * period at most; a wave that comes meanwhile is not followed by another. */
#include "rm/liveness.h"

#include "base/assert.h"

struct liveness {
    struct liveness_config config;
    bool asking;
    uint64_t tick;       /* of the newest wave */
    uint64_t asked_tick; /* of the wave that made us ask */
    uint64_t wave_ns;
    struct nodeset up;
    struct nodeset silent;
    struct nodeset fresh; /* came up since we asked: the answer is not about them */
    struct nodeset part;  /* scratch */
    struct liveness_news news;
    uint64_t *since_ns;     /* by node */
    uint64_t *first_missed; /* by node: the tick, while it is silent */
};

static void carve(struct liveness *l, const struct liveness_config *c, struct arena *a) {
    uint32_t universe = limits_universe(&c->limits);
    *l = (struct liveness){.config = *c};
    struct nodeset *sets[] = {&l->up,      &l->silent,      &l->fresh,     &l->part,
                              &l->news.up, &l->news.silent, &l->news.back, &l->news.down};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        nodeset_init(sets[i], universe, ARENA_TAKE(a, uint64_t, nodeset_bytes(universe) / 8));
    l->since_ns = ARENA_TAKE(a, uint64_t, universe);
    l->first_missed = ARENA_TAKE(a, uint64_t, universe);
}

size_t liveness_bytes(const struct liveness_config *c) {
    struct arena a;
    struct liveness scratch;
    arena_init(&a, NULL, 0);
    ARENA_TAKE(&a, struct liveness, 1);
    carve(&scratch, c, &a);
    return arena_used(&a);
}

struct liveness *liveness_new(const struct liveness_config *c, struct arena *a) {
    ASSERT(c->period_ns > 0 && c->limits.record_channels > 0);
    struct liveness *l = ARENA_TAKE(a, struct liveness, 1);
    carve(l, c, a);
    for (uint32_t n = 0; n < limits_universe(&c->limits); n++)
        l->since_ns[n] = 0;
    return l;
}

static void mark(struct liveness *l, const struct nodeset *nodes, uint64_t now) {
    NODESET_EACH (node, nodes)
        l->since_ns[node] = now;
}

static void on_nodes(struct liveness *l, const struct input *in) {
    const struct nodeset *nodes = in->nodes.nodes;
    nodeset_subtract(&l->silent, nodes);
    if (in->nodes.up) {
        nodeset_unite(&l->up, nodes);
        nodeset_unite(&l->fresh, nodes);
        nodeset_copy(&l->news.up, nodes);
    } else {
        nodeset_subtract(&l->up, nodes);
        nodeset_copy(&l->news.down, nodes);
    }
    mark(l, nodes, in->now);
}

/* Who of all members is there? */
static void ask(struct liveness *l, struct effects *out) {
    l->asking = true;
    l->asked_tick = l->tick;
    nodeset_clear(&l->fresh);
    nodeset_copy(&l->part, &l->up);
    nodeset_unite(&l->part, &l->silent);
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = (struct primitive){.kind = PRIMITIVE_GATHER,
                                    .tag = l->config.tag,
                                    .set = effects_copy_set(out, &l->part),
                                    .timeout_ns = l->config.period_ns / 2,
                                    .channel = NO_CHANNEL};
}

static void on_wave(struct liveness *l, const struct input *in, struct effects *out) {
    uint32_t members = nodeset_count(&l->up) + nodeset_count(&l->silent);
    l->tick = in->wave.tick;
    bool whole = in->wave.complete && in->wave.nodes >= members;
    if (whole)
        l->wave_ns = in->now - in->wave.started_ns;
    bool doubt = !whole || !nodeset_empty(&l->silent);
    if (doubt && members > 0 && !l->asking)
        ask(l, out);
}

static void on_gathered(struct liveness *l, const struct input *in) {
    l->asking = false;
    nodeset_copy(&l->news.back, &l->silent);
    nodeset_subtract(&l->news.back, in->gathered.missing);
    nodeset_and(&l->news.silent, in->gathered.missing, &l->up);
    nodeset_subtract(&l->news.silent, &l->fresh);
    nodeset_subtract(&l->silent, &l->news.back);
    nodeset_unite(&l->silent, &l->news.silent);
    nodeset_subtract(&l->up, &l->news.silent);
    nodeset_unite(&l->up, &l->news.back);
    mark(l, &l->news.back, in->now);
    mark(l, &l->news.silent, in->now);
    NODESET_EACH (node, &l->news.silent)
        l->first_missed[node] = l->asked_tick;
}

static void clear_news(struct liveness *l) {
    struct nodeset *sets[] = {&l->news.up, &l->news.silent, &l->news.back, &l->news.down};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        nodeset_clear(sets[i]);
}

const struct liveness_news *liveness_input(struct liveness *l, const struct input *in,
                                           struct effects *out) {
    clear_news(l);
    switch (in->kind) {
    case INPUT_NODES:
        on_nodes(l, in);
        break;
    case INPUT_WAVE:
        on_wave(l, in, out);
        break;
    case INPUT_GATHERED:
        if (l->asking && in->gathered.tag == l->config.tag)
            on_gathered(l, in);
        break;
    case INPUT_COMPLETION: /* refused: the next wave asks again */
        if (l->asking && in->completion.tag == l->config.tag)
            l->asking = false;
        break;
    default:
        break;
    }
    const struct liveness_news *n = &l->news;
    bool changed = !nodeset_empty(&n->up) || !nodeset_empty(&n->silent) ||
                   !nodeset_empty(&n->back) || !nodeset_empty(&n->down);
    return changed ? n : NULL;
}

struct liveness_node liveness_node(const struct liveness *l, uint32_t node) {
    ASSERT(node < l->up.universe);
    struct liveness_node n = {.state = LIVENESS_DOWN, .since_ns = l->since_ns[node]};
    if (nodeset_has(&l->up, node)) {
        n.state = LIVENESS_UP;
    } else if (nodeset_has(&l->silent, node)) {
        n.state = LIVENESS_SILENT;
        n.missed = l->tick - l->first_missed[node] + 1;
    }
    return n;
}

const struct nodeset *liveness_up(const struct liveness *l) {
    return &l->up;
}

const struct nodeset *liveness_silent(const struct liveness *l) {
    return &l->silent;
}

uint64_t liveness_wave_ns(const struct liveness *l) {
    return l->wave_ns;
}

/* SPDX-License-Identifier: MIT */
/* Asking, asking again, keeping the newest: see gather.h.
 *
 * The time of a gather is shared out evenly among its tries. A request that ends before its share is
 * over has met nodes that are no members: they may become some, so the next try waits for its turn. */
#include "rm/gather.h"

#include <string.h>

#include "base/assert.h"
#include "base/units.h"

enum gather_state {
    IDLE,
    ASKING,  /* the primitives have our request */
    WAITING, /* for the time of the next try */
};

struct gather {
    struct gather_config config;
    enum gather_state state;
    uint32_t tries; /* left */
    uint64_t deadline;
    uint64_t next_at; /* the end of this try's share of the time */
    struct nodeset missing;
    struct nodeset known; /* whose record is here */
    struct nodeset part;  /* scratch */
    uint64_t *at;         /* by node */
    uint16_t *lengths;
    uint8_t *records;
};

static void set_init(struct nodeset *s, uint32_t universe, struct arena *a) {
    nodeset_init(s, universe, ARENA_TAKE(a, uint64_t, nodeset_bytes(universe) / 8));
}

static void carve(struct gather *g, const struct gather_config *c, struct arena *a) {
    uint32_t universe = limits_universe(&c->limits);
    *g = (struct gather){.config = *c};
    set_init(&g->missing, universe, a);
    set_init(&g->known, universe, a);
    set_init(&g->part, universe, a);
    g->at = ARENA_TAKE(a, uint64_t, universe);
    g->lengths = ARENA_TAKE(a, uint16_t, universe);
    g->records = ARENA_TAKE(a, uint8_t, (size_t)universe * c->limits.record_bytes);
}

size_t gather_bytes(const struct gather_config *c) {
    struct arena a;
    struct gather scratch;
    arena_init(&a, NULL, 0);
    ARENA_TAKE(&a, struct gather, 1);
    carve(&scratch, c, &a);
    return arena_used(&a);
}

struct gather *gather_new(const struct gather_config *c, struct arena *a) {
    ASSERT(c->tries >= 1 && c->channel < c->limits.record_channels);
    struct gather *g = ARENA_TAKE(a, struct gather, 1);
    carve(g, c, a);
    return g;
}

/* ---- asking ---- */

static void ask(struct gather *g, uint64_t now, struct effects *out) {
    uint64_t share = (g->deadline - now) / g->tries--;
    g->state = ASKING;
    g->next_at = now + share;
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = (struct primitive){.kind = PRIMITIVE_GATHER,
                                    .tag = g->config.tag,
                                    .set = effects_copy_set(out, &g->missing),
                                    .timeout_ns = share,
                                    .channel = g->config.channel};
}

bool gather_start(struct gather *g, const struct nodeset *set, uint64_t timeout_ns, uint64_t now,
                  struct effects *out) {
    if (g->state != IDLE || nodeset_empty(set))
        return false;
    nodeset_copy(&g->missing, set);
    g->tries = g->config.tries;
    g->deadline = units_after(now, timeout_ns);
    ask(g, now, out);
    return true;
}

/* A request has ended: is that all, or is there another try? */
static enum gather_news decide(struct gather *g, uint64_t now, struct effects *out) {
    bool complete = nodeset_empty(&g->missing);
    if (complete || g->tries == 0 || now >= g->deadline) {
        g->state = IDLE;
        return complete ? GATHER_COMPLETE : GATHER_ENDED;
    }
    if (now >= g->next_at) {
        ask(g, now, out);
    } else {
        g->state = WAITING;
        effects_timer(out, g->config.timer, g->next_at);
    }
    return GATHER_NOTHING;
}

/* ---- what is known ---- */

static void keep(struct gather *g, const struct reply *r, uint64_t now) {
    if (r->node >= g->known.universe || r->record.len > g->config.limits.record_bytes)
        return;
    g->at[r->node] = now;
    g->lengths[r->node] = (uint16_t)r->record.len;
    if (r->record.len > 0)
        memcpy(g->records + (size_t)r->node * g->config.limits.record_bytes, r->record.at,
               r->record.len);
    nodeset_add(&g->known, r->node);
}

/* Who has answered without a record has none: it may be a new incarnation. */
static enum gather_news on_gathered(struct gather *g, const struct input *in, struct effects *out) {
    nodeset_copy(&g->part, &g->missing);
    nodeset_subtract(&g->part, in->gathered.missing);
    nodeset_subtract(&g->known, &g->part);
    nodeset_subtract(&g->missing, &g->part);
    struct reply r;
    for (size_t at = 0; reply_next(in->gathered.records, &at, &r);)
        keep(g, &r, in->now);
    return decide(g, in->now, out);
}

enum gather_news gather_input(struct gather *g, const struct input *in, struct effects *out) {
    switch (in->kind) {
    case INPUT_GATHERED:
        if (g->state == ASKING && in->gathered.tag == g->config.tag)
            return on_gathered(g, in, out);
        break;
    case INPUT_COMPLETION: /* refused: we are not the root yet, or there are too many */
        if (g->state == ASKING && in->completion.tag == g->config.tag)
            return decide(g, in->now, out);
        break;
    case INPUT_TIMER:
        if (g->state == WAITING && in->timer.id == g->config.timer) {
            if (in->now >= g->deadline)
                return decide(g, in->now, out);
            ask(g, in->now, out);
        }
        break;
    case INPUT_NODES:
        if (!in->nodes.up)
            nodeset_subtract(&g->known, in->nodes.nodes);
        break;
    default:
        break;
    }
    return GATHER_NOTHING;
}

bool gather_busy(const struct gather *g) {
    return g->state != IDLE;
}

const struct nodeset *gather_missing(const struct gather *g) {
    return &g->missing;
}

bool gather_get(const struct gather *g, uint32_t node, struct gather_record *ret) {
    if (!nodeset_has(&g->known, node))
        return false;
    size_t each = g->config.limits.record_bytes;
    *ret =
        (struct gather_record){bytes_of(g->records + node * each, g->lengths[node]), g->at[node]};
    return true;
}

void gather_publish(uint32_t channel, struct bytes record, struct effects *out) {
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = (struct primitive){
        .kind = PRIMITIVE_RECORD, .channel = channel, .body = effects_copy(out, record)};
}

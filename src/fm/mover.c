/* SPDX-License-Identifier: MIT */
/* The mover's step: which input is whose affair. */
#include "fm/mover.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/units.h"
#include "fm/inside.h"

struct mover_config mover_usual(uint32_t universe, uint32_t self) {
    return (struct mover_config){.universe = universe,
                                 .self = self,
                                 .hauls = 48,
                                 .takers = 2048,
                                 .pieces = BUNDLE_PAGES_MAX * BUNDLE_PAGE_PIECES_MAX,
                                 .slot_bytes = 8 * MIB,
                                 .beat_ns = NS_PER_S,
                                 .patience_ns = 30 * NS_PER_S};
}

static struct mover *carve(const struct mover_config *c, struct arena *a) {
    size_t set = nodeset_bytes(c->universe) / 8;
    size_t have = (c->pieces + 7) / 8;
    struct mover *m = ARENA_TAKE(a, struct mover, 1);
    struct haul *hauls = ARENA_TAKE(a, struct haul, c->hauls);
    struct taker *takers = ARENA_TAKE(a, struct taker, c->takers);
    uint64_t *sets = ARENA_TAKE(a, uint64_t, (2 + (size_t)c->hauls) * set);
    uint8_t *bits = ARENA_TAKE(a, uint8_t, c->hauls * have);
    uint32_t *switches = ARENA_TAKE(a, uint32_t, c->universe);
    size_t plan = 2 * (size_t)c->universe + 1; /* an order, and ends of groups */
    uint32_t *plans = ARENA_TAKE(a, uint32_t, c->hauls * plan);
    if (arena_measuring(a))
        return NULL;
    memset(m, 0, sizeof *m);
    m->config = *c;
    m->hauls = hauls;
    m->takers = takers;
    m->switches = switches;
    nodeset_init(&m->scratch[0], c->universe, sets);
    nodeset_init(&m->scratch[1], c->universe, sets + set);
    for (uint32_t i = 0; i < c->hauls; i++) {
        hauls[i].transfer = 0;
        hauls[i].have = bits + i * have;
        hauls[i].order = plans + i * plan;
        hauls[i].ends = hauls[i].order + c->universe;
        nodeset_init(&hauls[i].set, c->universe, sets + (2 + (size_t)i) * set);
    }
    return m;
}

size_t mover_bytes(const struct mover_config *c) {
    struct arena a;
    arena_init(&a, NULL, 0);
    carve(c, &a);
    return arena_used(&a);
}

struct mover *mover_new(const struct mover_config *c, struct arena *a) {
    return carve(c, a);
}

bool mover_look(const struct mover *m, uint64_t transfer, struct mover_view *ret) {
    const struct haul *h = haul_find(m, transfer);
    if (h == NULL)
        return false;
    *ret = (struct mover_view){.pieces = h->pieces,
                               .here = h->have_count,
                               .bytes_put = h->bytes_put,
                               .furthest = h->furthest,
                               .met_at = h->met_at,
                               .first_at = h->first_at,
                               .last_at = h->last_at,
                               .asked = h->asked,
                               .spared = h->spared};
    TAKERS_EACH (t, m)
        ret->takers += t->haul == h;
    return true;
}

bool mover_idle(const struct mover *m) {
    HAULS_EACH (h, m)
        return false;
    TAKERS_EACH (t, m)
        return false;
    return true;
}

/* Times are looked after a few times a beat, and only while there is something to move. The timer is
 * never put off: where there is much to do it would never be its turn. */
static void set_timer(struct mover *m) {
    if (mover_idle(m))
        return;
    uint64_t at = m->now + m->config.beat_ns / 4;
    HAULS_EACH (h, m)
        for (uint32_t tree = 0; tree < h->trees; tree++)
            if (way_due(&h->ways[tree]) < at)
                at = way_due(&h->ways[tree]);
    if (m->timer_at != 0 && m->timer_at <= at)
        return;
    m->timer_at = at;
    effects_timer(m->out, TIMER_TICK, at);
}

static void on_timer(struct mover *m) {
    m->timer_at = 0;
    HAULS_EACH (h, m) {
        for (uint32_t tree = 0; h->phase == HAUL_MOVING && tree < h->trees; tree++)
            way_tick(m, h, tree);
        if (h->phase == HAUL_MOVING && !h->gives && m->now - h->moved_at > m->config.patience_ns)
            haul_fail(m, h, -ETIMEDOUT, bytes_from_str("nobody gives it"));
        if (haul_stuck(m, h))
            taker_dismiss(m, h, -EBUSY, bytes_from_str("its disk does not answer"));
    }
    TAKERS_EACH (t, m)
        taker_tick(m, t);
}

static void on_link_up(struct mover *m, const struct input_link *in) {
    if (in->role == ROLE_HOST) {
        m->host = in->link;
        haul_report(m);
    } else if (in->role == ROLE_GIVER) {
        way_up(m, in);
    } else if (in->role == ROLE_TAKER) {
        taker_up(m, in);
    }
}

static void on_link_down(struct mover *m, const struct input_link *in) {
    if (in->role == ROLE_HOST && in->link == m->host)
        m->host = 0;
    else if (in->role == ROLE_GIVER)
        way_down(m, in);
    else if (in->role == ROLE_TAKER)
        taker_down(m, in->link);
}

/* What the manager says; a command says it to its own mover without a link. */
static void on_order(struct mover *m, const struct input_message *in) {
    union message msg;
    if (message_decode(in->type, in->body, m->scratch, &msg) < 0)
        return;
    if (in->type == MESSAGE_TRANSFER)
        haul_begin(m, &msg.transfer);
    else if (in->type == MESSAGE_ENOUGH)
        haul_enough(m, &msg.enough);
}

static void on_message(struct mover *m, const struct input_message *in) {
    uint32_t tree;
    if (in->link == 0 || in->link == m->host) {
        on_order(m, in);
        return;
    }
    struct haul *h = way_of_link(m, in->link, &tree);
    struct taker *t = h == NULL ? taker_find(m, in->link) : NULL;
    if (h != NULL)
        way_message(m, h, tree, in);
    else if (t != NULL)
        taker_message(m, t, in);
}

static void step(void *self, const struct input *in, struct effects *out) {
    struct mover *m = self;
    m->now = in->now;
    m->out = out;
    switch (in->kind) {
    case INPUT_LINK_UP:
        on_link_up(m, &in->link);
        break;
    case INPUT_LINK_DOWN:
        on_link_down(m, &in->link);
        break;
    case INPUT_MESSAGE:
        on_message(m, &in->message);
        break;
    case INPUT_PUT:
        way_put(m, &in->put);
        break;
    case INPUT_SENT:
        slot_sent(m, &in->sent);
        break;
    case INPUT_BUNDLE:
        haul_opened(m, &in->bundle);
        break;
    case INPUT_PAGE:
        haul_page(m, &in->page);
        break;
    case INPUT_PIECE:
        haul_piece(m, &in->piece);
        break;
    case INPUT_TIMER:
        on_timer(m);
        break;
    default:
        break;
    }
    set_timer(m);
}

struct machine mover_machine(struct mover *m) {
    return (struct machine){.self = m, .step = step};
}

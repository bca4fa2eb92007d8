/* SPDX-License-Identifier: MIT */
/* The test machine: see tester.h.
 *
 * Every write carries the tag of its request: all words of an XFER's body or of a BULK's block, and
 * the value that a compare writes. Counters follow the clock in quanta, so they are close to each
 * other on all nodes and conditions on them are now true, now false, now about to become true. */
#include "sim/tester.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { TIMER_ACT };
enum { BUFFER_BASE = 1 << 30 };

void tester_init(struct tester *t, struct tester_config *config, uint32_t node, uint32_t boots,
                 struct globals globals) {
    uint64_t *storage = t->set_storage;
    if (!storage)
        storage = malloc(nodeset_bytes(config->layout.universe));
    ASSERT(storage);
    *t =
        (struct tester){.config = config, .node = node, .globals = globals, .set_storage = storage};
    nodeset_init(&t->set, config->layout.universe, storage);
    struct random seed;
    random_init(&seed, config->seed);
    t->random = random_fork(&seed, ((uint64_t)node << 32) + boots);
}

void tester_fini(struct tester *t) {
    free(t->set_storage);
    t->set_storage = NULL;
}

/* ---- Outstanding requests ------------------------------------------------------------------- */

static uint32_t free_slot(const struct tester *t) {
    for (uint32_t i = 0; i < t->config->limits.outstanding; i++)
        if (!t->slots[i].used)
            return i;
    return TESTER_OUTSTANDING_MAX;
}

static void release(struct tester *t, uint32_t slot, struct effects *out) {
    if (t->slots[slot].buffer)
        effects_add(out, EFFECT_BUFFER_CLOSE)->buffer.buffer = (uint32_t)BUFFER_BASE + slot;
    t->slots[slot] = (struct tester_slot){0};
}

static void answered(struct tester *t, uint64_t tag, struct effects *out) {
    for (uint32_t i = 0; i < TESTER_OUTSTANDING_MAX; i++)
        if (t->slots[i].used && t->slots[i].tag == tag)
            release(t, i, out);
}

/* ---- Sets ----------------------------------------------------------------------------------- */

static void draw_members(struct tester *t) {
    struct random *r = &t->random;
    uint32_t universe = t->config->layout.universe;
    nodeset_clear(&t->set);
    switch (random_below(r, 5)) {
    case 0: /* all */
        nodeset_add_range(&t->set, 0, universe - 1);
        break;
    case 1: /* a few */
        for (uint64_t i = random_between(r, 1, 3); i > 0; i--)
            nodeset_add(&t->set, (uint32_t)random_below(r, universe));
        break;
    case 2: { /* neighbours */
        uint32_t first = (uint32_t)random_below(r, universe);
        nodeset_add_range(&t->set, first, (uint32_t)random_between(r, first, universe - 1));
        break;
    }
    default: { /* one in so many */
        uint64_t one_in = random_between(r, 1, 6);
        for (uint32_t n = 0; n < universe; n++)
            if (random_chance(r, 1, one_in))
                nodeset_add(&t->set, n);
        break;
    }
    }
}

/* Mostly without nodes that are down, sometimes with or without the root on purpose. */
static const struct nodeset *draw_set(struct tester *t) {
    struct random *r = &t->random;
    const struct history *h = t->config->history;
    draw_members(t);
    if (random_chance(r, 1, 4))
        nodeset_add(&t->set, t->config->layout.root);
    else if (random_chance(r, 1, 4))
        nodeset_remove(&t->set, t->config->layout.root);
    bool alive_only = random_chance(r, 7, 8);
    for (uint32_t n = 0; alive_only && n < t->config->layout.universe; n++)
        if (history_open_life(h, n) == NO_LIFE)
            nodeset_remove(&t->set, n);
    if (nodeset_empty(&t->set))
        nodeset_add(&t->set, t->node);
    return &t->set;
}

static void all_nodes(struct tester *t) {
    nodeset_clear(&t->set);
    nodeset_add_range(&t->set, 0, t->config->layout.universe - 1);
}

/* ---- Requests ------------------------------------------------------------------------------- */

static uint64_t draw_timeout(struct tester *t) {
    uint64_t period = t->config->period_ns;
    uint64_t kind = random_below(&t->random, 8);
    if (kind == 0)
        return random_between(&t->random, period / 16 + 1, period);
    if (kind < 4)
        return random_between(&t->random, period, period * 4);
    return random_between(&t->random, period * 4, period * 24);
}

/* A request of the kind with a tag of its own, to the set in the scratch. */
static struct primitive begin(struct tester *t, enum primitive_kind kind) {
    return (struct primitive){.kind = kind,
                              .tag = history_next_tag(t->config->history),
                              .set = &t->set,
                              .timeout_ns = draw_timeout(t),
                              .remote_event = NO_EVENT,
                              .local_event = NO_EVENT,
                              .write_variable = NO_VARIABLE};
}

static void emit(struct tester *t, const struct primitive *r, uint64_t now, struct effects *out) {
    uint32_t index = history_request(t->config->history, t->node, now, r);
    t->config->history->ops[index].closing = t->config->stage == TESTER_CLOSE;
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = *r;
    e->request.set = effects_copy_set(out, r->set);
    if (r->kind == PRIMITIVE_STROBE)
        return;
    t->config->asked++;
    uint32_t slot = free_slot(t);
    ASSERT(slot < TESTER_OUTSTANDING_MAX);
    t->slots[slot] =
        (struct tester_slot){.used = true, .buffer = r->kind == PRIMITIVE_BULK, .tag = r->tag};
}

static struct bytes stamp(struct effects *out, uint64_t tag, uint32_t len) {
    if (len == 0)
        return (struct bytes){0};
    uint8_t *room = effects_room(out, len);
    for (uint32_t i = 0; i < len; i += 8)
        store_le64(room + i, tag);
    return bytes_of(room, len);
}

static uint32_t draw_data_event(struct tester *t) {
    uint32_t first;
    uint32_t count = layout_data_events(&t->config->layout, &first);
    return first + (uint32_t)random_below(&t->random, count);
}

static void ask_xfer(struct tester *t, uint64_t now, struct effects *out) {
    const struct layout *l = &t->config->layout;
    struct primitive r = begin(t, PRIMITIVE_XFER);
    uint32_t run = t->config->limits.body_bytes / l->cell_bytes;
    uint32_t cell = (uint32_t)random_below(&t->random, l->cells);
    if (run > l->cells - cell)
        run = l->cells - cell;
    uint32_t cells = (uint32_t)random_between(&t->random, 1, run);
    r.hint = random_chance(&t->random, 1, 4);
    if (random_chance(&t->random, 1, 10)) { /* nothing but a signal */
        r.heap_offset = t->config->empties++ % l->heap_bytes;
        r.remote_event = 0;
        cells = 0;
    } else {
        r.heap_offset = cell * l->cell_bytes;
        if (random_chance(&t->random, 7, 8))
            r.remote_event = draw_data_event(t);
    }
    if (random_chance(&t->random, 1, 3))
        r.local_event = layout_local_event(l);
    r.body = stamp(out, r.tag, cells * l->cell_bytes);
    emit(t, &r, now, out);
}

static void ask_bulk(struct tester *t, uint64_t now, struct effects *out) {
    const struct layout *l = &t->config->layout;
    struct primitive r = begin(t, PRIMITIVE_BULK);
    uint32_t bulk = (uint32_t)random_below(&t->random, l->bulks);
    r.heap_offset = l->bulk_offset[bulk];
    r.buffer = (uint32_t)BUFFER_BASE + free_slot(t);
    r.buffer_bytes = l->bulk_bytes[bulk];
    r.timeout_ns = random_between(&t->random, 8, 64) * t->config->period_ns;
    if (random_chance(&t->random, 7, 8))
        r.remote_event = draw_data_event(t);
    uint8_t *bytes = world_buffer(t->config->world, t->node, r.buffer, r.buffer_bytes);
    for (uint64_t i = 0; i < r.buffer_bytes; i += 8)
        store_le64(bytes + i, r.tag);
    emit(t, &r, now, out);
}

/* A condition on a counter, or on a variable that compares write. */
static void draw_condition(struct tester *t, struct primitive *r) {
    const struct layout *l = &t->config->layout;
    struct random *random = &t->random;
    r->variable = (uint32_t)random_below(random, l->variables);
    uint64_t mine = t->globals.variables[r->variable];
    if (layout_is_counter(l, r->variable)) {
        r->relation = random_chance(random, 3, 4) ? RELATION_GE : RELATION_LT;
        uint64_t by = random_below(random, 4);
        if (r->relation == RELATION_GE)
            r->value = mine > by ? mine - by : 0;
        else
            r->value = mine + by;
        return;
    }
    switch (random_below(random, 4)) {
    case 0:
        r->relation = RELATION_EQ;
        r->value = mine;
        break;
    case 1:
        r->relation = RELATION_NE;
        r->value = mine;
        break;
    case 2:
        r->relation = random_chance(random, 1, 2) ? RELATION_GE : RELATION_LT;
        r->value = mine;
        break;
    default: /* always true */
        r->relation = RELATION_NE;
        r->value = UINT64_MAX;
        break;
    }
}

static void ask_compare(struct tester *t, enum primitive_kind kind, uint64_t now,
                        struct effects *out) {
    const struct layout *l = &t->config->layout;
    struct primitive r = begin(t, kind);
    draw_condition(t, &r);
    if (kind == PRIMITIVE_STANDING && r.relation == RELATION_GE)
        r.value += random_below(&t->random, 4);
    if (random_chance(&t->random, 3, 4)) {
        uint64_t which = random_between(&t->random, l->counters, l->variables - 1);
        r.write_variable = (uint32_t)which;
        r.write_value = r.tag;
    }
    if (random_chance(&t->random, 1, 4))
        r.local_event = layout_local_event(l);
    emit(t, &r, now, out);
}

static void ask_strobe(struct tester *t, uint64_t now, struct effects *out) {
    struct primitive r = begin(t, PRIMITIVE_STROBE);
    r.channel = (uint32_t)random_below(&t->random, t->config->layout.events);
    r.body = stamp(out, r.tag, 8);
    emit(t, &r, now, out);
}

static void set_counter(struct tester *t, uint64_t now, struct effects *out) {
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = (struct primitive){.kind = PRIMITIVE_SET,
                                    .set = &t->set,
                                    .remote_event = NO_EVENT,
                                    .local_event = NO_EVENT,
                                    .write_variable = NO_VARIABLE};
    uint64_t back = random_chance(&t->random, 1, 8) ? random_below(&t->random, 3) : 0;
    uint64_t value = now / (t->config->gap_ns * 2 + 1);
    e->request.variable = (uint32_t)random_below(&t->random, t->config->layout.counters);
    e->request.value = value > back ? value - back : 0;
    history_set(t->config->history, t->node, now, e->request.variable, e->request.value);
}

static void ask_gather(struct tester *t, uint64_t now, struct effects *out) {
    draw_set(t);
    struct primitive r = begin(t, PRIMITIVE_GATHER);
    r.channel = (uint32_t)random_below(&t->random, t->config->limits.record_channels);
    if (random_chance(&t->random, 1, 4))
        r.channel = NO_CHANNEL;
    emit(t, &r, now, out);
}

static void store_record(struct tester *t, uint64_t now, struct effects *out) {
    const struct limits *l = &t->config->limits;
    struct primitive r = {.kind = PRIMITIVE_RECORD};
    r.channel = (uint32_t)random_below(&t->random, l->record_channels);
    uint64_t value = history_record(t->config->history, t->node, now, r.channel);
    r.body = stamp(out, value, 8 * (uint32_t)random_between(&t->random, 1, l->record_bytes / 8));
    effects_add(out, EFFECT_REQUEST)->request = r;
}

/* ---- Stages --------------------------------------------------------------------------------- */

static void ask(struct tester *t, uint64_t now, struct effects *out) {
    bool root = t->node == t->config->layout.root;
    if (random_chance(&t->random, 1, root ? 3 : 8)) {
        bool gathers = random_chance(&t->random, root ? 3 : 1, root ? 4 : 8); /* or is refused */
        if (gathers && free_slot(t) < TESTER_OUTSTANDING_MAX)
            ask_gather(t, now, out);
        else
            store_record(t, now, out);
        return;
    }
    uint64_t kind = random_below(&t->random, 100);
    if (kind < 25 || free_slot(t) == TESTER_OUTSTANDING_MAX) {
        set_counter(t, now, out);
        return;
    }
    draw_set(t);
    if (kind < 33)
        ask_strobe(t, now, out);
    else if (kind < 62)
        ask_xfer(t, now, out);
    else if (kind < 87)
        ask_compare(t, PRIMITIVE_COMPARE, now, out);
    else if (kind < 92)
        ask_compare(t, PRIMITIVE_STANDING, now, out);
    else
        ask_bulk(t, now, out);
}

/* A compare with a write, an XFER, a gather, to all nodes; none has a reason to fail. */
static void close_run(struct tester *t, uint64_t now, struct effects *out) {
    struct tester_config *c = t->config;
    if (t->node != c->layout.root || c->closing >= TESTER_CLOSINGS ||
        free_slot(t) == TESTER_OUTSTANDING_MAX)
        return;
    all_nodes(t);
    static const enum primitive_kind kinds[TESTER_CLOSINGS] = {PRIMITIVE_COMPARE, PRIMITIVE_XFER,
                                                               PRIMITIVE_GATHER};
    struct primitive r = begin(t, kinds[c->closing]);
    r.timeout_ns = c->period_ns * 64;
    if (c->closing == 0) {
        r.relation = RELATION_NE;
        r.value = UINT64_MAX;
        r.write_variable = c->layout.variables - 1;
        r.write_value = r.tag;
    } else if (c->closing == 1) {
        r.remote_event = draw_data_event(t);
        r.body = stamp(out, r.tag, c->layout.cell_bytes);
    }
    c->closing++;
    emit(t, &r, now, out);
}

static void act(struct tester *t, uint64_t now, struct effects *out) {
    if (t->config->stage == TESTER_ASK)
        ask(t, now, out);
    else if (t->config->stage == TESTER_CLOSE)
        close_run(t, now, out);
}

static void arm(struct tester *t, uint64_t now, struct effects *out) {
    uint64_t gap = t->config->gap_ns;
    if (t->config->stage != TESTER_ASK && gap > t->config->period_ns)
        gap = t->config->period_ns;
    effects_timer(out, TIMER_ACT, now + 1 + random_below(&t->random, 2 * gap));
}

static void step(void *self, const struct input *in, struct effects *out) {
    struct tester *t = self;
    history_input(t->config->history, t->node, in, t->globals);
    switch (in->kind) {
    case INPUT_JOINED:
        for (uint32_t i = 0; i < TESTER_OUTSTANDING_MAX; i++)
            if (t->slots[i].used) /* of a former incarnation */
                release(t, i, out);
        t->member = true;
        arm(t, in->now, out);
        break;
    case INPUT_FENCED:
        t->member = false;
        effects_timer(out, TIMER_ACT, 0);
        break;
    case INPUT_COMPLETION:
        if (in->completion.outcome != OUTCOME_UNKNOWN)
            answered(t, in->completion.tag, out);
        break;
    case INPUT_GATHERED:
        answered(t, in->gathered.tag, out);
        break;
    case INPUT_TIMER:
        if (!t->member)
            break;
        act(t, in->now, out);
        arm(t, in->now, out);
        break;
    default:
        break;
    }
}

struct machine tester_machine(struct tester *t) {
    return (struct machine){.self = t, .step = step};
}

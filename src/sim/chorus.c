/* SPDX-License-Identifier: MIT */
/* Daemons that ask for what they are told: see chorus.h. */
#include "sim/chorus.h"

#include <stdlib.h>

#include "base/assert.h"

enum { TIMER_POLL = 1 };

struct singer {
    struct chorus *chorus;
    uint32_t node;
    struct globals globals;
    uint64_t joined_ns;
    uint64_t down_ns;
    bool speaks;
};

struct chorus {
    struct chorus_config config;
    struct history *history;
    struct singer *singers;
    struct nodeset up;
    uint64_t *up_storage;
    struct chorus_op **ops;
    uint32_t op_count, op_cap;
    uint32_t asked; /* all operations before this one have been asked */
};

struct chorus *chorus_new(const struct chorus_config *config) {
    uint32_t universe = limits_universe(&config->limits);
    struct chorus *c = calloc(1, sizeof *c);
    ASSERT(c != NULL);
    c->config = *config;
    c->history = history_new(&config->layout);
    c->singers = calloc(universe, sizeof *c->singers);
    c->up_storage = calloc(1, nodeset_bytes(universe));
    ASSERT(c->history != NULL && c->singers != NULL && c->up_storage != NULL);
    nodeset_init(&c->up, universe, c->up_storage);
    for (uint32_t n = 0; n < universe; n++) {
        c->singers[n].chorus = c;
        c->singers[n].node = n;
        c->singers[n].speaks = nodeset_has(config->speakers, n);
    }
    return c;
}

void chorus_free(struct chorus *c) {
    if (c == NULL)
        return;
    for (uint32_t i = 0; i < c->op_count; i++) {
        free(c->ops[i]->set_storage);
        free(c->ops[i]);
    }
    free(c->ops);
    free(c->singers);
    free(c->up_storage);
    history_free(c->history);
    free(c);
}

/* ---- asking ---- */

uint32_t chorus_say(struct chorus *c, uint32_t node, const struct primitive *request) {
    ASSERT(c->singers[node].speaks);
    if (c->op_count == c->op_cap) {
        c->op_cap = c->op_cap ? c->op_cap * 2 : 32;
        c->ops = realloc(c->ops, c->op_cap * sizeof(struct chorus_op *));
        ASSERT(c->ops != NULL);
    }
    struct chorus_op *op = calloc(1, sizeof *op);
    ASSERT(op != NULL);
    op->node = node;
    op->request = *request;
    if (request->set != NULL) {
        op->set_storage = malloc(nodeset_bytes(request->set->universe));
        ASSERT(op->set_storage != NULL);
        nodeset_init(&op->set, request->set->universe, op->set_storage);
        nodeset_copy(&op->set, request->set);
        op->request.set = &op->set;
    }
    c->ops[c->op_count] = op;
    return c->op_count++;
}

struct chorus_op *chorus_op(const struct chorus *c, uint32_t number) {
    ASSERT(number < c->op_count);
    return c->ops[number];
}

static struct bytes stamp(struct effects *out, uint64_t tag, size_t len) {
    if (len == 0)
        return (struct bytes){0};
    uint8_t *room = effects_room(out, len);
    for (size_t i = 0; i + 8 <= len; i += 8)
        store_le64(room + i, tag);
    return bytes_of(room, len);
}

static void ask(struct chorus *c, struct chorus_op *op, uint64_t now, struct effects *out) {
    struct primitive *r = &op->request;
    op->asked = true;
    op->asked_ns = now;
    if (r->kind == PRIMITIVE_SET) {
        history_set(c->history, op->node, now, r->variable, r->value);
        op->answered = true; /* it is local */
        op->answered_ns = now;
    } else {
        r->tag = history_next_tag(c->history);
        r->write_value = r->tag;
        r->body = stamp(out, r->tag, r->body.len);
        uint32_t index = history_request(c->history, op->node, now, r);
        c->history->ops[index].closing = op->closing;
    }
    struct effect *e = effects_add(out, EFFECT_REQUEST);
    e->request = *r;
    if (r->set != NULL)
        e->request.set = effects_copy_set(out, r->set);
}

static void on_poll(struct singer *s, uint64_t now, struct effects *out) {
    struct chorus *c = s->chorus;
    for (uint32_t i = c->asked; i < c->op_count; i++)
        if (!c->ops[i]->asked && c->ops[i]->node == s->node)
            ask(c, c->ops[i], now, out);
    while (c->asked < c->op_count && c->ops[c->asked]->asked)
        c->asked++;
    effects_timer(out, TIMER_POLL, now + c->config.poll_ns);
}

/* ---- hearing ---- */

static void on_completion(struct chorus *c, const struct input *in) {
    for (uint32_t i = c->op_count; i-- > 0;) {
        struct chorus_op *op = c->ops[i];
        if (!op->asked || op->request.tag != in->completion.tag ||
            op->request.kind == PRIMITIVE_SET)
            continue;
        if (in->completion.outcome == OUTCOME_UNKNOWN) {
            op->unknown_ns = in->now;
            return;
        }
        op->answered = true;
        op->answered_ns = in->now;
        op->completion = in->completion;
        return;
    }
}

static void on_nodes(struct chorus *c, const struct input *in) {
    const struct input_nodes *nodes = &in->nodes;
    if (nodes->up) {
        nodeset_unite(&c->up, nodes->nodes);
        return;
    }
    nodeset_subtract(&c->up, nodes->nodes);
    NODESET_EACH (n, nodes->nodes)
        c->singers[n].down_ns = in->now;
}

static void step(void *self, const struct input *in, struct effects *out) {
    struct singer *s = self;
    history_input(s->chorus->history, s->node, in, s->globals);
    switch (in->kind) {
    case INPUT_JOINED:
        s->joined_ns = in->now;
        if (s->speaks)
            effects_timer(out, TIMER_POLL, in->now + s->chorus->config.poll_ns);
        break;
    case INPUT_FENCED:
        effects_timer(out, TIMER_POLL, 0);
        break;
    case INPUT_TIMER:
        on_poll(s, in->now, out);
        break;
    case INPUT_COMPLETION:
        on_completion(s->chorus, in);
        break;
    case INPUT_NODES:
        on_nodes(s->chorus, in);
        break;
    default:
        break;
    }
}

struct machine chorus_daemon(void *context, uint32_t node, struct globals globals) {
    struct chorus *c = context;
    c->singers[node].globals = globals;
    return (struct machine){.self = &c->singers[node], .step = step};
}

void chorus_observe(void *context, struct world *w, uint32_t node) {
    struct chorus *c = context;
    const struct prim *prim = world_prim(w, node);
    if (prim == NULL)
        return;
    struct prim_status status;
    prim_status(prim, &status);
    history_observe(c->history, node, world_now(w), world_globals(w, node), world_heap(w, node),
                    status.epoch);
}

void chorus_crash(struct chorus *c, uint32_t node, uint64_t now) {
    history_crash(c->history, node, now);
    if (node >= c->config.limits.nodes)
        nodeset_clear(&c->up); /* the next root says who there is */
}

uint32_t chorus_up(const struct chorus *c) {
    return nodeset_count(&c->up);
}

uint64_t chorus_down_ns(const struct chorus *c, uint32_t node) {
    return c->singers[node].down_ns;
}

uint64_t chorus_joined_ns(const struct chorus *c, uint32_t node) {
    return c->singers[node].joined_ns;
}

const struct history *chorus_history(const struct chorus *c) {
    return c->history;
}

/* SPDX-License-Identifier: MIT */
/* The stack: see stack.h.
 *
 * The effects list doubles as the work queue: requests and notices in it are carried out in place,
 * in order, while the list grows behind them. It ends because a notice is never answered by a
 * notice and every request is bounded by the daemon's own limits. */
#include "machine/stack.h"

#include "base/assert.h"

static void run(struct stack *s, enum layer layer, const struct input *in, struct effects *out) {
    uint32_t from = out->count;
    struct machine *m = layer == LAYER_PRIM ? &s->prim : &s->daemon;
    m->step(m->self, in, out);
    for (uint32_t i = from; i < out->count; i++) {
        enum effect_kind kind = out->list[i].kind;
        if (kind == EFFECT_TIMER || kind == EFFECT_PERSIST || kind == EFFECT_OPEN)
            out->list[i].layer = (uint8_t)layer;
    }
}

/* Carries out what the machines have to say to each other, from effect `from` on. */
static void settle(struct stack *s, uint32_t from, uint64_t now, struct effects *out) {
    for (uint32_t i = from; i < out->count; i++) {
        struct effect *e = &out->list[i];
        if (e->kind == EFFECT_RAISE) {
            struct input up = e->raise;
            e->kind = EFFECT_NONE;
            run(s, LAYER_DAEMON, &up, out);
        } else if (e->kind == EFFECT_REQUEST) {
            struct input down = {.kind = INPUT_REQUEST, .now = now, .request = e->request};
            e->kind = EFFECT_NONE;
            run(s, LAYER_PRIM, &down, out);
        }
    }
}

void stack_step(struct stack *s, enum layer layer, const struct input *in, struct effects *out) {
    uint32_t from = out->count;
    run(s, layer, in, out);
    settle(s, from, in->now, out);
}

void stack_boot(struct stack *s, const struct input *in, struct effects *out) {
    ASSERT(in->kind == INPUT_BOOT);
    uint32_t from = out->count;
    run(s, LAYER_PRIM, in, out);
    run(s, LAYER_DAEMON, in, out);
    settle(s, from, in->now, out);
}

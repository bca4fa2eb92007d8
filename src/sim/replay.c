/* SPDX-License-Identifier: MIT */
/* What a variable can have been: see replay.h.
 *
 * Writes that a later write in the same step has hidden are looked for only if the values that were
 * seen do not answer the question. */
#include "sim/replay.h"

static bool fits(const struct replay_question *q, uint64_t value) {
    return relation_holds(q->relation, value, q->value) == q->want;
}

/* Values in the window: the one at its start, and every one that came within it. */
static bool can_in_window(const struct evidence *e, const struct replay_question *q) {
    const struct history *h = e->h;
    const struct life *l = &h->lives[q->life];
    uint64_t value = l->variables[q->variable];
    for (uint32_t i = evidence_first_change(e, q->life, q->variable); i != NO_TRACE;
         i = e->next_change[i]) {
        const struct history_event *c = &h->events[i];
        if (c->step > q->to_step)
            break;
        if (c->step >= q->from_step && fits(q, value))
            return true;
        value = c->value;
    }
    return fits(q, value);
}

static bool can_seen(const struct evidence *e, const struct replay_question *q) {
    uint64_t value = e->h->lives[q->life].variables[q->variable];
    uint64_t low = 0;
    for (uint32_t i = evidence_first(e, q->life, q->variable); i != NO_TRACE;
         i = e->traces[i].next_of_place) {
        const struct trace *t = &e->traces[i];
        if (low <= q->order && t->high > q->order && fits(q, value))
            return true;
        value = e->h->ops[t->op].tag;
        low = t->low;
    }
    return low <= q->order && fits(q, value);
}

/* The order before which the next seen write after `order` must come, 0 if there is none. */
static uint64_t next_write(const struct evidence *e, const struct replay_question *q,
                           uint64_t order) {
    for (uint32_t i = evidence_first(e, q->life, q->variable); i != NO_TRACE;
         i = e->traces[i].next_of_place)
        if (e->traces[i].high > order)
            return e->traces[i].high;
    return 0;
}

static bool can_hidden(const struct evidence *e, const struct replay_question *q) {
    const struct life *l = &e->h->lives[q->life];
    for (uint32_t i = 0; i < e->ordered; i++) {
        uint32_t op = e->by_order[i];
        const struct history_op *o = &e->h->ops[op];
        if (e->order[op] > q->order)
            break;
        if (e->order[op] <= l->order || o->places == 0 || o->first_place != q->variable)
            continue;
        if (!nodeset_has(&o->set, l->node) || evidence_seen(e, op, q->life) || !fits(q, o->tag))
            continue;
        if (o->finals > 0 && o->outcome != OUTCOME_DONE && o->outcome != OUTCOME_LOST)
            continue;
        if (next_write(e, q, e->order[op]) > q->order)
            return true;
    }
    return false;
}

bool replay_can(const struct evidence *e, const struct replay_question *q) {
    if (layout_is_counter(&e->h->layout, q->variable))
        return can_in_window(e, q);
    return can_seen(e, q) || can_hidden(e, q);
}

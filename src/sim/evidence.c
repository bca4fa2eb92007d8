/* SPDX-License-Identifier: MIT */
/* The history sorted for the checker: see evidence.h.
 *
 * An operation whose initiator never heard its order still has one if it was applied anywhere: the
 * signal that came in the same step carries it. */
#include "sim/evidence.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static void *array(size_t count, size_t size) {
    void *a = calloc(count + 1, size);
    ASSERT(a);
    return a;
}

bool evidence_signal_fits(const struct history *h, const struct history_event *signal,
                          uint32_t op) {
    const struct history_op *o = &h->ops[op];
    const struct primitive *r = &o->request;
    if (r->kind != PRIMITIVE_XFER && r->kind != PRIMITIVE_BULK)
        return false;
    uint64_t len = r->kind == PRIMITIVE_BULK ? r->buffer_bytes : o->body_len;
    return signal->place == r->remote_event && signal->offset == r->heap_offset &&
           signal->len == len && nodeset_has(&o->set, signal->node) &&
           o->request_step <= signal->step;
}

/* ---- Orders --------------------------------------------------------------------------------- */

/* Merges two sorted halves; stable, so equal claims stay in the order of the requests. */
static void sort_by_order(const uint64_t *order, uint32_t *ops, uint32_t count, uint32_t *spare) {
    if (count < 2)
        return;
    uint32_t half = count / 2;
    sort_by_order(order, ops, half, spare);
    sort_by_order(order, ops + half, count - half, spare);
    memcpy(spare, ops, half * sizeof *ops);
    uint32_t left = 0, right = half, to = 0;
    while (left < half) {
        bool take_right = right < count && order[ops[right]] < order[spare[left]];
        ops[to++] = take_right ? ops[right++] : spare[left++];
    }
}

static void sort_orders(struct evidence *e) {
    e->ordered = 0;
    for (uint32_t i = 0; i < e->h->op_count; i++)
        if (e->order[i] != 0)
            e->by_order[e->ordered++] = i;
    uint32_t *spare = array(e->ordered, sizeof *spare);
    sort_by_order(e->order, e->by_order, e->ordered, spare);
    free(spare);
}

uint32_t evidence_at_order(const struct evidence *e, uint64_t order) {
    uint32_t low = 0, high = e->ordered;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (e->order[e->by_order[middle]] < order)
            low = middle + 1;
        else
            high = middle;
    }
    return low < e->ordered && e->order[e->by_order[low]] == order ? e->by_order[low] : NO_OP;
}

uint32_t evidence_step_end(const struct history *h, uint32_t from) {
    uint32_t end = from;
    while (end < h->event_count && h->events[end].step == h->events[from].step)
        end++;
    return end;
}

/* The order of the one unclaimed signal in the step that fits the operation; 0 if not just one. */
static uint64_t order_in_step(const struct evidence *e, uint32_t from, uint32_t end, uint32_t op) {
    uint64_t found = 0;
    for (uint32_t i = from; i < end; i++) {
        const struct history_event *s = &e->h->events[i];
        if (s->kind != HISTORY_SIGNAL || !evidence_signal_fits(e->h, s, op))
            continue;
        if (evidence_at_order(e, s->order) != NO_OP)
            continue;
        if (found != 0)
            return 0;
        found = s->order;
    }
    return found;
}

/* An operation without a body shows only as a signal; its offset is its own. */
static uint32_t empty_op_of(const struct evidence *e, const struct history_event *signal) {
    for (uint32_t i = 0; i < e->h->op_count; i++) {
        const struct history_op *op = &e->h->ops[i];
        if (e->order[i] == 0 && op->places == 0 && evidence_signal_fits(e->h, signal, i))
            return i;
    }
    return NO_OP;
}

static void deduce_orders(struct evidence *e) {
    const struct history *h = e->h;
    for (uint32_t from = 0; from < h->event_count;) {
        uint32_t end = evidence_step_end(h, from);
        for (uint32_t i = from; i < end; i++) {
            const struct history_event *c = &h->events[i];
            uint32_t op = NO_OP;
            if (c->kind == HISTORY_CHANGE)
                op = history_op_of(h, c->value);
            else if (c->kind == HISTORY_SIGNAL && c->len == 0 &&
                     evidence_at_order(e, c->order) == NO_OP)
                op = empty_op_of(e, c);
            if (op == NO_OP || e->order[op] != 0)
                continue;
            uint64_t order = order_in_step(e, from, end, op);
            if (order == 0)
                continue;
            e->order[op] = order;
            sort_orders(e);
        }
        from = end;
    }
}

/* ---- Traces --------------------------------------------------------------------------------- */

static void add_trace(struct evidence *e, const struct history_event *from, uint32_t op,
                      uint32_t place, bool signal) {
    e->traces[e->trace_count++] = (struct trace){.op = op,
                                                 .life = from->life,
                                                 .place = place,
                                                 .step = from->step,
                                                 .time = from->time,
                                                 .signal = signal,
                                                 .next_of_op = NO_TRACE,
                                                 .next_of_place = NO_TRACE};
}

static void gather_traces(struct evidence *e) {
    const struct history *h = e->h;
    for (uint32_t i = 0; i < h->event_count; i++) {
        const struct history_event *c = &h->events[i];
        e->signal_op[i] = NO_OP;
        if (c->life == NO_LIFE)
            continue;
        if (c->kind == HISTORY_SIGNAL) {
            uint32_t op = evidence_at_order(e, c->order);
            e->signal_op[i] = op;
            if (op != NO_OP && evidence_signal_fits(h, c, op))
                add_trace(e, c, op, layout_event_place(&h->layout, c->place), true);
        } else if (c->kind == HISTORY_CHANGE && !layout_is_event(&h->layout, c->place)) {
            uint32_t op = history_op_of(h, c->value);
            if (op != NO_OP)
                add_trace(e, c, op, c->place, false);
        }
    }
}

static void link_traces(struct evidence *e) {
    const struct history *h = e->h;
    uint32_t places = layout_places(&h->layout);
    uint32_t keys = h->life_count * places;
    for (uint32_t i = 0; i < h->op_count; i++)
        e->first_of_op[i] = NO_TRACE;
    for (uint32_t i = 0; i < keys; i++)
        e->first_of_place[i] = NO_TRACE;
    for (uint32_t i = e->trace_count; i-- > 0;) {
        struct trace *t = &e->traces[i];
        uint32_t *place = &e->first_of_place[t->life * places + t->place];
        t->next_of_op = e->first_of_op[t->op];
        t->next_of_place = *place;
        e->first_of_op[t->op] = i;
        *place = i;
    }
}

static void link_changes(struct evidence *e) {
    const struct history *h = e->h;
    uint32_t places = layout_places(&h->layout);
    for (uint32_t i = 0; i < h->life_count * places; i++)
        e->first_change[i] = NO_TRACE;
    for (uint32_t i = h->event_count; i-- > 0;) {
        const struct history_event *c = &h->events[i];
        if (c->kind != HISTORY_CHANGE || c->life == NO_LIFE)
            continue;
        uint32_t *first = &e->first_change[c->life * places + c->place];
        e->next_change[i] = *first;
        *first = i;
    }
}

/* Known orders bound the unknown ones of the same life: from earlier steps below, later above. */
static void bound_traces(struct evidence *e) {
    struct bound {
        uint64_t step, here, beyond;
    } *bounds = array(e->h->life_count, sizeof *bounds);
    for (uint32_t i = 0; i < e->trace_count; i++) {
        struct trace *t = &e->traces[i];
        struct bound *b = &bounds[t->life];
        if (b->step != t->step)
            *b = (struct bound){t->step, b->here, b->here};
        uint64_t order = e->order[t->op];
        t->low = order ? order : b->beyond;
        if (order > b->here)
            b->here = order;
    }
    for (uint32_t i = 0; i < e->h->life_count; i++)
        bounds[i] = (struct bound){STEP_NEVER, UINT64_MAX, UINT64_MAX};
    for (uint32_t i = e->trace_count; i-- > 0;) {
        struct trace *t = &e->traces[i];
        struct bound *b = &bounds[t->life];
        if (b->step != t->step)
            *b = (struct bound){t->step, b->here, b->here};
        uint64_t order = e->order[t->op];
        t->high = order ? order : b->beyond;
        if (order && order < b->here)
            b->here = order;
    }
    free(bounds);
}

struct evidence *evidence_new(const struct history *h) {
    struct evidence *e = array(1, sizeof *e);
    e->h = h;
    e->order = array(h->op_count, sizeof *e->order);
    e->by_order = array(h->op_count, sizeof *e->by_order);
    e->traces = array(h->event_count, sizeof *e->traces);
    e->first_of_op = array(h->op_count, sizeof *e->first_of_op);
    size_t keys = (size_t)h->life_count * layout_places(&h->layout);
    e->first_of_place = array(keys, sizeof *e->first_of_place);
    e->first_change = array(keys, sizeof *e->first_change);
    e->next_change = array(h->event_count, sizeof *e->next_change);
    e->signal_op = array(h->event_count, sizeof *e->signal_op);
    for (uint32_t i = 0; i < h->op_count; i++)
        e->order[i] = h->ops[i].order;
    sort_orders(e);
    deduce_orders(e);
    gather_traces(e);
    link_traces(e);
    link_changes(e);
    bound_traces(e);
    return e;
}

void evidence_free(struct evidence *e) {
    if (!e)
        return;
    free(e->order);
    free(e->by_order);
    free(e->traces);
    free(e->first_of_op);
    free(e->first_of_place);
    free(e->signal_op);
    free(e->first_change);
    free(e->next_change);
    free(e);
}

/* ---- Questions ------------------------------------------------------------------------------ */

uint32_t evidence_first(const struct evidence *e, uint32_t life, uint32_t place) {
    return e->first_of_place[life * layout_places(&e->h->layout) + place];
}

uint32_t evidence_first_change(const struct evidence *e, uint32_t life, uint32_t place) {
    return e->first_change[life * layout_places(&e->h->layout) + place];
}

bool evidence_seen(const struct evidence *e, uint32_t op, uint32_t life) {
    for (uint32_t i = e->first_of_op[op]; i != NO_TRACE; i = e->traces[i].next_of_op)
        if (e->traces[i].life == life)
            return true;
    return false;
}

/* Could a later write in one step have hidden this operation's write? */
static bool hidden(const struct evidence *e, uint32_t op, uint32_t life, uint32_t place,
                   uint64_t step) {
    uint64_t order = e->order[op]; /* 0 is before everything: any later write will do */
    for (uint32_t i = evidence_first(e, life, place); i != NO_TRACE;
         i = e->traces[i].next_of_place) {
        const struct trace *t = &e->traces[i];
        if (t->step > step)
            return false;
        if (t->high > order && t->step >= e->h->ops[op].request_step)
            return true;
    }
    return false;
}

bool evidence_applied(const struct evidence *e, uint32_t op, uint32_t life, uint64_t step) {
    for (uint32_t i = e->first_of_op[op]; i != NO_TRACE; i = e->traces[i].next_of_op)
        if (e->traces[i].life == life && e->traces[i].step <= step)
            return true;
    const struct history_op *o = &e->h->ops[op];
    bool signals = o->request.kind == PRIMITIVE_XFER || o->request.kind == PRIMITIVE_BULK;
    if (signals && o->request.remote_event != NO_EVENT && e->order[op] != 0)
        return false; /* a signal of its own would show it */
    for (uint32_t p = 0; p < o->places; p++)
        if (!hidden(e, op, life, o->first_place + p, step))
            return false;
    return o->places > 0;
}

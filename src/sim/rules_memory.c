/* SPDX-License-Identifier: MIT */
/* Rules signal and memory: what is seen was written by somebody, whole, and announced.
 *
 * Data and signal of one operation belong to one step: in the step of a signal every place that the
 * operation writes changes (to its tag, or to that of a later one in the same step), and in the
 * step of a change there is the signal. Counters of events equal the notices heard. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "sim/rules.h"

struct group {
    const struct evidence *e;
    struct verdict *v;
    uint32_t from, end; /* events of one step */
    uint64_t *signals;  /* by life * events + event */
    uint64_t *counters; /* the same, as seen in memory */
    uint64_t *done;     /* by life: answers that must have signalled the local event */
    uint64_t *answered; /* by life: answers that may have */
};

static void report(const struct group *g, const char *rule, const struct history_event *c,
                   const char *words) {
    uint64_t incarnation = c->life == NO_LIFE ? 0 : g->e->h->lives[c->life].incarnation;
    verdict_add(g->v, rule,
                "node %" PRIu32 "/%" PRIu64 " step %" PRIu64 " at %" PRIu64
                " us: %s (place %" PRIu32 ", value %" PRIx64 ", order %" PRIu64 ")",
                c->node, incarnation, c->step, c->time / 1000, words, c->place, c->value, c->order);
}

/* ---- Changes -------------------------------------------------------------------------------- */

static bool was_set(const struct group *g, const struct history_event *c) {
    for (uint32_t i = g->from; i < g->end; i++) {
        const struct history_event *s = &g->e->h->events[i];
        if (s->kind == HISTORY_SET && s->life == c->life && s->place == c->place &&
            s->value == c->value)
            return true;
    }
    return false;
}

static bool was_signalled(const struct group *g, const struct history_event *c, uint32_t op) {
    for (uint32_t i = g->from; i < g->end; i++) {
        const struct history_event *s = &g->e->h->events[i];
        if (s->kind != HISTORY_SIGNAL || s->life != c->life)
            continue;
        uint32_t owner = g->e->signal_op[i];
        if (owner == op || (owner == NO_OP && evidence_signal_fits(g->e->h, s, op)))
            return true;
    }
    return false;
}

static void check_change(const struct group *g, const struct history_event *c) {
    const struct history *h = g->e->h;
    if (c->torn) {
        report(g, "memory", c, "the words of a cell differ");
        return;
    }
    if (layout_is_counter(&h->layout, c->place)) {
        if (!was_set(g, c))
            report(g, "memory", c, "a counter changed, but not by its own node");
        return;
    }
    uint32_t op = history_op_of(h, c->value);
    if (op == NO_OP) {
        report(g, "memory", c, "nobody wrote this value");
        return;
    }
    const struct history_op *o = &h->ops[op];
    if (c->place < o->first_place || c->place >= o->first_place + o->places)
        report(g, "memory", c, "the operation with this tag does not write here");
    else if (!layout_is_variable(&h->layout, c->place) && o->request.remote_event != NO_EVENT &&
             !was_signalled(g, c, op))
        report(g, "signal", c, "data came without its signal");
}

/* ---- Signals -------------------------------------------------------------------------------- */

static bool was_written(const struct group *g, const struct history_event *s, uint32_t op,
                        uint32_t place) {
    const struct evidence *e = g->e;
    for (uint32_t i = g->from; i < g->end; i++) {
        const struct history_event *c = &e->h->events[i];
        if (c->kind != HISTORY_CHANGE || c->life != s->life || c->place != place)
            continue;
        uint32_t by = history_op_of(e->h, c->value);
        return by == op || by == NO_OP || e->order[by] == 0 || e->order[by] > e->order[op];
    }
    return false;
}

static bool somebody_fits(const struct group *g, const struct history_event *s) {
    for (uint32_t i = 0; i < g->e->h->op_count; i++)
        if (g->e->order[i] == 0 && evidence_signal_fits(g->e->h, s, i))
            return true;
    return false;
}

static void check_signal(const struct group *g, uint32_t index) {
    const struct evidence *e = g->e;
    const struct history_event *s = &e->h->events[index];
    if (s->place >= e->h->layout.events) {
        report(g, "signal", s, "there is no such event");
        return;
    }
    if (s->place == layout_local_event(&e->h->layout))
        return;
    g->signals[s->life * e->h->layout.events + s->place]++;
    uint32_t op = e->signal_op[index];
    if (op == NO_OP) {
        if (!somebody_fits(g, s))
            report(g, "signal", s, "nobody's signal");
        return;
    }
    if (!evidence_signal_fits(e->h, s, op)) {
        report(g, "signal", s, "not as the operation with this order asked for");
        return;
    }
    const struct history_op *o = &e->h->ops[op];
    for (uint32_t p = o->first_place; p < o->first_place + o->places; p++)
        if (!was_written(g, s, op, p))
            report(g, "signal", s, "a signal came without its data");
}

/* ---- Counters ------------------------------------------------------------------------------- */

static void count_answer(const struct group *g, const struct history_event *c) {
    if (c->op == NO_OP || c->outcome == OUTCOME_UNKNOWN)
        return;
    const struct history_op *op = &g->e->h->ops[c->op];
    if (op->request.local_event == NO_EVENT || op->life != c->life)
        return;
    g->answered[c->life]++;
    if (c->outcome == OUTCOME_DONE)
        g->done[c->life]++;
}

static void check_counters(const struct group *g, const struct history_event *last) {
    const struct layout *l = &g->e->h->layout;
    uint64_t *signals = &g->signals[last->life * l->events];
    uint64_t *counters = &g->counters[last->life * l->events];
    for (uint32_t i = 0; i < l->events; i++) {
        bool local = i == layout_local_event(l);
        if (!local && counters[i] != signals[i])
            report(g, "signal", last, "an event's counter differs from the notices");
        if (local && (counters[i] < g->done[last->life] || counters[i] > g->answered[last->life]))
            report(g, "signal", last, "the local event's counter differs from the answers");
        signals[i] = counters[i]; /* once is enough */
    }
}

static void check_group(const struct group *g) {
    const struct history *h = g->e->h;
    const struct history_event *touched = NULL;
    for (uint32_t i = g->from; i < g->end; i++) {
        const struct history_event *c = &h->events[i];
        if (c->life == NO_LIFE || c->step > h->lives[c->life].end_step)
            continue; /* what a life shows after its end proves nothing */
        bool event = c->kind == HISTORY_CHANGE && layout_is_event(&h->layout, c->place);
        if (event) {
            uint32_t number = c->place - h->layout.variables;
            g->counters[c->life * h->layout.events + number] = c->value;
        } else if (c->kind == HISTORY_CHANGE) {
            check_change(g, c);
        } else if (c->kind == HISTORY_SIGNAL) {
            check_signal(g, i);
        } else if (c->kind == HISTORY_COMPLETION) {
            count_answer(g, c);
        }
        if (event || c->kind == HISTORY_SIGNAL || c->kind == HISTORY_COMPLETION)
            touched = c;
    }
    if (touched && touched->step < h->lives[touched->life].end_step)
        check_counters(g, touched);
}

static uint64_t *numbers(size_t count) {
    uint64_t *a = calloc(count + 1, sizeof *a);
    ASSERT(a);
    return a;
}

void rules_memory(const struct evidence *e, struct verdict *v) {
    const struct history *h = e->h;
    size_t keys = (size_t)h->life_count * h->layout.events;
    struct group g = {.e = e,
                      .v = v,
                      .signals = numbers(keys),
                      .counters = numbers(keys),
                      .done = numbers(h->life_count),
                      .answered = numbers(h->life_count)};
    for (g.from = 0; g.from < h->event_count; g.from = g.end) {
        g.end = evidence_step_end(h, g.from);
        check_group(&g);
    }
    free(g.signals);
    free(g.counters);
    free(g.done);
    free(g.answered);
}

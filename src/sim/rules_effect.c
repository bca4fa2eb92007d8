/* SPDX-License-Identifier: MIT */
/* Rules atomic, twice, outside, ghost and half: all or nothing.
 *
 * Which lives count for an operation follows from its outcome: for one that is done, those of its
 * set that joined before its place in the order and have not ended when the answer comes; for one
 * that is not, all that have not ended by then; if nobody will ever know, those that last to the
 * end. */
#include <inttypes.h>

#include "sim/rules.h"

static void report(struct verdict *v, const char *rule, const struct evidence *e, uint32_t op,
                   uint32_t life, const char *words, uint64_t step) {
    const struct history_op *o = &e->h->ops[op];
    const struct life *l = &e->h->lives[life];
    verdict_add(v, rule,
                "#%" PRIu32 " (order %" PRIu64 ", %s in step %" PRId64 ", %" PRIu64
                " us) %s node %" PRIu32 "/%" PRIu64 " (step %" PRId64 ", joined at order %" PRIu64
                ", ended in step %" PRId64 ")",
                op, e->order[op], o->finals ? outcome_name(o->outcome) : "not answered",
                (int64_t)o->end_step, o->end_time / 1000, words, l->node, l->incarnation,
                (int64_t)step, l->order, (int64_t)l->end_step);
}

static void check_traces(const struct evidence *e, uint32_t op, struct verdict *v) {
    const struct history_op *o = &e->h->ops[op];
    for (uint32_t i = e->first_of_op[op]; i != NO_TRACE; i = e->traces[i].next_of_op) {
        const struct trace *t = &e->traces[i];
        if (!nodeset_has(&o->set, e->h->lives[t->life].node))
            report(v, "outside", e, op, t->life, "shows outside its set on", t->step);
        if (t->step < o->request_step)
            report(v, "outside", e, op, t->life, "shows before it was asked for on", t->step);
        for (uint32_t k = t->next_of_place; k != NO_TRACE; k = e->traces[k].next_of_place)
            if (e->traces[k].op == op)
                report(v, "twice", e, op, t->life, "was applied twice on", e->traces[k].step);
    }
}

static void check_done(const struct evidence *e, uint32_t op, struct verdict *v) {
    const struct history_op *o = &e->h->ops[op];
    for (uint32_t i = 0; i < e->h->life_count; i++) {
        const struct life *l = &e->h->lives[i];
        if (!nodeset_has(&o->set, l->node) || l->order >= o->order || l->end_step <= o->end_step)
            continue;
        if (!evidence_applied(e, op, i, o->end_step))
            report(v, "atomic", e, op, i, "was not applied by then on", o->end_step);
    }
}

static void check_not_done(const struct evidence *e, uint32_t op, struct verdict *v) {
    const struct history_op *o = &e->h->ops[op];
    for (uint32_t i = e->first_of_op[op]; i != NO_TRACE; i = e->traces[i].next_of_op) {
        const struct trace *t = &e->traces[i];
        if (e->h->lives[t->life].end_step > o->end_step)
            report(v, "ghost", e, op, t->life, "shows on", t->step);
    }
}

/* Lives that last and were there before it was asked for. */
static bool lasts(const struct evidence *e, uint32_t op, uint32_t life) {
    const struct history_op *o = &e->h->ops[op];
    const struct life *l = &e->h->lives[life];
    return nodeset_has(&o->set, l->node) && l->end_step == STEP_NEVER &&
           l->begin_step < o->request_step;
}

static void check_unknown(const struct evidence *e, uint32_t op, struct verdict *v) {
    bool somewhere = false;
    for (uint32_t i = e->first_of_op[op]; i != NO_TRACE; i = e->traces[i].next_of_op)
        somewhere = somewhere || e->h->lives[e->traces[i].life].end_step == STEP_NEVER;
    if (!somewhere)
        return;
    for (uint32_t i = 0; i < e->h->life_count; i++)
        if (lasts(e, op, i) && !evidence_applied(e, op, i, STEP_NEVER))
            report(v, "half", e, op, i, "shows elsewhere but not on", STEP_NEVER);
}

void rules_effect(const struct evidence *e, struct verdict *v) {
    for (uint32_t i = 0; i < e->h->op_count; i++) {
        const struct history_op *op = &e->h->ops[i];
        if (!history_ordered(op) || !history_visible(op))
            continue;
        check_traces(e, i, v);
        if (op->finals == 0 || op->outcome == OUTCOME_LOST)
            check_unknown(e, i, v);
        else if (op->outcome == OUTCOME_DONE)
            check_done(e, i, v);
        else
            check_not_done(e, i, v);
    }
}

/* SPDX-License-Identifier: MIT */
/* The independent checker: see checker.h.
 *
 * The large rules live in rules_*.c; here are those that need one look at the history: strobes,
 * answers, epochs, convergence. */
#include "sim/checker.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "sim/rules.h"

enum { CHANNELS = 16 };

static void check_strobe(const struct history *h, const struct history_event *c, uint64_t *last,
                         struct verdict *v) {
    uint32_t op = history_op_of(h, c->value);
    bool known = op != NO_OP && h->ops[op].request.kind == PRIMITIVE_STROBE &&
                 h->ops[op].request.channel == c->place && nodeset_has(&h->ops[op].set, c->node);
    if (!known)
        verdict_add(v, "strobe", "node %" PRIu32 " got a strobe at %" PRIu64 " us that nobody sent",
                    c->node, c->time / 1000);
    if (c->order <= *last)
        verdict_add(v, "strobe",
                    "node %" PRIu32 " got strobe %" PRIu64 " of channel %" PRIu32
                    " after number %" PRIu64 " at %" PRIu64 " us",
                    c->node, c->order, c->place, *last, c->time / 1000);
    *last = c->order;
}

static void check_strobes(const struct history *h, struct verdict *v) {
    uint64_t *last = calloc((size_t)h->life_count * CHANNELS + 1, sizeof *last);
    ASSERT(last);
    for (uint32_t i = 0; i < h->event_count; i++) {
        const struct history_event *c = &h->events[i];
        if (c->kind == HISTORY_STROBE && c->life != NO_LIFE && c->place < CHANNELS)
            check_strobe(h, c, &last[c->life * CHANNELS + c->place], v);
    }
    free(last);
}

static void check_answers(const struct history *h, struct verdict *v) {
    for (uint32_t i = 0; i < h->event_count; i++) {
        const struct history_event *c = &h->events[i];
        if (c->kind != HISTORY_COMPLETION)
            continue;
        if (c->op == NO_OP || h->ops[c->op].node != c->node)
            verdict_add(v, "answer",
                        "node %" PRIu32 " was answered at %" PRIu64 " us though it had not asked",
                        c->node, c->time / 1000);
        else if (c->outcome == OUTCOME_UNKNOWN && c->step > h->ops[c->op].end_step)
            verdict_add(v, "answer", "#%" PRIu32 " became unknown after its final answer", c->op);
    }
    for (uint32_t i = 0; i < h->op_count; i++) {
        const struct history_op *op = &h->ops[i];
        if (op->finals > 1)
            verdict_add(v, "answer", "#%" PRIu32 " had %" PRIu32 " final answers", i, op->finals);
        bool lives = op->life != NO_LIFE && h->lives[op->life].end_step == STEP_NEVER;
        if (op->request.kind != PRIMITIVE_STROBE && op->finals == 0 && lives)
            verdict_add(v, "answer",
                        "#%" PRIu32 ", asked by node %" PRIu32 " at %" PRIu64
                        " us, was never answered",
                        i, op->node, op->request_time / 1000);
    }
}

static void check_epochs(const struct history *h, struct verdict *v) {
    for (uint32_t i = 0; i < h->event_count; i++) {
        const struct history_event *c = &h->events[i];
        if (c->kind == HISTORY_EPOCH && c->value < c->old)
            verdict_add(v, "epoch",
                        "node %" PRIu32 " went from epoch %" PRIu64 " back to %" PRIu64
                        " at %" PRIu64 " us",
                        c->node, c->old, c->value, c->time / 1000);
    }
}

/* ---- Convergence ---------------------------------------------------------------------------- */

static void check_closing(const struct history *h, uint32_t index, struct verdict *v) {
    const struct history_op *op = &h->ops[index];
    if (op->finals == 0 || op->outcome != OUTCOME_DONE) {
        verdict_add(v, "converge", "closing operation #%" PRIu32 " is %s", index,
                    op->finals ? outcome_name(op->outcome) : "not answered");
        return;
    }
    for (uint32_t n = 0; n < h->layout.universe; n++)
        for (uint32_t p = op->first_place; p < op->first_place + op->places; p++)
            if (history_open_life(h, n) != NO_LIFE && h->nodes[n].seen[p] != op->tag)
                verdict_add(v, "converge",
                            "node %" PRIu32 " does not have closing operation #%" PRIu32
                            " in place %" PRIu32,
                            n, index, p);
}

static void check_convergence(const struct history *h, struct verdict *v) {
    uint32_t closing = 0;
    for (uint32_t n = 0; n < h->layout.universe; n++)
        if (history_open_life(h, n) == NO_LIFE)
            verdict_add(v, "converge", "node %" PRIu32 " is no member at the end", n);
    for (uint32_t i = 0; i < h->op_count; i++) {
        if (!h->ops[i].closing)
            continue;
        closing++;
        check_closing(h, i, v);
    }
    if (closing < 2)
        verdict_add(v, "converge", "%" PRIu32 " closing operations were asked for", closing);
}

void checker_run(const struct history *h, bool closed, struct verdict *verdict) {
    struct evidence *e = evidence_new(h);
    rules_order(e, verdict);
    rules_effect(e, verdict);
    rules_memory(e, verdict);
    rules_compare(e, verdict);
    rules_gather(h, verdict);
    check_strobes(h, verdict);
    check_answers(h, verdict);
    check_epochs(h, verdict);
    if (closed)
        check_convergence(h, verdict);
    evidence_free(e);
}

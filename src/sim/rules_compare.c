/* SPDX-License-Identifier: MIT */
/* Rules compare and join: the variables are what the order says.
 *
 * An answer is judged by what the compared variable can have been in each life of the set at that
 * place in the order (sim/replay.h). A node of the set without a life that counts excuses the
 * answer "false". A life begins with what the root's variables can have been; a root begins with
 * what those of one of the survivors can have been. */
#include <inttypes.h>

#include "sim/replay.h"
#include "sim/rules.h"

/* Lives that an answer speaks of: there before its place in the order, not ended when it came. */
static bool speaks_of(const struct history_op *op, const struct life *l) {
    return nodeset_has(&op->set, l->node) && l->order < op->order && l->end_step > op->end_step;
}

static struct replay_question question(const struct evidence *e, const struct history_op *op,
                                       uint32_t life, bool want) {
    uint64_t begin = e->h->lives[life].begin_step;
    return (struct replay_question){
        .life = life,
        .variable = op->request.variable,
        .order = op->order - 1,
        .from_step = op->request_step > begin ? op->request_step : begin,
        .to_step = op->end_step,
        .relation = op->request.relation,
        .value = op->request.value,
        .want = want,
    };
}

static void check_true(const struct evidence *e, uint32_t index, struct verdict *v) {
    const struct history_op *op = &e->h->ops[index];
    for (uint32_t i = 0; i < e->h->life_count; i++) {
        const struct life *l = &e->h->lives[i];
        if (!speaks_of(op, l))
            continue;
        struct replay_question q = question(e, op, i, true);
        if (!replay_can(e, &q))
            verdict_add(v, "compare",
                        "#%" PRIu32 " (order %" PRIu64 ", %" PRIu64
                        " us) is done, but its condition cannot have held on node %" PRIu32
                        "/%" PRIu64,
                        index, op->order, op->end_time / 1000, l->node, l->incarnation);
    }
}

static void check_false(const struct evidence *e, uint32_t index, struct verdict *v) {
    const struct history_op *op = &e->h->ops[index];
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->h->life_count; i++) {
        if (!speaks_of(op, &e->h->lives[i]))
            continue;
        count++;
        struct replay_question q = question(e, op, i, false);
        if (replay_can(e, &q))
            return;
    }
    if (count >= nodeset_count(&op->set))
        verdict_add(v, "compare",
                    "#%" PRIu32 " (order %" PRIu64 ", %" PRIu64
                    " us) is false, but its condition must have held on all nodes",
                    index, op->order, op->end_time / 1000);
}

static void check_compares(const struct evidence *e, struct verdict *v) {
    for (uint32_t i = 0; i < e->h->op_count; i++) {
        const struct history_op *op = &e->h->ops[i];
        bool compares =
            op->request.kind == PRIMITIVE_COMPARE || op->request.kind == PRIMITIVE_STANDING;
        if (!compares || op->finals == 0 || op->order == 0)
            continue;
        if (op->outcome == OUTCOME_DONE)
            check_true(e, i, v);
        else if (op->outcome == OUTCOME_FALSE)
            check_false(e, i, v);
    }
}

/* ---- Joins ---------------------------------------------------------------------------------- */

/* Can a life have begun with this value of a variable, if it got it from `donor`? */
static bool can_inherit(const struct evidence *e, uint32_t life, uint32_t donor,
                        uint32_t variable) {
    const struct life *l = &e->h->lives[life];
    uint64_t value = l->variables[variable];
    struct replay_question q = {.life = donor,
                                .variable = variable,
                                .order = l->order,
                                .from_step = l->since_step,
                                .to_step = l->begin_step,
                                .relation = RELATION_EQ,
                                .value = value,
                                .want = true};
    if (replay_can(e, &q))
        return true;
    uint32_t op = history_op_of(e->h, value); /* applied in the very step of the join? */
    return op != NO_OP && e->order[op] > l->order && evidence_seen(e, op, donor) &&
           nodeset_has(&e->h->ops[op].set, l->node);
}

static bool inherits_all(const struct evidence *e, uint32_t life, uint32_t donor) {
    for (uint32_t v = 0; v < e->h->layout.variables; v++)
        if (!can_inherit(e, life, donor, v))
            return false;
    return true;
}

static bool all_zero(const struct evidence *e, uint32_t life) {
    for (uint32_t v = 0; v < e->h->layout.variables; v++)
        if (e->h->lives[life].variables[v] != 0)
            return false;
    return true;
}

static void report_join(const struct evidence *e, uint32_t life, const char *words, uint32_t which,
                        struct verdict *v) {
    const struct life *l = &e->h->lives[life];
    verdict_add(v, "join",
                "node %" PRIu32 "/%" PRIu64 " joined at order %" PRIu64 ", %" PRIu64
                " us: %s (variable %" PRId32 ")",
                l->node, l->incarnation, l->order, l->begin_time / 1000, words, (int32_t)which);
}

static void check_node_join(const struct evidence *e, uint32_t life, struct verdict *v) {
    const struct life *l = &e->h->lives[life];
    uint32_t donor = NO_LIFE;
    for (uint32_t i = 0; i < life; i++)
        if (e->h->lives[i].node == e->h->layout.root && e->h->lives[i].epoch == l->epoch)
            donor = i;
    if (donor == NO_LIFE) {
        report_join(e, life, "there was no root of this epoch", NO_VARIABLE, v);
        return;
    }
    for (uint32_t k = 0; k < e->h->layout.variables; k++)
        if (!can_inherit(e, life, donor, k))
            report_join(e, life, "its snapshot was never the root's", k, v);
}

static void check_root_join(const struct evidence *e, uint32_t life, struct verdict *v) {
    const struct life *l = &e->h->lives[life];
    bool survivors = false;
    for (uint32_t i = 0; i < life; i++) {
        const struct life *s = &e->h->lives[i];
        if (s->node == l->node || s->end_step <= l->since_step)
            continue;
        if (inherits_all(e, life, i))
            return;
        survivors = survivors || s->end_step > l->begin_step;
    }
    if (survivors)
        report_join(e, life, "the root's variables are those of no survivor", NO_VARIABLE, v);
    else if (!all_zero(e, life))
        report_join(e, life, "nobody survived, but the root's variables are not zero", NO_VARIABLE,
                    v);
}

void rules_compare(const struct evidence *e, struct verdict *v) {
    check_compares(e, v);
    for (uint32_t i = 0; i < e->h->life_count; i++) {
        if (e->h->lives[i].node == e->h->layout.root)
            check_root_join(e, i, v);
        else if (e->h->lives[i].why != LIFE_STILLBORN)
            check_node_join(e, i, v);
    }
}

/* SPDX-License-Identifier: MIT */
/* Rules claim, program, former, order and cycle: one total order of all operations.
 *
 * Within one step of a node several operations may become visible at once; these are taken as
 * unordered among each other. What a life shows after its end proves nothing. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "sim/rules.h"

static void *array(size_t count, size_t size) {
    void *a = calloc(count + 1, size);
    ASSERT(a);
    return a;
}

static void check_claims(const struct evidence *e, struct verdict *v) {
    for (uint32_t i = 1; i < e->ordered; i++) {
        uint32_t a = e->by_order[i - 1], b = e->by_order[i];
        if (e->order[a] == e->order[b])
            verdict_add(v, "claim", "#%" PRIu32 " and #%" PRIu32 " both have order %" PRIu64, a, b,
                        e->order[a]);
    }
    for (uint32_t i = 0; i < e->h->op_count; i++) {
        const struct history_op *op = &e->h->ops[i];
        if (!history_ordered(op) || op->finals == 0)
            continue;
        bool decided = op->outcome == OUTCOME_DONE || op->outcome == OUTCOME_FALSE;
        if (decided && op->order == 0)
            verdict_add(v, "claim", "#%" PRIu32 " is %s but has no order", i,
                        outcome_name(op->outcome));
        if (op->outcome == OUTCOME_REFUSED && op->order != 0)
            verdict_add(v, "claim", "#%" PRIu32 " was refused but has order %" PRIu64, i,
                        op->order);
    }
}

static void check_program(const struct evidence *e, struct verdict *v) {
    const struct history *h = e->h;
    uint64_t *floor = array(h->layout.universe, sizeof *floor);
    uint32_t *by = array(h->layout.universe, sizeof *by);
    uint64_t *least = array(h->op_count, sizeof *least);
    for (uint32_t i = 0; i < h->event_count; i++) {
        const struct history_event *c = &h->events[i];
        if (c->op == NO_OP)
            continue;
        if (c->kind == HISTORY_REQUEST) {
            least[c->op] = floor[c->node];
            if (e->order[c->op] != 0 && e->order[c->op] <= least[c->op])
                verdict_add(v, "program",
                            "#%" PRIu32 " has order %" PRIu64
                            " but was asked for after the answer to #%" PRIu32
                            ", which has order %" PRIu64,
                            c->op, e->order[c->op], by[c->node], least[c->op]);
        } else if (c->kind == HISTORY_COMPLETION && c->outcome != OUTCOME_UNKNOWN &&
                   c->order > floor[c->node]) {
            floor[c->node] = c->order;
            by[c->node] = c->op;
        }
    }
    free(floor);
    free(by);
    free(least);
}

static bool counts(const struct evidence *e, const struct trace *t) {
    return t->step <= e->h->lives[t->life].end_step;
}

struct progress {
    uint64_t step;
    uint64_t before, here; /* highest order of the steps before, and with this step */
    uint64_t signal;       /* order of the last signal */
    uint32_t op;           /* that has the highest order */
};

static void check_one_trace(const struct evidence *e, const struct trace *t, struct progress *p,
                            struct verdict *v) {
    const struct life *l = &e->h->lives[t->life];
    uint64_t order = e->order[t->op];
    if (p->step != t->step) {
        p->step = t->step;
        p->before = p->here;
    }
    if (order == 0)
        return;
    if (order <= l->order)
        verdict_add(v, "order",
                    "#%" PRIu32 " with order %" PRIu64 " was applied on node %" PRIu32 "/%" PRIu64
                    " which joined at order %" PRIu64,
                    t->op, order, l->node, l->incarnation, l->order);
    else if (order <= p->before)
        verdict_add(v, "order",
                    "#%" PRIu32 " with order %" PRIu64 " was applied on node %" PRIu32 "/%" PRIu64
                    " in step %" PRIu64 ", after #%" PRIu32 " with order %" PRIu64,
                    t->op, order, l->node, l->incarnation, t->step, p->op, p->before);
    else if (t->signal && order <= p->signal)
        verdict_add(v, "order",
                    "#%" PRIu32 " with order %" PRIu64 " was signalled on node %" PRIu32 "/%" PRIu64
                    " after order %" PRIu64,
                    t->op, order, l->node, l->incarnation, p->signal);
    if (t->signal)
        p->signal = order;
    if (order > p->here) {
        p->here = order;
        p->op = t->op;
    }
}

static void check_sequences(const struct evidence *e, struct verdict *v) {
    struct progress *lives = array(e->h->life_count, sizeof *lives);
    for (uint32_t i = 0; i < e->trace_count; i++)
        if (counts(e, &e->traces[i]))
            check_one_trace(e, &e->traces[i], &lives[e->traces[i].life], v);
    free(lives);
}

/* The place at which the node of a life joined the next time, UINT64_MAX if it never did. */
static uint64_t next_join(const struct history *h, uint32_t life) {
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < h->life_count; i++) {
        const struct life *l = &h->lives[i];
        if (l->node == h->lives[life].node && l->begin_step > h->lives[life].begin_step &&
            l->order < next)
            next = l->order;
    }
    return next;
}

static void check_former(const struct evidence *e, struct verdict *v) {
    const struct history *h = e->h;
    for (uint32_t i = 0; i < e->trace_count; i++) {
        const struct trace *t = &e->traces[i];
        const struct history_op *op = &h->ops[t->op];
        if (!counts(e, t) || op->life == NO_LIFE || t->low <= next_join(h, op->life))
            continue;
        verdict_add(v, "former",
                    "#%" PRIu32 " has a place above %" PRIu64 ", but node %" PRIu32
                    " that asked for it began its next life at order %" PRIu64,
                    t->op, t->low - 1, op->node, next_join(h, op->life));
    }
}

/* ---- One order for all: a topological sort -------------------------------------------------- */

/* Vertices are operations and, behind them, one for each step of a life that applied something: it
 * stands between the operations of that step and those of the next. */
struct graph {
    uint32_t vertices;
    uint32_t edges, edge_cap;
    uint32_t *from, *to;
};

static void edge(struct graph *g, uint32_t from, uint32_t to) {
    ASSERT(g->edges < g->edge_cap);
    g->from[g->edges] = from;
    g->to[g->edges++] = to;
}

static void build_graph(const struct evidence *e, struct graph *g) {
    struct at {
        uint64_t step;
        uint32_t here, before;
    } *lives = array(e->h->life_count, sizeof *lives);
    for (uint32_t i = 0; i < e->h->life_count; i++)
        lives[i] = (struct at){STEP_NEVER, NO_OP, NO_OP};
    for (uint32_t i = 0; i < e->trace_count; i++) {
        const struct trace *t = &e->traces[i];
        if (!counts(e, t))
            continue;
        struct at *at = &lives[t->life];
        if (at->step != t->step) {
            *at = (struct at){t->step, g->vertices++, at->here};
            if (at->before != NO_OP)
                edge(g, at->before, at->here);
        }
        edge(g, t->op, at->here);
        if (at->before != NO_OP)
            edge(g, at->before, t->op);
    }
    for (uint32_t i = 1; i < e->ordered; i++)
        edge(g, e->by_order[i - 1], e->by_order[i]);
    free(lives);
}

/* Removes vertices without incoming edges until none is left; marks the removed. */
static void sort_graph(const struct graph *g, bool *removed) {
    uint32_t *incoming = array(g->vertices, sizeof *incoming);
    uint32_t *first = array(g->vertices, sizeof *first);
    uint32_t *outgoing = array(g->edges, sizeof *outgoing);
    uint32_t *ready = array(g->vertices, sizeof *ready);
    for (uint32_t i = 0; i < g->edges; i++) {
        incoming[g->to[i]]++;
        first[g->from[i] + 1]++;
    }
    for (uint32_t i = 1; i <= g->vertices; i++)
        first[i] += first[i - 1];
    uint32_t *fill = array(g->vertices, sizeof *fill);
    for (uint32_t i = 0; i < g->edges; i++)
        outgoing[first[g->from[i]] + fill[g->from[i]]++] = g->to[i];
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->vertices; i++)
        if (incoming[i] == 0)
            ready[count++] = i;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t vertex = ready[i];
        removed[vertex] = true;
        for (uint32_t k = first[vertex]; k < first[vertex + 1]; k++)
            if (--incoming[outgoing[k]] == 0)
                ready[count++] = outgoing[k];
    }
    free(incoming);
    free(first);
    free(outgoing);
    free(ready);
    free(fill);
}

static void report_cycle(const struct evidence *e, const bool *removed, struct verdict *v) {
    char text[120];
    size_t used = 0;
    uint32_t count = 0;
    text[0] = 0;
    for (uint32_t i = 0; i < e->h->op_count; i++) {
        if (removed[i])
            continue;
        count++;
        if (used + 16 < sizeof text)
            used += (size_t)snprintf(text + used, sizeof text - used, " #%" PRIu32, i);
    }
    if (count > 0)
        verdict_add(v, "cycle",
                    "nodes disagree about the order of (or before) %" PRIu32 " operations:%s",
                    count, text);
}

static void check_cycles(const struct evidence *e, struct verdict *v) {
    struct graph g = {.vertices = e->h->op_count};
    g.edge_cap = 3 * e->trace_count + e->ordered;
    g.from = array(g.edge_cap, sizeof *g.from);
    g.to = array(g.edge_cap, sizeof *g.to);
    build_graph(e, &g);
    bool *removed = array(g.vertices, sizeof *removed);
    sort_graph(&g, removed);
    report_cycle(e, removed, v);
    free(removed);
    free(g.from);
    free(g.to);
}

void rules_order(const struct evidence *e, struct verdict *v) {
    check_claims(e, v);
    check_program(e, v);
    check_sequences(e, v);
    check_former(e, v);
    check_cycles(e, v);
}

/* SPDX-License-Identifier: MIT */
/* The rules of the kill test that are judged in the end: see witness.h.
 *
 * Nodes have written down every operation that they applied, so nothing depends on when the reader
 * looked. All clocks are the machine's one clock, and what happened before has the earlier time. */
#pragma once

#include <stdlib.h>

#include "witness.h"

/* ---- what a membership has applied ---- */

/* Signals of a node are in the order of its memberships, and ascend in each. */
static inline const struct signal_heard *find_applied(const struct node_log *log, uint32_t stay,
                                                      uint64_t order) {
    uint32_t low = 0, high = log->signals;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        const struct signal_heard *s = &log->signal[middle];
        if (s->stay < stay || (s->stay == stay && s->order < order))
            low = middle + 1;
        else
            high = middle;
    }
    const struct signal_heard *s = &log->signal[low];
    return low < log->signals && s->stay == stay && s->order == order ? s : NULL;
}

static inline void check_signal(struct witness *w, uint32_t node, uint32_t i) {
    const struct node_log *log = &w->d->node[node];
    const struct signal_heard *s = &log->signal[i], *before = i > 0 ? s - 1 : NULL;
    if (s->order <= log->stay[s->stay].order)
        complain(w, "signals: node %u applied order %" PRIu64 ", having joined at %" PRIu64, node,
                 s->order, log->stay[s->stay].order);
    if (before != NULL && before->stay == s->stay && before->order >= s->order)
        complain(w, "signals: node %u applied order %" PRIu64 " after %" PRIu64, node, s->order,
                 before->order);
    const struct deed *d = deed_of(w->d, s->tag);
    if (d == NULL)
        return;
    if (deed_done(d) && d->result.order != s->order)
        complain(w, "signals: node %u applied %" PRIu64 " as order %" PRIu64 ", not %" PRIu64, node,
                 s->tag, s->order, d->result.order);
    uint64_t patience = PATIENCE * w->d->prim.period_ns;
    if (deed_undone(d) && stay_end(w, node, s->stay) > units_after(d->ended_ns, patience))
        complain(w, "none: node %u applied %" PRIu64 ", which has %s", node, s->tag,
                 outcome_name(d->result.outcome));
}

/* ---- deeds ---- */

static inline void check_all(struct witness *w, uint64_t tag, const struct deed *d) {
    uint64_t patience = PATIENCE * w->d->prim.period_ns;
    for (uint32_t n = 0; n < w->d->universe; n++) {
        const struct node_log *log = &w->d->node[n];
        for (uint32_t i = 0; bits_test(d->set, n) && i < log->stays; i++) {
            const struct stay *s = &log->stay[i];
            if (s->order >= d->result.order || stay_end(w, n, i) <= d->ended_ns ||
                find_applied(log, i, d->result.order) != NULL)
                continue;
            bool given_up = s->fenced_ns != 0 && s->fenced_ns - d->ended_ns < patience;
            if (!given_up)
                complain(w,
                         "all: %" PRIu64 " (order %" PRIu64
                         ") is done, but node %u (joined at %" PRIu64 ") has not applied it",
                         tag, d->result.order, n, s->order);
        }
    }
}

static inline void check_none(struct witness *w, uint64_t tag, const struct deed *d) {
    uint64_t patience = PATIENCE * w->d->prim.period_ns;
    for (uint32_t n = 0; d->result.order != 0 && n < w->d->universe; n++)
        for (uint32_t i = 0; i < w->d->node[n].stays; i++)
            if (find_applied(&w->d->node[n], i, d->result.order) != NULL &&
                stay_end(w, n, i) > units_after(d->ended_ns, patience))
                complain(w, "none: node %u applied order %" PRIu64 " of %" PRIu64 ", which has %s",
                         n, d->result.order, tag, outcome_name(d->result.outcome));
}

/* The order under which somebody who lasts has applied it, 0 if nobody has. */
static inline uint64_t order_seen(struct witness *w, uint64_t tag) {
    for (uint32_t n = 0; n < w->d->universe; n++) {
        const struct node_log *log = &w->d->node[n];
        uint32_t stay = current_stay(w, n);
        for (uint32_t i = log->signals; i-- > 0 && log->signal[i].stay == stay;)
            if (log->signal[i].tag == tag)
                return log->signal[i].order;
    }
    return 0;
}

static inline bool check_half(struct witness *w, uint64_t tag, const struct deed *d) {
    uint64_t order = order_seen(w, tag);
    for (uint32_t n = 0; order != 0 && n < w->d->universe; n++) {
        uint32_t stay = current_stay(w, n);
        const struct node_log *log = &w->d->node[n];
        if (!bits_test(d->set, n) || stay == NO_STAY || log->stay[stay].joined_ns > d->asked_ns)
            continue;
        if (find_applied(log, stay, order) == NULL)
            complain(w, "half: %" PRIu64 " (order %" PRIu64 ") shows elsewhere, not on node %u",
                     tag, order, n);
    }
    return order != 0;
}

static inline void check_answer(struct witness *w, uint64_t tag, const struct deed *d) {
    bool killed = w->killed_ns[d->node][d->life] != 0;
    if (d->finals == 0 && !killed)
        complain(w, "answer: %" PRIu64 " of node %u was never answered", tag, d->node);
    if (d->finals > 1)
        complain(w, "answer: %" PRIu64 " of node %u was answered %u times", tag, d->node,
                 d->finals);
    if (d->unknowns > 1 + (d->kind == PRIMITIVE_BULK))
        complain(w, "answer: %" PRIu64 " of node %u was unknown %u times", tag, d->node,
                 d->unknowns);
    if (d->finals == 1 && d->result.outcome == OUTCOME_LOST &&
        w->d->node[d->node].stay[d->stay].fenced_ns == 0)
        complain(w, "answer: %" PRIu64 " is lost, but node %u was not fenced", tag, d->node);
}

/* When the deadline is over the caller hears an answer, or that there is none yet; not long after it
 * in periods, for the sake of a busy machine. */
static inline void check_silence(struct witness *w, uint64_t tag, const struct deed *d) {
    uint64_t word = d->unknowns > 0 ? d->unknown_ns : d->ended_ns;
    uint64_t limit = d->timeout_ns + SILENCE * w->d->prim.period_ns;
    if (d->unknowns + d->finals > 0 && word - d->asked_ns > limit)
        complain(w, "silence: node %u heard of %" PRIu64 " only after %.1f periods, not %.1f",
                 d->node, tag, (double)(word - d->asked_ns) / (double)w->d->prim.period_ns,
                 (double)d->timeout_ns / (double)w->d->prim.period_ns);
}

/* ---- the order ---- */

static inline int compare_u64(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static inline void check_claims(struct witness *w) {
    uint64_t *orders = calloc((size_t)ACTORS_MAX * DEEDS_MAX, sizeof *orders);
    size_t count = 0;
    ASSERT(orders != NULL);
    for (uint32_t a = 0; a < w->d->actor_count; a++)
        for (uint32_t i = 0; i < w->d->actor[a].deeds; i++)
            if (deed_done(&w->d->actor[a].deed[i]))
                orders[count++] = w->d->actor[a].deed[i].result.order;
    qsort(orders, count, sizeof *orders, compare_u64);
    for (size_t i = 0; i < count; i++)
        if (orders[i] == 0 || (i > 0 && orders[i] == orders[i - 1]))
            complain(w, "claim: order %" PRIu64 " is nobody's or of two operations", orders[i]);
    free(orders);
}

/* Answers and requests of one actor are each in the order of time. */
static inline void check_program(struct witness *w, uint32_t actor) {
    const struct actor_log *log = &w->d->actor[actor];
    uint64_t floor = 0;
    uint32_t answers = 0;
    for (uint32_t i = 0; i < log->deeds; i++) {
        const struct deed *d = &log->deed[i];
        if (d->state != DEED_ASKED || d->kind == PRIMITIVE_BULK)
            continue; /* the tags of these are drawn long before they are asked for */
        while (answers < log->answers && log->deed[log->answered[answers]].ended_ns < d->asked_ns) {
            const struct completion *c = &log->deed[log->answered[answers++]].result;
            if (c->outcome != OUTCOME_LOST && c->order > floor)
                floor = c->order;
        }
        if (deed_done(d) && d->result.order <= floor)
            complain(w, "program: %" PRIu64 " has order %" PRIu64 ", not above %" PRIu64,
                     deed_tag(actor, i), d->result.order, floor);
    }
}

/* ---- all of it ---- */

struct inquest {
    uint32_t asked;
    uint32_t outcome[OUTCOMES];
    uint32_t unknown; /* at first */
    uint32_t killed;  /* with their node */
    uint32_t halves;  /* of the lost ones, those that show */
    uint64_t longest_ns;
    uint64_t applied;
};

static inline void examine(struct witness *w, struct inquest *q, uint64_t tag) {
    const struct deed *d = deed_of(w->d, tag);
    bool signals = d->kind == PRIMITIVE_XFER || d->kind == PRIMITIVE_BULK;
    if (d->state != DEED_ASKED)
        return;
    q->asked++;
    q->unknown += d->unknowns > 0;
    check_answer(w, tag, d);
    if (!w->stops)
        check_silence(w, tag, d);
    if (d->finals == 0) {
        q->killed++;
    } else {
        q->outcome[d->result.outcome]++;
        if (d->ended_ns - d->asked_ns > q->longest_ns)
            q->longest_ns = d->ended_ns - d->asked_ns;
    }
    if (!signals)
        return;
    if (deed_done(d))
        check_all(w, tag, d);
    else if (deed_undone(d))
        check_none(w, tag, d);
    else
        q->halves += check_half(w, tag, d);
}

static inline void inquest_hold(struct witness *w, struct inquest *ret) {
    *ret = (struct inquest){0};
    judge_charges(w, true);
    for (uint32_t n = 0; n < w->d->universe; n++) {
        ret->applied += w->d->node[n].signals;
        for (uint32_t i = 0; i < w->d->node[n].signals; i++)
            check_signal(w, n, i);
    }
    for (uint32_t a = 0; a < w->d->actor_count; a++) {
        check_program(w, a);
        for (uint32_t i = 0; i < w->d->actor[a].deeds; i++)
            examine(w, ret, deed_tag(a, i));
    }
    check_claims(w);
}

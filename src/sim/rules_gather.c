/* SPDX-License-Identifier: MIT */
/* Rule gather: what a gather brings is true of some moment while it was under way.
 *
 * A gather is under way from the step in which it is asked for to that of its answer. A record it
 * brings was stored by that node for that channel, in a life that had not ended when the gather
 * began, and no later one of that life had replaced it by then. Who is not missing was a member in
 * the meantime; who was one all the time and had a record before tells it. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "sim/rules.h"

enum { CHANNELS = 8 };

struct records {
    const struct history *h;
    uint32_t *first;      /* by life * CHANNELS + channel: the first stored, an event */
    uint32_t *next;       /* by event: what replaces it, NO_EVENT_AT */
    uint32_t *told_in;    /* by node: the gather, plus one, that brought its record ... */
    uint32_t *missing_in; /* ... or missed it, the newest */
    uint32_t last;        /* node of the reply before */
};

static void *make(size_t count, size_t size) {
    void *array = calloc(count + 1, size);
    ASSERT(array);
    return array;
}

static void find_records(struct records *r) {
    const struct history *h = r->h;
    size_t places = (size_t)h->life_count * CHANNELS;
    uint32_t *newest = make(places, sizeof *newest);
    for (size_t i = 0; i < places; i++)
        newest[i] = r->first[i] = NO_EVENT_AT;
    for (uint32_t i = 0; i < h->event_count; i++) {
        const struct history_event *e = &h->events[i];
        r->next[i] = NO_EVENT_AT;
        if (e->kind != HISTORY_RECORD || e->life == NO_LIFE || e->place >= CHANNELS)
            continue;
        size_t place = (size_t)e->life * CHANNELS + e->place;
        if (newest[place] == NO_EVENT_AT)
            r->first[place] = i;
        else
            r->next[newest[place]] = i;
        newest[place] = i;
    }
    free(newest);
}

static const char *reply_fault(struct records *r, const struct history_event *e) {
    const struct history_op *op = &r->h->ops[e->op];
    uint32_t stored = history_record_of(r->h, e->value);
    if (e->torn || stored == NO_EVENT_AT)
        return "is no record";
    const struct history_event *s = &r->h->events[stored];
    if (s->node != e->place || s->place != op->request.channel || s->life == NO_LIFE)
        return "is not its record of that channel";
    if (!nodeset_has(&op->set, e->place) || r->missing_in[e->place] == e->op + 1)
        return "is of a node not asked, or missing";
    if (r->told_in[e->place] == e->op + 1 || (r->last != NO_NODE && e->place <= r->last))
        return "does not ascend";
    if (r->h->lives[s->life].end_step < op->request_step)
        return "is of a life that had ended";
    uint32_t next = r->next[stored];
    if (next != NO_EVENT_AT && r->h->events[next].step < op->request_step)
        return "had been replaced before";
    return NULL;
}

static void check_reply(struct records *r, const struct history_event *e, struct verdict *v) {
    const char *fault = reply_fault(r, e);
    if (fault)
        verdict_add(v, "gather",
                    "#%" PRIu32 ": what it brings of node %" PRIu32 " at %" PRIu64 " us %s", e->op,
                    e->place, e->time / 1000, fault);
    if (e->place < r->h->layout.universe)
        r->told_in[e->place] = e->op + 1;
    r->last = e->place;
}

/* Of those who have answered: has each lived meanwhile, and told what it had? */
static void check_end(const struct records *r, uint32_t index, struct verdict *v) {
    const struct history *h = r->h;
    const struct history_op *op = &h->ops[index];
    bool *met = make(h->layout.universe, sizeof *met);
    for (uint32_t i = 0; i < h->life_count; i++) {
        const struct life *l = &h->lives[i];
        met[l->node] =
            met[l->node] || (l->begin_step <= op->end_step && l->end_step >= op->request_step);
        bool quiet = nodeset_has(&op->set, l->node) && r->missing_in[l->node] != index + 1 &&
                     r->told_in[l->node] != index + 1;
        if (!quiet || op->request.channel >= CHANNELS || l->begin_step >= op->request_step ||
            l->end_step <= op->end_step)
            continue;
        uint32_t first = r->first[(size_t)i * CHANNELS + op->request.channel];
        if (first != NO_EVENT_AT && h->events[first].step < op->request_step)
            verdict_add(v, "gather", "#%" PRIu32 " lacks the record of node %" PRIu32, index,
                        l->node);
    }
    NODESET_EACH (n, &op->set)
        if (!met[n] && r->missing_in[n] != index + 1)
            verdict_add(v, "gather",
                        "#%" PRIu32 ": node %" PRIu32 " has answered without being there", index,
                        n);
    free(met);
}

static void check_event(struct records *r, const struct history_event *e, struct verdict *v) {
    bool ours = e->kind == HISTORY_MISSING || e->kind == HISTORY_REPLY;
    if (ours && (e->op == NO_OP || r->h->ops[e->op].request.kind != PRIMITIVE_GATHER)) {
        verdict_add(v, "gather", "an answer at %" PRIu64 " us to no gather", e->time / 1000);
    } else if (e->kind == HISTORY_REPLY) {
        check_reply(r, e, v);
    } else if (e->kind == HISTORY_MISSING) {
        if (!nodeset_has(&r->h->ops[e->op].set, e->place))
            verdict_add(v, "gather", "#%" PRIu32 " misses node %" PRIu32 ", which it did not ask",
                        e->op, e->place);
        r->missing_in[e->place] = e->op + 1;
    } else if (e->kind == HISTORY_COMPLETION && e->op != NO_OP &&
               r->h->ops[e->op].request.kind == PRIMITIVE_GATHER) {
        if (e->outcome != OUTCOME_REFUSED)
            check_end(r, e->op, v);
        r->last = NO_NODE;
    }
}

void rules_gather(const struct history *h, struct verdict *v) {
    struct records r = {.h = h, .last = NO_NODE};
    r.first = make((size_t)h->life_count * CHANNELS, sizeof *r.first);
    r.next = make(h->event_count, sizeof *r.next);
    r.told_in = make(h->layout.universe, sizeof *r.told_in);
    r.missing_in = make(h->layout.universe, sizeof *r.missing_in);
    find_records(&r);
    for (uint32_t i = 0; i < h->event_count; i++)
        check_event(&r, &h->events[i], v);
    free(r.first);
    free(r.next);
    free(r.told_in);
    free(r.missing_in);
}

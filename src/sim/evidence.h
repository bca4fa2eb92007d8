/* SPDX-License-Identifier: MIT */
/* The history sorted for the checker: which operation shows where and when.
 *
 * A trace is one sign that an operation was applied in a life: a place of memory that got its tag,
 * or a signal. A place that is written twice within one step shows only the later write, so the
 * lack of a trace proves something only together with the traces around it. Every trace gets bounds
 * for its operation's place in the order: equal if the order is known, else from the neighbours in
 * that life. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/history.h"

#define NO_TRACE UINT32_MAX

struct trace {
    uint32_t op;
    uint32_t life;
    uint32_t place; /* for a signal: the event's */
    uint64_t step;
    uint64_t time;
    uint64_t low, high; /* bounds of its order */
    bool signal;
    uint32_t next_of_op;    /* further traces in the order of the history, NO_TRACE at the end */
    uint32_t next_of_place; /* of the same life and place */
};

struct evidence {
    const struct history *h;
    uint64_t *order;      /* by operation: claimed, or deduced from signals; 0 if unknown */
    uint32_t *by_order;   /* operations whose order is known, ascending */
    uint32_t ordered;     /* how many these are */
    struct trace *traces; /* in the order of the history */
    uint32_t trace_count;
    uint32_t *first_of_op;
    uint32_t *first_of_place; /* by life * places + place */
    uint32_t *signal_op;      /* by event of the history: whose signal it is, NO_OP */
    uint32_t *first_change;   /* by life * places + place: event of the history, NO_TRACE */
    uint32_t *next_change;    /* by event of the history */
};

struct evidence *evidence_new(const struct history *h);
void evidence_free(struct evidence *e);

/* The operation at this place of the order, NO_OP if none claims it. */
uint32_t evidence_at_order(const struct evidence *e, uint64_t order);

/* The first change of a place in a life, an event of the history; next_change leads on. */
uint32_t evidence_first_change(const struct evidence *e, uint32_t life, uint32_t place);

/* The end of the group of events that belong to the same step as event `from`. */
uint32_t evidence_step_end(const struct history *h, uint32_t from);

/* The first trace of what was written to a place in a life. */
uint32_t evidence_first(const struct evidence *e, uint32_t life, uint32_t place);

/* Was the operation applied in the life by the end of `step`? Also if a later write in the same
 * step hides it: then the next trace of each place it writes comes no later than that. */
bool evidence_applied(const struct evidence *e, uint32_t op, uint32_t life, uint64_t step);

/* Is there any trace of it in that life? */
bool evidence_seen(const struct evidence *e, uint32_t op, uint32_t life);

/* Does a signal with these marks belong to the operation? */
bool evidence_signal_fits(const struct history *h, const struct history_event *signal, uint32_t op);

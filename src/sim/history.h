/* SPDX-License-Identifier: MIT */
/* The history of a run: what clients asked, heard and saw, and nothing else.
 *
 * Append-only. Every step of a node has a number; what happens within one step counts as
 * simultaneous. A change is recorded when, after a step, a variable, an event counter or a heap
 * cell of a node is not what it was after the node's step before. As writes carry the tag of their
 * operation, a change names it. A life is an incarnation as clients see it: it begins when the node
 * hears JOINED and ends, for everyone, at the earliest of: its crash, FENCED at the node, the
 * root's word that the node is down, the crash of a root whose successor did not collect the node.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "machine/machine.h"
#include "sim/layout.h"

#define NO_LIFE    UINT32_MAX
#define NO_OP      UINT32_MAX
#define STEP_NEVER UINT64_MAX

enum history_kind {
    HISTORY_BOOT,
    HISTORY_CRASH,
    HISTORY_JOINED,
    HISTORY_FENCED,
    HISTORY_UP,   /* the root says so, of `place` */
    HISTORY_DOWN, /* the root says so, of `place` */
    HISTORY_REQUEST,
    HISTORY_COMPLETION,
    HISTORY_SET,
    HISTORY_CHANGE,
    HISTORY_SIGNAL,
    HISTORY_STROBE,
    HISTORY_RECORD,  /* stored for gathers */
    HISTORY_MISSING, /* of a gather, of `place`: it has not answered */
    HISTORY_REPLY,   /* of a gather, of `place`: its record */
    HISTORY_EPOCH,
    HISTORY_FAULT,
    HISTORY_KINDS
};

struct history_event {
    uint64_t time;
    uint64_t step;
    uint32_t node;
    uint32_t life; /* as the node itself sees it; NO_LIFE if it is no member */
    enum history_kind kind;
    uint32_t op; /* REQUEST, COMPLETION, MISSING, REPLY: its index; NO_OP if nobody asked for it */
    uint32_t place; /* CHANGE, SET: of the memory; SIGNAL: event; STROBE, RECORD: channel; UP, DOWN,
                     * MISSING, REPLY: node */
    bool torn;      /* CHANGE, REPLY: its words differ */
    enum outcome outcome;
    uint32_t offset;   /* SIGNAL */
    uint64_t len;      /* SIGNAL */
    uint64_t old;      /* CHANGE, EPOCH */
    uint64_t value;    /* CHANGE, SET, EPOCH: the new one; STROBE, RECORD, REPLY: its stamp */
    uint64_t order;    /* COMPLETION, SIGNAL, JOINED, UP, DOWN; STROBE: its number */
    const char *words; /* FAULT */
};

struct history_op {
    uint64_t tag;
    uint32_t node;
    uint32_t life;
    struct primitive request; /* its set is a copy, its body is gone */
    uint32_t body_len;
    struct nodeset set;
    uint32_t first_place; /* what it writes if it is done */
    uint32_t places;
    uint64_t request_time;
    uint64_t request_step;
    uint32_t finals; /* final completions heard: one at most */
    bool unknown;    /* heard an interim UNKNOWN */
    enum outcome outcome;
    uint32_t culprit;
    uint64_t order; /* as claimed by a completion, 0 if none did */
    uint64_t end_time;
    uint64_t end_step; /* of the final completion, STEP_NEVER if there is none */
    bool closing;      /* of the final phase: must be done */
};

enum life_end {
    LIFE_OPEN,
    LIFE_CRASHED,
    LIFE_FENCED,
    LIFE_GIVEN_UP,
    LIFE_NOT_COLLECTED,
    LIFE_REJOINED,
    LIFE_STILLBORN, /* given up before the node heard that it had joined */
    LIFE_ENDS
};

struct life {
    uint32_t node;
    uint32_t epoch;
    uint64_t incarnation;
    uint64_t order; /* operations after this one count for it */
    uint64_t begin_time;
    uint64_t begin_step;
    uint64_t since_step; /* end of the node's life before, or its boot */
    uint64_t end_time;
    uint64_t end_step; /* STEP_NEVER while it lasts */
    enum life_end why;
    uint64_t *variables; /* the snapshot it began with */
};

/* What the history last saw of a node. */
struct history_node {
    uint32_t life;       /* as the node itself sees it */
    uint64_t boot_step;  /* of its power-on */
    uint64_t down_order; /* of the root's last word that it is down */
    uint64_t epoch;
    uint64_t *seen; /* by place */
};

struct history {
    struct layout layout;
    uint64_t step;
    struct history_event *events;
    uint32_t event_count, event_cap;
    struct history_op *ops;
    uint32_t op_count, op_cap;
    struct life *lives;
    uint32_t life_count, life_cap;
    struct history_node *nodes;
    uint32_t root_life;       /* of the acting root, NO_LIFE */
    bool collected;           /* it has said who survived */
    uint32_t collected_epoch; /* the newest that has */
    uint64_t root_crash_step; /* of the last root that had collected */
    uint64_t root_crash_time;
};

struct history *history_new(const struct layout *layout);
void history_free(struct history *h);

/* The tag that the next request has to carry; it is never a counter's value. */
uint64_t history_next_tag(const struct history *h);

/* Records a request with that tag; returns its index. */
uint32_t history_request(struct history *h, uint32_t node, uint64_t now,
                         const struct primitive *request);
void history_set(struct history *h, uint32_t node, uint64_t now, uint32_t variable, uint64_t value);

/* The node stores a record; returns the stamp that all of its words have to be. */
uint64_t history_record(struct history *h, uint32_t node, uint64_t now, uint32_t channel);

/* The event that a record with this stamp was stored by, NO_EVENT_AT if there is none. */
#define NO_EVENT_AT UINT32_MAX
uint32_t history_record_of(const struct history *h, uint64_t stamp);

/* What a daemon hears: all inputs may be passed, those of interest are recorded. */
void history_input(struct history *h, uint32_t node, const struct input *in,
                   struct globals globals);

void history_crash(struct history *h, uint32_t node, uint64_t now);
void history_fault(struct history *h, uint32_t node, uint64_t now, const char *words);

/* What a client sees after a step of the node; then the next step begins. */
void history_observe(struct history *h, uint32_t node, uint64_t now, struct globals globals,
                     const uint8_t *heap, uint64_t epoch);

/* The operation that a value is the tag of, NO_OP if there is none. */
uint32_t history_op_of(const struct history *h, uint64_t value);

/* The life of a node that lasts, NO_LIFE if none does. */
uint32_t history_open_life(const struct history *h, uint32_t node);

/* Is this operation one that has a place in the order? */
bool history_ordered(const struct history_op *op);

/* Does it leave a trace where it is applied? */
bool history_visible(const struct history_op *op);

/* Readable lines, one an event. */
void history_print(const struct history *h, FILE *out);

/* SPDX-License-Identifier: MIT */
/* The history in readable lines, for whoever hunts a failing seed.
 *
 * One line an event: time in microseconds, step, node, incarnation, words. Operations appear as #n,
 * the value that carries their tag too. */
#include <inttypes.h>

#include "sim/history.h"

static const char *kind_name(enum primitive_kind kind) {
    static const char *const names[PRIMITIVE_KINDS] = {
        [PRIMITIVE_XFER] = "xfer",         [PRIMITIVE_COMPARE] = "compare",
        [PRIMITIVE_STANDING] = "standing", [PRIMITIVE_BULK] = "bulk",
        [PRIMITIVE_STROBE] = "strobe",     [PRIMITIVE_SET] = "set",
        [PRIMITIVE_VOTE] = "vote",         [PRIMITIVE_RECORD] = "record",
        [PRIMITIVE_GATHER] = "gather",     [PRIMITIVE_MAIL] = "mail",
    };
    return kind < PRIMITIVE_KINDS ? names[kind] : "?";
}

static const char *relation_sign(enum relation relation) {
    static const char *const names[RELATIONS] = {
        [RELATION_GE] = ">=", [RELATION_LT] = "<", [RELATION_EQ] = "==", [RELATION_NE] = "!="};
    return relation < RELATIONS ? names[relation] : "?";
}

static void print_value(const struct history *h, uint64_t value, FILE *out) {
    uint32_t op = history_op_of(h, value);
    if (op != NO_OP)
        fprintf(out, "#%" PRIu32, op);
    else
        fprintf(out, "%" PRIu64, value);
}

static void print_place(const struct layout *l, uint32_t place, FILE *out) {
    if (layout_is_variable(l, place))
        fprintf(out, "%s%" PRIu32, layout_is_counter(l, place) ? "counter" : "variable", place);
    else if (layout_is_event(l, place))
        fprintf(out, "event%" PRIu32, place - l->variables);
    else
        fprintf(out, "cell%" PRIu32, place - l->variables - l->events);
}

static void print_compare(const struct history *h, const struct primitive *r, FILE *out) {
    fputc(' ', out);
    print_place(&h->layout, r->variable, out);
    fprintf(out, " %s ", relation_sign(r->relation));
    print_value(h, r->value, out);
    if (r->write_variable == NO_VARIABLE)
        return;
    fputs(" writes ", out);
    print_place(&h->layout, r->write_variable, out);
}

static void print_request(const struct history *h, uint32_t index, FILE *out) {
    const struct history_op *op = &h->ops[index];
    const struct primitive *r = &op->request;
    char set[256];
    nodeset_format(&op->set, "", set, sizeof set);
    fprintf(out, "asks #%" PRIu32 " %s to %s", index, kind_name(r->kind), set);
    switch (r->kind) {
    case PRIMITIVE_COMPARE:
    case PRIMITIVE_STANDING:
        print_compare(h, r, out);
        break;
    case PRIMITIVE_XFER:
    case PRIMITIVE_BULK:
        fprintf(out, " offset %" PRIu32 " len %" PRIu64 " event %" PRId32, r->heap_offset,
                op->body_len + r->buffer_bytes, (int32_t)r->remote_event);
        break;
    default:
        fprintf(out, " channel %" PRIu32, r->channel);
        break;
    }
    fprintf(out, " timeout %" PRIu64 " us", r->timeout_ns / 1000);
}

static void print_change(const struct history *h, const struct history_event *e, FILE *out) {
    print_place(&h->layout, e->place, out);
    fputs(e->kind == HISTORY_SET ? " set to " : " is ", out);
    print_value(h, e->value, out);
    if (e->kind == HISTORY_CHANGE) {
        fputs(e->torn ? " TORN, was " : ", was ", out);
        print_value(h, e->old, out);
    }
}

static void print_words(const struct history *h, const struct history_event *e, FILE *out) {
    switch (e->kind) {
    case HISTORY_BOOT:
        fputs("boots", out);
        break;
    case HISTORY_CRASH:
        fputs("CRASHES", out);
        break;
    case HISTORY_JOINED:
        fprintf(out, "joined at order %" PRIu64 " in epoch %" PRIu32, e->order,
                h->lives[e->life].epoch);
        break;
    case HISTORY_FENCED:
        fputs("FENCED", out);
        break;
    case HISTORY_UP:
    case HISTORY_DOWN:
        fprintf(out, "hears that %" PRIu32 " is %s at order %" PRIu64, e->place,
                e->kind == HISTORY_UP ? "up" : "DOWN", e->order);
        break;
    case HISTORY_REQUEST:
        print_request(h, e->op, out);
        break;
    case HISTORY_COMPLETION:
        fprintf(out, "#%" PRId32 " is %s, order %" PRIu64 ", culprit %" PRId32, (int32_t)e->op,
                outcome_name(e->outcome), e->order, (int32_t)e->place);
        break;
    case HISTORY_SET:
    case HISTORY_CHANGE:
        print_change(h, e, out);
        break;
    case HISTORY_SIGNAL:
        fprintf(out,
                "signal of event %" PRIu32 ", order %" PRIu64 ", offset %" PRIu32 " len %" PRIu64,
                e->place, e->order, e->offset, e->len);
        break;
    case HISTORY_STROBE:
        fprintf(out, "strobe %" PRIu64 " of channel %" PRIu32 ": ", e->order, e->place);
        print_value(h, e->value, out);
        break;
    case HISTORY_RECORD:
        fprintf(out, "stores record @%" PRIu32 " for channel %" PRIu32,
                history_record_of(h, e->value), e->place);
        break;
    case HISTORY_MISSING:
        fprintf(out, "#%" PRId32 " misses %" PRIu32, (int32_t)e->op, e->place);
        break;
    case HISTORY_REPLY:
        fprintf(out, "#%" PRId32 " brings record @%" PRId32 " of %" PRIu32 "%s", (int32_t)e->op,
                (int32_t)history_record_of(h, e->value), e->place, e->torn ? " TORN" : "");
        break;
    case HISTORY_EPOCH:
        fprintf(out, "epoch %" PRIu64 ", was %" PRIu64, e->value, e->old);
        break;
    case HISTORY_FAULT:
        fprintf(out, "FAULT %s", e->words);
        break;
    case HISTORY_KINDS:
        break;
    }
}

static void print_life(const struct life *l, FILE *out) {
    static const char *const ends[LIFE_ENDS] = {
        [LIFE_OPEN] = "lasts",
        [LIFE_CRASHED] = "crashed",
        [LIFE_FENCED] = "was fenced",
        [LIFE_GIVEN_UP] = "was given up",
        [LIFE_NOT_COLLECTED] = "was not collected",
        [LIFE_REJOINED] = "joined anew",
        [LIFE_STILLBORN] = "was given up before it began",
    };
    fprintf(out,
            "life of node %" PRIu32 " incarnation %" PRIu64 " from order %" PRIu64 ", step %" PRIu64
            ": %s",
            l->node, l->incarnation, l->order, l->begin_step, ends[l->why]);
    if (l->end_step != STEP_NEVER)
        fprintf(out, " in step %" PRIu64 " at %" PRIu64 ".%03" PRIu64 " us", l->end_step,
                l->end_time / 1000, l->end_time % 1000);
    fputc('\n', out);
}

void history_print(const struct history *h, FILE *out) {
    for (uint32_t i = 0; i < h->event_count; i++) {
        const struct history_event *e = &h->events[i];
        uint64_t incarnation = e->life == NO_LIFE ? 0 : h->lives[e->life].incarnation;
        fprintf(out, "%9" PRIu64 ".%03" PRIu64 " %7" PRIu64 "  %3" PRIu32 "/%-6" PRIu64 " ",
                e->time / 1000, e->time % 1000, e->step, e->node, incarnation);
        print_words(h, e, out);
        fputc('\n', out);
    }
    for (uint32_t i = 0; i < h->life_count; i++)
        print_life(&h->lives[i], out);
}

/* SPDX-License-Identifier: MIT */
/* Tests of the checker: hand-made histories, each with one thing wrong.
 *
 * Three nodes and a root, with plain arrays for memory. `play` makes a history that keeps every
 * promise; each test adds one breach and expects its rule to be named. */
#include "sim/checker.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"

enum { NODES = 3, ROOT = 3, ALL = 4, VARIABLES = 4, EVENTS = 3, CELLS = 4, HEAP = 64 };

struct fake_node {
    uint64_t variables[VARIABLES];
    uint64_t events[EVENTS];
    uint8_t heap[HEAP];
    uint64_t epoch;
};

struct fake {
    struct history *h;
    struct layout layout;
    struct fake_node nodes[ALL];
    uint64_t now;
    uint64_t order; /* last one given */
    uint64_t storage[16];
    struct nodeset set;
};

static struct globals memory(struct fake *f, uint32_t node) {
    return (struct globals){f->nodes[node].variables, f->nodes[node].events};
}

/* Ends a step of the node. */
static void look(struct fake *f, uint32_t node) {
    f->now += 1000;
    history_observe(f->h, node, f->now, memory(f, node), f->nodes[node].heap, f->nodes[node].epoch);
}

static void hear(struct fake *f, uint32_t node, const struct input *in) {
    history_input(f->h, node, in, memory(f, node));
}

static void boot(struct fake *f, uint32_t node) {
    hear(f, node, &(struct input){.kind = INPUT_BOOT, .now = f->now});
    look(f, node);
}

static void join_with(struct fake *f, uint32_t node, uint32_t epoch, uint64_t order) {
    static uint64_t incarnation;
    struct fake_node *n = &f->nodes[node];
    memset(n->events, 0, sizeof n->events);
    memset(n->heap, 0, sizeof n->heap);
    n->epoch = epoch;
    hear(f, node,
         &(struct input){.kind = INPUT_JOINED,
                         .now = f->now,
                         .joined = {.epoch = epoch, .incarnation = ++incarnation, .order = order}});
}

static void join(struct fake *f, uint32_t node, uint32_t epoch) {
    if (node != ROOT)
        memcpy(f->nodes[node].variables, f->nodes[ROOT].variables, sizeof f->nodes[node].variables);
    join_with(f, node, epoch, f->order);
    look(f, node);
}

static void tell_nodes(struct fake *f, bool up, uint32_t first, uint32_t last) {
    nodeset_clear(&f->set);
    if (first <= last)
        nodeset_add_range(&f->set, first, last);
    hear(f, ROOT,
         &(struct input){.kind = INPUT_NODES,
                         .now = f->now,
                         .nodes = {.nodes = &f->set, .up = up, .order = f->order}});
    look(f, ROOT);
}

static void setup(struct fake *f) {
    *f = (struct fake){.now = 1000};
    struct limits limits = {
        .nodes = NODES, .roots = 1, .variables = VARIABLES, .events = EVENTS, .heap_bytes = HEAP};
    layout_init(&f->layout, &limits, CELLS, 8);
    layout_add_bulk(&f->layout, 32);
    f->h = history_new(&f->layout);
    nodeset_init(&f->set, ALL, f->storage);
    boot(f, ROOT);
    join(f, ROOT, 1);
    for (uint32_t i = 0; i < NODES; i++)
        boot(f, i);
    tell_nodes(f, true, 0, NODES - 1);
    for (uint32_t i = 0; i < NODES; i++)
        join(f, i, 1);
}

/* ---- Operations ----------------------------------------------------------------------------- */

static struct primitive request(struct fake *f, enum primitive_kind kind, uint32_t first,
                                uint32_t last) {
    nodeset_clear(&f->set);
    nodeset_add_range(&f->set, first, last);
    return (struct primitive){.kind = kind,
                              .tag = history_next_tag(f->h),
                              .set = &f->set,
                              .remote_event = NO_EVENT,
                              .local_event = NO_EVENT,
                              .write_variable = NO_VARIABLE};
}

static uint32_t ask_xfer(struct fake *f, uint32_t node, uint32_t cell, uint32_t first,
                         uint32_t last) {
    static const uint8_t body[8];
    struct primitive r = request(f, PRIMITIVE_XFER, first, last);
    r.heap_offset = cell * 8;
    r.body = bytes_of(body, sizeof body);
    r.remote_event = 1;
    uint32_t op = history_request(f->h, node, f->now, &r);
    look(f, node);
    return op;
}

static uint32_t ask_compare(struct fake *f, uint32_t node, uint32_t variable,
                            enum relation relation, uint64_t value, uint32_t write) {
    struct primitive r = request(f, PRIMITIVE_COMPARE, 0, ROOT);
    r.variable = variable;
    r.relation = relation;
    r.value = value;
    r.write_variable = write;
    r.write_value = r.tag;
    uint32_t op = history_request(f->h, node, f->now, &r);
    look(f, node);
    return op;
}

/* Writes what the operation writes; the caller ends the step. */
static void write_quietly(struct fake *f, uint32_t node, uint32_t op) {
    const struct history_op *o = &f->h->ops[op];
    struct fake_node *n = &f->nodes[node];
    if (o->request.kind == PRIMITIVE_COMPARE)
        n->variables[o->request.write_variable] = o->tag;
    else
        store_le64(n->heap + o->request.heap_offset, o->tag);
}

static void signal(struct fake *f, uint32_t node, uint32_t op, uint64_t order) {
    const struct history_op *o = &f->h->ops[op];
    f->nodes[node].events[o->request.remote_event]++;
    hear(f, node,
         &(struct input){.kind = INPUT_SIGNAL,
                         .now = f->now,
                         .signal = {.event = o->request.remote_event,
                                    .order = order,
                                    .heap_offset = o->request.heap_offset,
                                    .len = o->body_len}});
}

static void apply(struct fake *f, uint32_t node, uint32_t op, uint64_t order) {
    if (f->h->ops[op].request.kind == PRIMITIVE_XFER)
        signal(f, node, op, order);
    write_quietly(f, node, op);
    look(f, node);
}

static void apply_range(struct fake *f, uint32_t op, uint64_t order, uint32_t first,
                        uint32_t last) {
    for (uint32_t i = first; i <= last; i++)
        apply(f, i, op, order);
}

static void answer(struct fake *f, uint32_t op, enum outcome outcome, uint64_t order) {
    uint32_t node = f->h->ops[op].node;
    hear(f, node,
         &(struct input){.kind = INPUT_COMPLETION,
                         .now = f->now,
                         .completion = {.tag = f->h->ops[op].tag,
                                        .outcome = outcome,
                                        .culprit = NO_NODE,
                                        .order = order}});
    look(f, node);
}

static void set_counter(struct fake *f, uint32_t node, uint64_t value) {
    history_set(f->h, node, f->now, 0, value);
    f->nodes[node].variables[0] = value;
    look(f, node);
}

/* An XFER to nodes first..last that goes well. */
static uint32_t good_xfer(struct fake *f, uint32_t node, uint32_t cell, uint32_t first,
                          uint32_t last) {
    uint32_t op = ask_xfer(f, node, cell, first, last);
    uint64_t order = ++f->order;
    apply_range(f, op, order, first, last);
    answer(f, op, OUTCOME_DONE, order);
    return op;
}

static void play(struct fake *f) {
    setup(f);
    good_xfer(f, 0, 0, 0, ROOT);
    set_counter(f, 1, 5);
    uint32_t op = ask_compare(f, 1, 0, RELATION_GE, 0, 2);
    apply_range(f, op, ++f->order, 0, ROOT);
    answer(f, op, OUTCOME_DONE, f->order);
    op = ask_compare(f, 2, 0, RELATION_GE, 5, NO_VARIABLE);
    answer(f, op, OUTCOME_FALSE, ++f->order);
    good_xfer(f, ROOT, 0, 1, 2);
}

/* Judges; `rule` NULL: nothing may be wrong. */
static void judge(struct fake *f, bool closed, const char *rule) {
    struct verdict v = {0};
    checker_run(f->h, closed, &v);
    bool right = rule ? verdict_has(&v, rule) : v.count == 0;
    if (!CHECK(right)) {
        printf("# wanted %s\n", rule ? rule : "nothing");
        verdict_print(&v, VERDICT_LINES, stdout);
    }
    history_free(f->h);
}

/* ---- Histories that keep all promises ------------------------------------------------------- */

static void test_clean(void) {
    struct fake f;
    play(&f);
    judge(&f, false, NULL);
}

static void test_clean_hidden_write(void) {
    struct fake f;
    setup(&f);
    uint32_t a = ask_compare(&f, 0, 0, RELATION_GE, 0, 3);
    uint32_t b = ask_compare(&f, 1, 0, RELATION_GE, 0, 3);
    apply_range(&f, a, 1, 0, 2);
    apply_range(&f, b, 2, 0, ROOT); /* at the root both in one step */
    f.order = 2;
    answer(&f, a, OUTCOME_DONE, 1);
    answer(&f, b, OUTCOME_DONE, 2);
    judge(&f, false, NULL);
}

static void test_clean_rejoin(void) {
    struct fake f;
    play(&f);
    history_crash(f.h, 2, f.now);
    tell_nodes(&f, false, 2, 2);
    good_xfer(&f, 0, 1, 0, 1);
    boot(&f, 2);
    join(&f, 2, 1);
    good_xfer(&f, 2, 1, 0, ROOT);
    judge(&f, false, NULL);
}

static void root_restarts(struct fake *f, uint32_t survivors) {
    history_crash(f->h, ROOT, f->now);
    boot(f, ROOT);
    memcpy(f->nodes[ROOT].variables, f->nodes[0].variables, sizeof f->nodes[0].variables);
    join(f, ROOT, 2);
    tell_nodes(f, true, 0, survivors - 1);
}

static void test_clean_root_crash(void) {
    struct fake f;
    play(&f);
    uint32_t op = ask_xfer(&f, 0, 1, 0, 2);
    uint64_t order = ++f.order;
    apply(&f, 0, op, order);
    answer(&f, op, OUTCOME_UNKNOWN, 0);
    root_restarts(&f, 2);
    apply(&f, 1, op, order); /* node 2 was not collected */
    answer(&f, op, OUTCOME_DONE, order);
    judge(&f, false, NULL);
}

static void test_clean_failed_on_the_uncollected(void) {
    struct fake f;
    play(&f);
    uint32_t op = ask_xfer(&f, 0, 1, 0, 2);
    apply(&f, 2, op, ++f.order);
    root_restarts(&f, 2);
    answer(&f, op, OUTCOME_FAILED, 0);
    judge(&f, false, NULL);
}

static void test_clean_closing(void) {
    struct fake f;
    play(&f);
    uint32_t op = ask_compare(&f, ROOT, 0, RELATION_NE, UINT64_MAX, 3);
    f.h->ops[op].closing = true;
    apply_range(&f, op, ++f.order, 0, ROOT);
    answer(&f, op, OUTCOME_DONE, f.order);
    op = good_xfer(&f, ROOT, 0, 0, ROOT);
    f.h->ops[op].closing = true;
    judge(&f, true, NULL);
}

/* ---- One breach each ------------------------------------------------------------------------ */

static void test_same_order_twice(void) {
    struct fake f;
    play(&f);
    uint32_t op = ask_compare(&f, 0, 0, RELATION_GE, 0, NO_VARIABLE);
    answer(&f, op, OUTCOME_DONE, f.order);
    judge(&f, false, "claim");
}

static void test_done_without_order(void) {
    struct fake f;
    play(&f);
    uint32_t op = ask_compare(&f, 0, 0, RELATION_GE, 0, NO_VARIABLE);
    answer(&f, op, OUTCOME_DONE, 0);
    judge(&f, false, "claim");
}

static void test_program_order(void) {
    struct fake f;
    setup(&f);
    f.order = 5;
    good_xfer(&f, 0, 0, 0, ROOT);
    uint32_t op = ask_compare(&f, 0, 0, RELATION_GE, 0, NO_VARIABLE);
    answer(&f, op, OUTCOME_DONE, 4);
    judge(&f, false, "program");
}

static void test_asked_in_a_former_life(void) {
    struct fake f;
    play(&f);
    uint32_t op = ask_xfer(&f, 2, 1, 0, 1);
    history_crash(f.h, 2, f.now);
    tell_nodes(&f, false, 2, 2);
    boot(&f, 2);
    join(&f, 2, 1);
    f.order += 2;
    apply(&f, 0, op, f.order);
    apply(&f, 1, op, f.order);
    judge(&f, false, "former");
}

static void test_applied_out_of_order(void) {
    struct fake f;
    play(&f);
    uint32_t a = ask_xfer(&f, 0, 1, 0, 1);
    uint32_t b = ask_xfer(&f, 1, 2, 0, 1);
    apply(&f, 0, a, f.order + 1);
    apply(&f, 0, b, f.order + 2);
    apply(&f, 1, b, f.order + 2);
    apply(&f, 1, a, f.order + 1);
    answer(&f, a, OUTCOME_DONE, f.order + 1);
    answer(&f, b, OUTCOME_DONE, f.order + 2);
    judge(&f, false, "order");
}

static void test_applied_though_before_the_join(void) {
    struct fake f;
    play(&f);
    uint32_t op = ask_xfer(&f, 0, 1, 2, 2);
    f.order += 2;
    history_crash(f.h, 2, f.now);
    tell_nodes(&f, false, 2, 2);
    boot(&f, 2);
    join(&f, 2, 1);
    apply(&f, 2, op, f.order - 1);
    answer(&f, op, OUTCOME_DONE, f.order - 1);
    judge(&f, false, "order");
}

static void test_cycle_without_answers(void) {
    struct fake f;
    play(&f);
    uint32_t a = ask_compare(&f, 0, 0, RELATION_GE, 0, 2);
    uint32_t b = ask_compare(&f, 1, 0, RELATION_GE, 0, 3);
    apply(&f, 0, a, 0);
    apply(&f, 0, b, 0);
    apply(&f, 1, b, 0);
    apply(&f, 1, a, 0);
    judge(&f, false, "cycle");
}

static void test_done_but_not_everywhere(void) {
    struct fake f;
    play(&f);
    uint32_t op = ask_xfer(&f, 0, 1, 0, 2);
    apply_range(&f, op, ++f.order, 0, 1);
    answer(&f, op, OUTCOME_DONE, f.order);
    judge(&f, false, "atomic");
}

static void test_done_too_early(void) {
    struct fake f;
    play(&f);
    uint32_t op = ask_compare(&f, 0, 0, RELATION_GE, 0, 3);
    apply_range(&f, op, ++f.order, 0, 2);
    answer(&f, op, OUTCOME_DONE, f.order);
    apply(&f, ROOT, op, f.order);
    judge(&f, false, "atomic");
}

static void test_applied_twice(void) {
    struct fake f;
    play(&f);
    uint32_t op = good_xfer(&f, 0, 1, 0, 2);
    signal(&f, 1, op, f.order);
    look(&f, 1);
    judge(&f, false, "twice");
}

static void test_applied_outside(void) {
    struct fake f;
    play(&f);
    uint32_t op = ask_compare(&f, 0, 0, RELATION_GE, 0, 3);
    nodeset_remove(&f.h->ops[op].set, 2);
    apply_range(&f, op, ++f.order, 0, ROOT);
    answer(&f, op, OUTCOME_DONE, f.order);
    judge(&f, false, "outside");
}

static void test_failed_but_visible(void) {
    struct fake f;
    play(&f);
    uint32_t op = ask_xfer(&f, 0, 1, 0, 2);
    apply(&f, 1, op, ++f.order);
    answer(&f, op, OUTCOME_FAILED, f.order);
    judge(&f, false, "ghost");
}

static void test_half_done_by_the_dead(void) {
    struct fake f;
    play(&f);
    uint32_t op = ask_xfer(&f, 0, 1, 0, 2);
    apply(&f, 1, op, ++f.order);
    history_crash(f.h, 0, f.now);
    tell_nodes(&f, false, 0, 0);
    judge(&f, false, "half");
}

static void test_true_but_is_false(void) {
    struct fake f;
    play(&f);
    uint32_t op = ask_compare(&f, 1, 0, RELATION_GE, 5, NO_VARIABLE);
    answer(&f, op, OUTCOME_DONE, ++f.order);
    judge(&f, false, "compare");
}

static void test_false_but_is_true(void) {
    struct fake f;
    play(&f);
    uint64_t value = f.nodes[0].variables[2];
    uint32_t op = ask_compare(&f, 1, 2, RELATION_EQ, value, NO_VARIABLE);
    answer(&f, op, OUTCOME_FALSE, ++f.order);
    judge(&f, false, "compare");
}

/* The value that it saw was written by an operation later in the order. */
static void test_true_of_a_later_value(void) {
    struct fake f;
    play(&f);
    uint32_t later = ask_compare(&f, 0, 0, RELATION_GE, 0, 2);
    uint32_t op = ask_compare(&f, 1, 2, RELATION_EQ, f.h->ops[later].tag, NO_VARIABLE);
    apply_range(&f, later, f.order + 2, 0, ROOT);
    answer(&f, later, OUTCOME_DONE, f.order + 2);
    answer(&f, op, OUTCOME_DONE, f.order + 1);
    judge(&f, false, "compare");
}

static void test_data_without_signal(void) {
    struct fake f;
    play(&f);
    uint32_t op = ask_xfer(&f, 0, 1, 0, 0);
    write_quietly(&f, 0, op);
    look(&f, 0);
    answer(&f, op, OUTCOME_DONE, ++f.order);
    judge(&f, false, "signal");
}

static void test_signal_without_data(void) {
    struct fake f;
    play(&f);
    uint32_t op = ask_xfer(&f, 0, 1, 0, 0);
    signal(&f, 0, op, ++f.order);
    look(&f, 0);
    answer(&f, op, OUTCOME_DONE, f.order);
    judge(&f, false, "signal");
}

static void test_counter_off(void) {
    struct fake f;
    play(&f);
    f.nodes[1].events[1]++;
    look(&f, 1);
    judge(&f, false, "signal");
}

static void test_signal_of_nobody(void) {
    struct fake f;
    play(&f);
    signal(&f, 1, 0, 77);
    look(&f, 1);
    judge(&f, false, "signal");
}

static void test_value_of_nobody(void) {
    struct fake f;
    play(&f);
    f.nodes[1].variables[3] = 12345;
    look(&f, 1);
    judge(&f, false, "memory");
}

static void test_counter_of_another(void) {
    struct fake f;
    play(&f);
    f.nodes[1].variables[1] = 6;
    look(&f, 1);
    judge(&f, false, "memory");
}

static void test_torn_bulk(void) {
    struct fake f;
    play(&f);
    struct primitive r = request(&f, PRIMITIVE_BULK, 0, 0);
    r.heap_offset = f.layout.bulk_offset[0];
    r.buffer_bytes = 32;
    uint32_t op = history_request(f.h, 1, f.now, &r);
    look(&f, 1);
    for (uint32_t i = 0; i < 24; i += 8)
        store_le64(f.nodes[0].heap + r.heap_offset + i, r.tag);
    look(&f, 0);
    answer(&f, op, OUTCOME_DONE, ++f.order);
    judge(&f, false, "memory");
}

static void test_join_with_old_variables(void) {
    struct fake f;
    play(&f);
    history_crash(f.h, 2, f.now);
    tell_nodes(&f, false, 2, 2);
    boot(&f, 2);
    memset(f.nodes[2].variables, 0, sizeof f.nodes[2].variables);
    join_with(&f, 2, 1, f.order);
    look(&f, 2);
    judge(&f, false, "join");
}

static void test_join_with_old_heap(void) {
    struct fake f;
    play(&f);
    history_crash(f.h, 2, f.now);
    tell_nodes(&f, false, 2, 2);
    boot(&f, 2);
    memcpy(f.nodes[2].variables, f.nodes[ROOT].variables, sizeof f.nodes[2].variables);
    join_with(&f, 2, 1, f.order);
    store_le64(f.nodes[2].heap, f.h->ops[0].tag);
    look(&f, 2);
    judge(&f, false, "order");
}

static void test_root_with_nobodys_variables(void) {
    struct fake f;
    play(&f);
    history_crash(f.h, ROOT, f.now);
    boot(&f, ROOT);
    memset(f.nodes[ROOT].variables, 0, sizeof f.nodes[ROOT].variables);
    join(&f, ROOT, 2);
    tell_nodes(&f, true, 0, 2);
    judge(&f, false, "join");
}

static void strobe(struct fake *f, uint32_t node, uint64_t number, uint64_t tag) {
    uint8_t body[8];
    store_le64(body, tag);
    hear(f, node,
         &(struct input){
             .kind = INPUT_STROBE,
             .now = f->now,
             .strobe = {.channel = 0, .number = number, .body = bytes_of(body, sizeof body)}});
    look(f, node);
}

static void test_strobes(void) {
    for (int breach = 0; breach < 3; breach++) {
        struct fake f;
        play(&f);
        struct primitive r = request(&f, PRIMITIVE_STROBE, 0, ROOT);
        history_request(f.h, ROOT, f.now, &r);
        look(&f, ROOT);
        strobe(&f, 1, 4, r.tag);
        if (breach == 1)
            strobe(&f, 1, 4, r.tag);
        if (breach == 2)
            strobe(&f, 1, 5, 99);
        judge(&f, false, breach ? "strobe" : NULL);
    }
}

/* ---- gathers ---- */

static uint64_t store_record(struct fake *f, uint32_t node, uint32_t channel) {
    uint64_t stamp = history_record(f->h, node, f->now, channel);
    look(f, node);
    return stamp;
}

static uint32_t ask_gather(struct fake *f, uint32_t first, uint32_t last) {
    struct primitive r = request(f, PRIMITIVE_GATHER, first, last);
    r.channel = 1;
    uint32_t op = history_request(f->h, ROOT, f->now, &r);
    look(f, ROOT);
    return op;
}

/* Brings the stamps of nodes from `first` on; 0 is a node that is missing, 1 one without record. */
static void gathered(struct fake *f, uint32_t op, uint32_t first, const uint64_t *stamps,
                     uint32_t count) {
    uint8_t records[ALL * 16], record[8];
    size_t len = 0;
    nodeset_clear(&f->set);
    for (uint32_t i = 0; i < count; i++) {
        store_le64(record, stamps[i]);
        struct reply r = {first + i, bytes_of(record, 8)};
        if (stamps[i] == 0)
            nodeset_add(&f->set, first + i);
        else if (stamps[i] != 1)
            len += reply_store(room_of(records + len, sizeof records - len), &r);
    }
    hear(f, ROOT,
         &(struct input){.kind = INPUT_GATHERED,
                         .now = f->now,
                         .gathered = {.tag = f->h->ops[op].tag,
                                      .channel = 1,
                                      .records = bytes_of(records, len),
                                      .missing = &f->set}});
    look(f, ROOT);
}

static void test_clean_gather(void) {
    struct fake f;
    play(&f);
    store_record(&f, 0, 1);
    uint64_t stamps[] = {store_record(&f, 0, 1), 1, 0};
    store_record(&f, 1, 0);
    uint32_t op = ask_gather(&f, 0, 2);
    store_record(&f, 0, 1); /* after the query has been there */
    store_record(&f, 1, 1);
    gathered(&f, op, 0, stamps, 3);
    judge(&f, false, NULL);
}

static void test_gathers(void) {
    for (uint32_t breach = 0; breach < 7; breach++) {
        struct fake f;
        play(&f);
        uint64_t old = store_record(&f, 0, 1);
        uint64_t stamps[] = {breach == 2 ? old : store_record(&f, 0, 1), store_record(&f, 1, 1), 1};
        if (breach == 1) /* replaced before it was asked for */
            stamps[0] = old;
        if (breach == 2) /* its life had ended before */
            history_crash(f.h, 0, f.now);
        if (breach == 3) /* another's */
            stamps[2] = stamps[1];
        if (breach == 4) /* nobody's */
            stamps[0] = 99;
        if (breach == 5) /* it has one */
            stamps[1] = 1;
        if (breach == 6) /* it is not there */
            history_crash(f.h, 2, f.now);
        look(&f, ROOT);
        gathered(&f, ask_gather(&f, 0, 2), 0, stamps, 3);
        judge(&f, false, breach ? "gather" : NULL);
    }
}

static void test_a_gather_of_others(void) {
    for (uint32_t breach = 0; breach < 2; breach++) {
        struct fake f;
        play(&f);
        uint64_t stamps[] = {breach ? store_record(&f, 0, 1) : 0, 1};
        gathered(&f, ask_gather(&f, 1, 2), 0, stamps, 2);
        judge(&f, false, "gather");
    }
}

static void test_never_answered(void) {
    struct fake f;
    play(&f);
    ask_compare(&f, 1, 0, RELATION_GE, 0, NO_VARIABLE);
    judge(&f, false, "answer");
}

static void test_answered_twice(void) {
    struct fake f;
    play(&f);
    uint32_t op = ask_compare(&f, 1, 0, RELATION_GE, 0, NO_VARIABLE);
    answer(&f, op, OUTCOME_REFUSED, 0);
    answer(&f, op, OUTCOME_REFUSED, 0);
    judge(&f, false, "answer");
}

static void test_epoch_goes_back(void) {
    struct fake f;
    play(&f);
    history_crash(f.h, 2, f.now);
    f.nodes[2].epoch = 0;
    boot(&f, 2);
    judge(&f, false, "epoch");
}

static void test_no_convergence(void) {
    struct fake f;
    play(&f);
    judge(&f, true, "converge");
}

int main(void) {
    TEST(test_clean);
    TEST(test_clean_hidden_write);
    TEST(test_clean_rejoin);
    TEST(test_clean_root_crash);
    TEST(test_clean_failed_on_the_uncollected);
    TEST(test_clean_closing);
    TEST(test_same_order_twice);
    TEST(test_done_without_order);
    TEST(test_program_order);
    TEST(test_asked_in_a_former_life);
    TEST(test_applied_out_of_order);
    TEST(test_applied_though_before_the_join);
    TEST(test_cycle_without_answers);
    TEST(test_done_but_not_everywhere);
    TEST(test_done_too_early);
    TEST(test_applied_twice);
    TEST(test_applied_outside);
    TEST(test_failed_but_visible);
    TEST(test_half_done_by_the_dead);
    TEST(test_true_but_is_false);
    TEST(test_false_but_is_true);
    TEST(test_true_of_a_later_value);
    TEST(test_data_without_signal);
    TEST(test_signal_without_data);
    TEST(test_counter_off);
    TEST(test_signal_of_nobody);
    TEST(test_value_of_nobody);
    TEST(test_counter_of_another);
    TEST(test_torn_bulk);
    TEST(test_join_with_old_variables);
    TEST(test_join_with_old_heap);
    TEST(test_root_with_nobodys_variables);
    TEST(test_strobes);
    TEST(test_clean_gather);
    TEST(test_gathers);
    TEST(test_a_gather_of_others);
    TEST(test_never_answered);
    TEST(test_answered_twice);
    TEST(test_epoch_goes_back);
    TEST(test_no_convergence);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* storm demo --sim: the same promises on 1,024 simulated nodes, checked on the way. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/units.h"
#include "cli/demo.h"
#include "cli/complain.h"
#include "cli/options.h"
#include "cli/story.h"
#include "cli/terminal.h"
#include "sim/checker.h"

enum { NODES = 1024, VICTIM = 129, SETTER = 777, ASKER = 512, WITNESS = 1023 };

/* Global memory: variable 0 belongs to each node, 2 and 3 are written by compares. */
enum { VARIABLE_OWN = 0, VARIABLE_RACE = 2, VARIABLE_LAST = 3 };
enum { EVENT_DATA = 1, EVENT_LOCAL = 3 };

static const uint32_t speakers[] = {3, 300, ASKER, SETTER, 1000, WITNESS};
enum { SPEAKERS = sizeof speakers / sizeof *speakers };

/* ---- questions ---- */

static bool all_up(struct story *s, uint32_t count) {
    return chorus_up(s->chorus) == count;
}

static bool is_down(struct story *s, uint32_t node) {
    return chorus_down_ns(s->chorus, node) > 0;
}

static uint32_t planned_parent(const struct story *s, uint32_t node) {
    uint32_t parent = s->root;
    tree_ancestors(&s->prim.tree, node, &parent, 1);
    return parent;
}

/* Does every child of the node hang below `wanted`? */
static bool children_hang(struct story *s, uint32_t node, uint32_t wanted) {
    for (uint32_t n = node + 1; n < s->nodes && tree_above(&s->prim.tree, node, n); n++)
        if (planned_parent(s, n) == node && story_parent(s, n) != wanted)
            return false;
    return true;
}

static bool children_moved(struct story *s, uint32_t node) {
    return children_hang(s, node, planned_parent(s, node));
}

static bool children_back(struct story *s, uint32_t node) {
    return children_hang(s, node, node);
}

/* How many nodes have that value in the variable. */
static uint32_t count_value(const struct story *s, uint32_t variable, uint64_t value) {
    uint32_t count = 0;
    for (uint32_t n = 0; n < s->nodes; n++)
        count += story_variable(s, n, variable) == value;
    return count;
}

static uint32_t count_cell(const struct story *s, uint64_t tag) {
    uint32_t count = 0;
    for (uint32_t n = 0; n < s->nodes; n++)
        count += world_heap(s->world, n) != NULL && load_le64(world_heap(s->world, n)) == tag;
    return count;
}

/* ---- chapters ---- */

static void bring_up(struct story *s) {
    teller_chapter(&s->teller, "A cluster comes up");
    world_boot(s->world, s->root, true);
    for (uint32_t n = 0; n < s->nodes; n++)
        world_boot(s->world, n, false);
    bool up = story_until(s, 10 * NS_PER_S, all_up, s->nodes + 1);
    story_check(s, up,
                "%" PRIu32 " nodes and the manager are up, in a tree %" PRIu32
                " levels deep; %" PRIu64 " messages so far",
                chorus_up(s->chorus) - (up ? 1 : 0), tree_depth(&s->prim.tree),
                world_counts(s->world)->messages);
}

static void show_xfer(struct story *s) {
    struct primitive r = story_request(s, PRIMITIVE_XFER);
    r.body.len = 64;
    r.remote_event = EVENT_DATA;
    r.local_event = EVENT_LOCAL;
    const struct chorus_op *op = story_ask(s, s->root, &r);
    uint32_t have = count_cell(s, op->request.tag);
    story_check(s, op->answered && op->completion.outcome == OUTCOME_DONE && have == s->nodes,
                "XFER-AND-SIGNAL of 64 bytes to all nodes: %s in %" PRIu64 " us, on %" PRIu32
                " nodes",
                outcome_name(op->completion.outcome), story_us(op), have);
    uint64_t remote = world_globals(s->world, WITNESS).events[EVENT_DATA];
    uint64_t local = world_globals(s->world, s->root).events[EVENT_LOCAL];
    story_check(s, remote == 1 && local == 1,
                "TEST-EVENT: n%d was signalled %" PRIu64 " time, the manager's own event %" PRIu64,
                WITNESS, remote, local);
}

/* Is the variable that belongs to each node 0 on all of them? */
static void compare_own(struct story *s, enum outcome expected, const char *words) {
    struct primitive r = story_request(s, PRIMITIVE_COMPARE);
    r.variable = VARIABLE_OWN;
    r.relation = RELATION_EQ;
    const struct chorus_op *op = story_ask(s, s->root, &r);
    story_check(s, op->answered && op->completion.outcome == expected,
                "COMPARE: is v0 = 0 on all nodes%s? %s, in %" PRIu64 " us", words,
                op->completion.outcome == OUTCOME_DONE ? "yes" : "no", story_us(op));
}

static void store_own(struct story *s, uint64_t value) {
    struct primitive r = story_request(s, PRIMITIVE_SET);
    r.set = NULL;
    r.variable = VARIABLE_OWN;
    r.value = value;
    story_ask(s, SETTER, &r);
}

static void show_compare(struct story *s) {
    compare_own(s, OUTCOME_DONE, "");
    store_own(s, 1);
    compare_own(s, OUTCOME_FALSE, ", after n777 stored 1");
    struct primitive r = story_request(s, PRIMITIVE_STANDING);
    r.variable = VARIABLE_OWN;
    r.relation = RELATION_EQ;
    uint32_t standing = chorus_say(s->chorus, s->root, &r);
    story_pass(s, 5 * NS_PER_MS);
    bool waited = !chorus_op(s->chorus, standing)->answered;
    store_own(s, 0);
    const struct chorus_op *op = story_await(s, standing);
    uint64_t since = (op->answered_ns - chorus_op(s->chorus, standing + 1)->asked_ns) / NS_PER_US;
    story_check(s, waited && op->completion.outcome == OUTCOME_DONE,
                "standing COMPARE: said nothing for 5 ms, yes %" PRIu64 " us after n777 stored 0",
                since);
}

static void show_race(struct story *s) {
    uint32_t ops[SPEAKERS];
    struct primitive r = story_request(s, PRIMITIVE_COMPARE);
    r.variable = VARIABLE_OWN;
    r.relation = RELATION_EQ;
    r.write_variable = VARIABLE_RACE;
    for (int i = 0; i < SPEAKERS; i++)
        ops[i] = chorus_say(s->chorus, speakers[i], &r);
    const struct chorus_op *last = NULL;
    for (int i = 0; i < SPEAKERS; i++) {
        const struct chorus_op *op = story_await(s, ops[i]);
        if (last == NULL || op->completion.order > last->completion.order)
            last = op;
    }
    uint32_t same = count_value(s, VARIABLE_RACE, last->request.write_value);
    story_check(s, same == s->nodes,
                "%d nodes race with COMPARE-AND-WRITEs of different values: %" PRIu32
                " nodes hold n%" PRIu32 "'s, the last in order",
                SPEAKERS, same, last->node);
}

static void show_primitives(struct story *s) {
    teller_chapter(&s->teller, "The three primitives");
    show_xfer(s);
    show_compare(s);
    show_race(s);
}

/* ---- an inner node dies ---- */

enum { STREAM = 24 };

static void begin_stream(struct story *s, uint32_t ops[STREAM]) {
    struct primitive r = story_request(s, PRIMITIVE_XFER);
    r.body.len = 64;
    r.remote_event = EVENT_DATA;
    for (int i = 0; i < STREAM; i++)
        ops[i] = chorus_say(s->chorus, s->root, &r);
    story_pass(s, 2 * NS_PER_MS);
}

static void show_healing(struct story *s) {
    uint32_t parent = planned_parent(s, VICTIM);
    uint64_t died = world_now(s->world);
    story_crash(s, VICTIM);
    story_tell(s, "n%d, an inner node, dies in the middle of %d XFER-AND-SIGNALs to all nodes",
               VICTIM, STREAM);
    bool moved = story_until(s, 5 * NS_PER_S, children_moved, VICTIM);
    story_check(s, moved, "its children noticed and moved: n%d's parent was n%d, is n%" PRIu32,
                VICTIM + 1, VICTIM, story_parent(s, VICTIM + 1));
    bool down = story_until(s, 5 * NS_PER_S, is_down, VICTIM);
    story_check(s, down,
                "its parent n%" PRIu32 " noticed too; the manager gave it up %" PRIu64
                " ms after its death",
                parent, (world_now(s->world) - died) / NS_PER_MS);
}

static void end_stream(struct story *s, const uint32_t ops[STREAM]) {
    uint32_t done = 0, failed = 0, blamed = 0;
    const struct chorus_op *last = NULL;
    for (int i = 0; i < STREAM; i++) {
        const struct chorus_op *op = story_await(s, ops[i]);
        bool good = op->answered && op->completion.outcome == OUTCOME_DONE;
        done += good;
        failed += !good;
        blamed += !good && op->completion.culprit == VICTIM;
        last = good ? op : last;
    }
    story_check(s, done > 0 && failed > 0 && blamed == failed,
                "of the %d transfers %" PRIu32 " are done, %" PRIu32 " failed and name n%d", STREAM,
                done, failed, VICTIM);
    uint32_t have = last != NULL ? count_cell(s, last->request.tag) : 0;
    story_check(s, have == s->nodes - 1,
                "all or nothing: %" PRIu32 " nodes hold the last one done, none holds a failed one",
                have);
}

static void show_others(struct story *s) {
    struct primitive r = story_request(s, PRIMITIVE_COMPARE);
    r.relation = RELATION_GE;
    const struct chorus_op *op = story_ask(s, s->root, &r);
    story_check(s, op->completion.outcome == OUTCOME_REFUSED && op->completion.culprit == VICTIM,
                "an operation that names it is %s at once, and says n%" PRIu32,
                outcome_name(op->completion.outcome), op->completion.culprit);
    nodeset_copy(&s->set, &s->all);
    nodeset_remove(&s->set, VICTIM);
    r.set = &s->set;
    r.write_variable = VARIABLE_LAST;
    op = story_ask(s, ASKER, &r);
    uint32_t have = count_value(s, VARIABLE_LAST, op->request.write_value);
    story_check(s, op->completion.outcome == OUTCOME_DONE && have == s->nodes - 1,
                "COMPARE-AND-WRITE by n%d on the other nodes: %s in %" PRIu64 " us, on %" PRIu32
                " nodes",
                ASKER, outcome_name(op->completion.outcome), story_us(op), have);
}

static void show_return(struct story *s) {
    uint64_t wanted = story_variable(s, WITNESS, VARIABLE_LAST);
    world_boot(s->world, VICTIM, false);
    story_tell(s, "n%d is powered on again, with empty memory", VICTIM);
    bool up = story_until(s, 5 * NS_PER_S, all_up, s->nodes + 1);
    story_check(s, up && story_variable(s, VICTIM, VARIABLE_LAST) == wanted,
                "it has joined, and holds the variables of the others");
    bool back = story_until(s, 5 * NS_PER_S, children_back, VICTIM);
    story_check(s, back, "its children are back: n%d's parent is n%" PRIu32, VICTIM + 1,
                story_parent(s, VICTIM + 1));
}

static void show_inner(struct story *s) {
    teller_chapter(&s->teller, "A node dies and comes back");
    uint32_t ops[STREAM];
    begin_stream(s, ops);
    show_healing(s);
    end_stream(s, ops);
    show_others(s);
    show_return(s);
}

/* ---- the root dies ---- */

static void show_root(struct story *s) {
    teller_chapter(&s->teller, "The manager dies and comes back");
    struct primitive r = story_request(s, PRIMITIVE_COMPARE);
    r.relation = RELATION_GE;
    r.write_variable = VARIABLE_RACE;
    r.timeout_ns = 50 * NS_PER_MS;
    story_crash(s, s->root);
    uint32_t number = chorus_say(s->chorus, ASKER, &r);
    story_tell(s, "the manager dies; n%d asks for a COMPARE-AND-WRITE nevertheless", ASKER);
    story_pass(s, 400 * NS_PER_MS);
    struct chorus_op *op = chorus_op(s->chorus, number);
    story_check(s, op->unknown_ns > 0 && !op->answered,
                "after its deadline n%d was told \"unknown\", and no guess", ASKER);
    world_boot(s->world, s->root, true);
    bool up = story_until(s, 10 * NS_PER_S, all_up, s->nodes + 1);
    struct prim_status status;
    prim_status(world_prim(s->world, s->root), &status);
    story_check(s, up && status.epoch == 2,
                "a new manager, epoch %" PRIu32 ", has collected all %" PRIu32 " survivors",
                status.epoch, s->nodes);
    story_await(s, number);
    uint32_t have = count_value(s, VARIABLE_RACE, op->request.write_value);
    bool done = op->completion.outcome == OUTCOME_DONE;
    story_check(s, op->answered && have == (done ? s->nodes : 0),
                "n%d's request has its final answer: %s, on %" PRIu32 " nodes", ASKER,
                outcome_name(op->completion.outcome), have);
}

/* ---- the end ---- */

static void close_story(struct story *s) {
    teller_chapter(&s->teller, "Is everything as it should be?");
    struct primitive r = story_request(s, PRIMITIVE_COMPARE);
    r.relation = RELATION_GE;
    r.write_variable = VARIABLE_LAST;
    uint32_t write = chorus_say(s->chorus, s->root, &r);
    chorus_op(s->chorus, write)->closing = true;
    struct primitive x = story_request(s, PRIMITIVE_XFER);
    x.body.len = 64;
    x.remote_event = EVENT_DATA;
    uint32_t xfer = chorus_say(s->chorus, s->root, &x);
    chorus_op(s->chorus, xfer)->closing = true;
    const struct chorus_op *last = story_await(s, xfer);
    uint64_t value = chorus_op(s->chorus, write)->request.write_value;
    uint32_t same = 0;
    for (uint32_t n = 0; n < s->nodes; n++) {
        struct globals g = world_globals(s->world, n);
        struct globals first = world_globals(s->world, 0);
        same += g.variables != NULL &&
                memcmp(g.variables, first.variables, s->layout.variables * sizeof(uint64_t)) == 0;
    }
    story_check(s, same == s->nodes && count_value(s, VARIABLE_LAST, value) == s->nodes,
                "all variables are the same on %" PRIu32 " nodes", same);
    story_check(s, count_cell(s, last->request.tag) == s->nodes,
                "the last transfer is in the heap of %" PRIu32 " nodes",
                count_cell(s, last->request.tag));
}

static void judge(struct story *s) {
    struct verdict *v = calloc(1, sizeof *v);
    const struct history *h = chorus_history(s->chorus);
    ASSERT(v != NULL);
    checker_run(h, true, v);
    story_check(s, v->count == 0,
                "the independent checker: %" PRIu32 " events of %" PRIu32 " lives, %" PRIu32
                " violations",
                h->event_count, h->life_count, v->count);
    if (v->count > 0)
        verdict_print(v, 6, s->teller.out);
    free(v);
}

static int conclude(struct story *s, double seconds) {
    const struct world_counts *counts = world_counts(s->world);
    printf("%" PRIu64 " steps of machines, %" PRIu64 " messages in %.1f s real; trace %016" PRIx64
           "\n",
           counts->steps, counts->messages, seconds, world_hash(s->world));
    return teller_conclude(&s->teller);
}

int demo_sim(void) {
    struct story s;
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    if (!story_begin(&s, NODES, speakers, SPEAKERS, stdout)) {
        complain("demo", "not enough memory; it needs about half a gigabyte");
        story_end(&s);
        return STATUS_FAILED;
    }
    printf("%" PRIu32 " simulated nodes, k-ary tree of arity %" PRIu32 ", network %s; "
           "times are virtual\n",
           s.nodes, s.prim.tree.arity, s.network->name);
    bring_up(&s);
    show_primitives(&s);
    show_inner(&s);
    show_root(&s);
    close_story(&s);
    judge(&s);
    clock_gettime(CLOCK_MONOTONIC, &end);
    int status = conclude(&s, (double)(end.tv_sec - begin.tv_sec) +
                                  (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
    story_end(&s);
    return status;
}

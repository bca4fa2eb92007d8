/* SPDX-License-Identifier: MIT */
/* A node stopped with SIGSTOP delays the others by at most its deadline; after SIGCONT it joins again.
 *
 * The nastiest kind of failure: its sockets stay open and take bytes, only nobody is there. What is
 * measured is the protocol's own promise, in heartbeat periods of the asking node's own clock: an
 * operation that names the node ends FAILED within its deadline, or is refused once the node was
 * given up, while operations on the others go on. The period is long enough that a busy machine
 * does not make the living look stopped, nor one that is late look lost. */
#include <signal.h>

#include "troupe.h"

#define P NS_PER_S

/* For the result to travel, and for a machine that is busy with something else. */
enum { SLACK_PERIODS = 2, NODES = 20, ARITY = 4 };

/* While an operation waits, what comes after it cannot be forgotten, and no more than the window is
 * under way. Once it has failed, nothing waits for the stopped node to hear of it. */
enum { AT_ONCE_MAX = 10, AFTERWARDS = 40 };

/* Time that ends a hopeless run; nothing waits that long. */
#define NEVER (100 * P)

/* Operations that were asked for since and done before this moment of the root's clock. */
static uint32_t done_before(struct troupe *t, uint32_t from, uint64_t moment) {
    uint32_t count = 0;
    for (uint32_t i = from; i < t->asked; i++) {
        const struct puppet_op *y = puppets_op(t->puppets, i);
        CHECK(TROUPE_WITHIN(t, NEVER, op_ended(y)));
        CHECK_EQ(y->completion.outcome, OUTCOME_DONE);
        count += y->answered_ns < moment;
    }
    return count;
}

/* One operation after the other on these nodes until `x` ends. */
static uint32_t go_on_until(struct troupe *t, const struct puppet_op *x, const uint64_t *others) {
    uint32_t from = t->asked;
    uint64_t end = clock_ns() + NEVER;
    const struct puppet_op *y = NULL;
    while (!op_ended(x) && clock_ns() < end) {
        if (t->asked < from + AT_ONCE_MAX && (y == NULL || op_ended(y)))
            y = troupe_ask(t, t->root, others, NO_NODE, op_xfer("others", 20 * P));
        crew_wait(t->crew, 10);
    }
    return done_before(t, from, x->answered_ns);
}

/* Asks for an operation on the stopped node and on some others, the deadline being so many periods.
 * What comes later in the order has to wait on the nodes of that set, but on no other. */
static void name_it(struct troupe *t, uint32_t asker, uint32_t stopped, uint32_t periods,
                    const uint64_t *others) {
    uint64_t set[TROUPE_WORDS] = {0}, rest[TROUPE_WORDS];
    memcpy(rest, others, sizeof rest);
    bits_set_run(set, stopped, stopped);
    for (uint32_t n = 0; n < NODES; n += 2)
        if (bits_test(others, n)) {
            bits_set_run(set, n, n);
            bits_clear_run(rest, n, n);
        }
    const struct puppet_op *x = troupe_ask(t, asker, set, NO_NODE, op_xfer("all", periods * P));
    uint32_t done = go_on_until(t, x, rest);
    for (uint32_t i = 0; i < AFTERWARDS; i++) {
        const struct puppet_op *y =
            troupe_ask(t, t->root, others, NO_NODE, op_xfer("afterwards", 20 * P));
        CHECK(TROUPE_WITHIN(t, NEVER, op_ended(y)));
        CHECK_EQ(y->completion.outcome, OUTCOME_DONE);
        CHECK(y->answered_ns - y->asked_ns <= SLACK_PERIODS * P);
    }
    if (!CHECK(op_ended(x)))
        return;
    uint64_t took = x->answered_ns - x->asked_ns;
    bool refused = x->completion.outcome == OUTCOME_REFUSED;
    CHECK(refused || x->completion.outcome == OUTCOME_FAILED);
    CHECK_EQ(x->completion.culprit, stopped);
    CHECK(took <= (periods + SLACK_PERIODS) * P);
    CHECK(refused || done > 0);
    printf("## node %u of %u stopped, deadline %u periods: %s after %.1f, %u operations on others "
           "meanwhile\n",
           stopped, NODES, periods, outcome_name(x->completion.outcome), (double)took / (double)P,
           done);
}

static void stop_one(uint32_t stopped, uint32_t deadline, enum transport links) {
    struct troupe_config config = {.nodes = NODES,
                                   .tree = {.shape = SHAPE_KARY, .arity = ARITY},
                                   .links = links,
                                   .period_ns = P};
    struct troupe *t = troupe_start(&config);
    if (t == NULL)
        return;
    if (!CHECK(TROUPE_WITHIN(t, NEVER, troupe_all_up(t)))) {
        troupe_free(t);
        return;
    }
    struct noderange below = tree_subtree(&t->prim.tree, stopped);
    uint64_t others[TROUPE_WORDS] = {0};
    bits_set_run(others, 0, t->universe - 1);
    bits_clear_run(others, below.first, below.last);
    uint32_t asker = bits_next_set(others, 0, NODES);
    uint64_t incarnation = puppets_node(t->puppets, stopped)->incarnation;
    uint32_t fenced = puppets_node(t->puppets, stopped)->heard[INPUT_FENCED];

    CHECK_EQ(crew_signal(t->crew, stopped, SIGSTOP), 0);
    name_it(t, t->root, stopped, deadline, others);
    name_it(t, asker, stopped, deadline, others);

    /* In the end it is given up, and whoever was below it has found another way. */
    CHECK(TROUPE_WITHIN(t, NEVER, puppets_up_count(t->puppets) == NODES));
    name_it(t, asker, stopped, deadline, others);
    const struct puppet_op *x = troupe_ask(t, t->root, NULL, stopped, op_xfer("without", 20 * P));
    CHECK(TROUPE_WITHIN(t, NEVER, op_ended(x)));
    CHECK_EQ(x->completion.outcome, OUTCOME_DONE);

    CHECK_EQ(crew_signal(t->crew, stopped, SIGCONT), 0);
    CHECK(TROUPE_WITHIN(t, NEVER, troupe_all_up(t)));
    CHECK_EQ(puppets_node(t->puppets, stopped)->heard[INPUT_FENCED], fenced + 1);
    CHECK(puppets_node(t->puppets, stopped)->incarnation > incarnation);
    CHECK_EQ(crew_lives(t->crew, stopped), 1);
    CHECK(crew_heap(t->crew, stopped)[0] == 0); /* the new incarnation has nothing of the old */
    const struct puppet_op *all[] = {
        troupe_ask(t, stopped, NULL, NO_NODE, op_xfer("again", 20 * P)),
        troupe_ask(t, t->root, NULL, NO_NODE, op_compare(5, 20 * P)),
    };
    for (size_t i = 0; i < 2; i++) {
        CHECK(TROUPE_WITHIN(t, NEVER, op_ended(all[i])));
        CHECK_EQ(all[i]->completion.outcome, OUTCOME_DONE);
    }
    for (uint32_t n = 0; n < t->universe; n++)
        CHECK(memcmp(crew_heap(t->crew, n), "again", 5) == 0);
    troupe_free(t);
}

static void test_a_stopped_leaf(void) {
    stop_one(NODES - 1, 3, TRANSPORT_UNIX);
}

static void test_a_stopped_inner_node(void) {
    stop_one(0, 3, TRANSPORT_TCP);
}

/* Given up before the deadline: the operation does not wait for it. */
static void test_a_stopped_inner_node_and_a_late_deadline(void) {
    stop_one(0, 30, TRANSPORT_UNIX);
}

int main(void) {
    TEST(test_a_stopped_leaf);
    TEST(test_a_stopped_inner_node);
    TEST(test_a_stopped_inner_node_and_a_late_deadline);
    return tap_finish();
}

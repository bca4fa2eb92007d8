/* SPDX-License-Identifier: MIT */
/* What the three primitives promise, on a cluster where nothing goes wrong.
 *
 * Most tests have 17 nodes in a binary tree. Below the root (17) are 0 and 9; below 0 are 1 and 5,
 * below 9 are 10 and 14; the leaves are 3, 4, 7, 8, 12, 13, 15 and 16. */
#include "cluster.h"

enum { NODES = 17 };

static bool in_set(const struct call *x, uint32_t node) {
    return nodeset_has(&x->set, node);
}

/* Exactly the nodes of the set have the data, and the signal, so often. */
static bool landed(const struct cluster *c, const struct call *x, uint64_t signals) {
    const struct primitive *r = &x->request;
    for (uint32_t n = 0; n < c->universe; n++) {
        const uint8_t *at = world_heap(c->w, n) + r->heap_offset;
        bool right = in_set(x, n)
                         ? memcmp(at, x->body, r->body.len) == 0 && event_of(c, n, DATA) == signals
                         : heap_empty(c, n) && event_of(c, n, DATA) == 0;
        if (!CHECK(right)) {
            printf("#   node %u\n", n);
            return false;
        }
    }
    return true;
}

/* ---- XFER-AND-SIGNAL, TEST-EVENT ---- */

static void test_xfer_reaches_its_set_and_nobody_else(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct primitive r = xfer(40, "bytes of an operation", DATA);
    r.local_event = LOCAL;
    struct call *x = cluster_ask(c, c->root, "n[2,5-7,16]", r);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK(x->result.order > 0);
    CHECK_EQ(x->result.culprit, NO_NODE);
    landed(c, x, 1);
    NODESET_EACH (n, &x->set) { /* nothing around it is touched */
        CHECK_EQ(world_heap(c->w, n)[39], 0);
        CHECK_EQ(world_heap(c->w, n)[40 + 21], 0);
        const struct heard *signal = heard_from(c, 0, n, INPUT_SIGNAL);
        if (!CHECK(signal != NULL))
            continue;
        CHECK_EQ(signal->in.signal.event, DATA);
        CHECK_EQ(signal->in.signal.order, x->result.order);
        CHECK_EQ(signal->in.signal.heap_offset, 40);
        CHECK_EQ(signal->in.signal.len, 21);
        CHECK(signal->in.now <= x->answered_at);
    }
    for (uint32_t n = 0; n < c->universe; n++)
        CHECK_EQ(event_of(c, n, LOCAL), n == c->root);
    cluster_free(c);
}

static void test_xfer_of_nothing_only_signals(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct call *x = cluster_ask(c, c->root, "n[0,4,12]", xfer(1024, "", DATA));
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK(x->result.order > 0);
    CHECK_EQ(COUNT_NODES(c, event_of(c, n, DATA) == in_set(x, n)), c->universe);
    CHECK_EQ(COUNT_NODES(c, heap_empty(c, n)), c->universe);
    struct call *mute = cluster_ask(c, c->root, NULL, xfer(0, "", NO_EVENT));
    CHECK_EQ(cluster_wait(c, mute), OUTCOME_DONE);
    CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_SIGNAL] == in_set(x, n)), c->universe);
    cluster_free(c);
}

/* TEST-EVENT tells how often: the counts of several transfers add up, event by event. */
static void test_events_count_signals(void) {
    enum { TIMES = 7 };
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct call *x[TIMES];
    for (uint32_t i = 0; i < TIMES; i++) {
        struct primitive r = xfer(8 * i, "one", DATA);
        r.local_event = LOCAL;
        x[i] = cluster_ask(c, 4, "n[3,9]", r);
    }
    struct call *other = cluster_ask(c, 8, "n[9,11]", xfer(100, "two", OTHER));
    for (uint32_t i = 0; i < TIMES; i++)
        CHECK_EQ(cluster_wait(c, x[i]), OUTCOME_DONE);
    CHECK_EQ(cluster_wait(c, other), OUTCOME_DONE);
    for (uint32_t n = 0; n < c->universe; n++) {
        CHECK_EQ(event_of(c, n, DATA), n == 3 || n == 9 ? TIMES : 0);
        CHECK_EQ(event_of(c, n, OTHER), n == 9 || n == 11);
        CHECK_EQ(event_of(c, n, LOCAL), n == 4 ? TIMES : 0);
    }
    cluster_free(c);
}

/* From an inner node, a leaf and the root, with and without themselves in the set. */
static void test_anyone_may_initiate(void) {
    static const struct {
        uint32_t from;
        const char *set;
    } cases[] = {
        {0, "n[1-3]"}, {5, "n[0,16,17]"}, {4, "n[3,10]"}, {16, "n[15-17]"},   {12, "n[0-17]"},
        {12, "n12"},   {3, "n17"},        {17, "n17"},    {17, "n[0,16-17]"}, {17, "n[0-16]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
        struct primitive r = xfer(512, "from anywhere", DATA);
        r.local_event = LOCAL;
        struct call *x = cluster_ask(c, cases[i].from, cases[i].set, r);
        CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
        CHECK(x->result.order > 0);
        if (!landed(c, x, 1))
            printf("#   from %u to %s\n", cases[i].from, cases[i].set);
        CHECK_EQ(COUNT_NODES(c, event_of(c, n, LOCAL) == (n == x->node)), c->universe);
        cluster_free(c);
    }
}

/* ---- COMPARE-AND-WRITE ---- */

enum { V, W }; /* the variable compared, the variable written */

struct comparison {
    const char *set;
    enum relation relation;
    uint64_t value;
    bool holds;
};

/* V is 5 everywhere, but 6 on node 9 and the largest number on node 16. */
static const struct comparison comparisons[] = {
    {"n[0-8]", RELATION_GE, 5, true},
    {"n[0-8]", RELATION_GE, 6, false},
    {"n[0-8]", RELATION_LT, 6, true},
    {"n[0-8]", RELATION_LT, 5, false},
    {"n[0-8]", RELATION_EQ, 5, true},
    {"n[0-8]", RELATION_EQ, 6, false},
    {"n[0-8]", RELATION_NE, 6, true},
    {"n[0-8]", RELATION_NE, 5, false},
    {"n[0-10]", RELATION_LT, 6, false}, /* one dissenter is enough */
    {"n[0-10]", RELATION_EQ, 5, false},
    {"n[0-10]", RELATION_NE, 6, false},
    {"n[0-10]", RELATION_GE, 5, true},
    {"n9", RELATION_GE, 6, true},
    {"n[9,16]", RELATION_GE, 6, true}, /* numbers have no sign */
    {"n[9,16]", RELATION_LT, UINT64_MAX, false},
    {"n16", RELATION_EQ, UINT64_MAX, true},
    {"n16", RELATION_LT, 0, false},
    {"n[0-17]", RELATION_GE, 0, true},
    {"n[12,17]", RELATION_EQ, 5, true},
};

static void set_the_scene(struct cluster *c) {
    cluster_set_all(c, V, 5);
    cluster_set(c, 9, V, 6);
    cluster_set(c, 16, V, UINT64_MAX);
    cluster_run(c, 2 * c->poll_ns);
}

static void test_compare_answers_every_relation(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    set_the_scene(c);
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++) {
        const struct comparison *k = &comparisons[i];
        uint32_t from = (uint32_t)(i % c->universe);
        struct call *x = cluster_ask(c, from, k->set, compare(V, k->relation, k->value));
        if (!CHECK_EQ(cluster_wait(c, x), k->holds ? OUTCOME_DONE : OUTCOME_FALSE))
            printf("#   comparison %zu\n", i);
    }
    CHECK_EQ(COUNT_NODES(c, variable_of(c, n, W) == 0), c->universe);
    cluster_free(c);
}

static void test_compare_writes_everywhere_or_nowhere(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    set_the_scene(c);
    uint64_t expected[NODES + 1] = {0};
    for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++) {
        const struct comparison *k = &comparisons[i];
        uint64_t mark = 1000 + i;
        uint32_t from = (uint32_t)(3 * i % c->universe);
        struct primitive r = then_write(compare(V, k->relation, k->value), W, mark);
        struct call *x = cluster_ask(c, from, k->set, r);
        CHECK_EQ(cluster_wait(c, x), k->holds ? OUTCOME_DONE : OUTCOME_FALSE);
        CHECK(x->result.order > 0);
        for (uint32_t n = 0; n < c->universe; n++) {
            if (k->holds && in_set(x, n))
                expected[n] = mark;
            CHECK_EQ(variable_of(c, n, W), expected[n]);
        }
    }
    CHECK_EQ(variable_of(c, 9, V), 6); /* nobody has touched the one compared */
    cluster_free(c);
}

static void test_compare_may_write_what_it_compares(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    for (uint64_t round = 0; round < 5; round++) {
        uint32_t from = (uint32_t)(round * 4);
        struct primitive r = then_write(compare(V, RELATION_EQ, round), V, round + 1);
        CHECK_EQ(cluster_wait(c, cluster_ask(c, from, NULL, r)), OUTCOME_DONE);
        CHECK_EQ(cluster_wait(c, cluster_ask(c, from, NULL, r)), OUTCOME_FALSE);
        CHECK_EQ(COUNT_NODES(c, variable_of(c, n, V) == round + 1), c->universe);
    }
    cluster_free(c);
}

/* ---- one order of all operations ---- */

enum { RACERS = 8, SEEDS = 6 };

static struct cluster *race_track(uint64_t seed) {
    struct cluster *c = cluster_new(NODES, SHAPE_KARY, 2);
    c->config.seed = seed;
    c->config.prim.limits.queue = 32;
    c->config.link.jitter_ns = 30 * NS_PER_US;
    CHECK(cluster_power(c, NODES));
    return c;
}

/* All are done; returns the one that has the last place in the order. */
static struct call *finish_race(struct cluster *c, struct call *x[RACERS]) {
    struct call *last = x[0];
    for (uint32_t i = 0; i < RACERS; i++) {
        CHECK_EQ(cluster_wait(c, x[i]), OUTCOME_DONE);
        CHECK_EQ(x[i]->asked_at / c->poll_ns, x[0]->asked_at / c->poll_ns);
        for (uint32_t k = 0; k < i; k++)
            CHECK(x[i]->result.order != x[k]->result.order);
        if (x[i]->result.order > last->result.order)
            last = x[i];
    }
    return last;
}

static void test_racing_writes_leave_one_value_everywhere(void) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct cluster *c = race_track(seed);
        struct call *x[RACERS];
        for (uint32_t i = 0; i < RACERS; i++)
            x[i] =
                cluster_ask(c, 2 * i + 1, NULL, then_write(compare(V, RELATION_EQ, 0), W, 100 + i));
        const struct call *last = finish_race(c, x);
        uint64_t value = last->request.write_value;
        CHECK_EQ(COUNT_NODES(c, variable_of(c, n, W) == value), c->universe);
        cluster_free(c);
    }
}

/* A lock: the write makes the condition false for all who come later. */
static void test_of_racing_locks_one_succeeds(void) {
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct cluster *c = race_track(seed);
        struct call *x[RACERS];
        uint64_t winner = 0;
        for (uint32_t i = 0; i < RACERS; i++)
            x[i] =
                cluster_ask(c, 2 * i + 2, NULL, then_write(compare(W, RELATION_EQ, 0), W, 100 + i));
        for (uint32_t i = 0; i < RACERS; i++) {
            if (cluster_wait(c, x[i]) != OUTCOME_DONE) {
                CHECK_EQ(x[i]->result.outcome, OUTCOME_FALSE);
                continue;
            }
            CHECK_EQ(winner, 0);
            winner = 100 + i;
        }
        CHECK(winner != 0);
        CHECK_EQ(COUNT_NODES(c, variable_of(c, n, W) == winner), c->universe);
        cluster_free(c);
    }
}

/* The sets overlap only in part: each node ends with the last one that named it. */
static void test_racing_transfers_land_in_one_order(void) {
    static const char *const sets[RACERS] = {"n[0-16]", "n[0-8]",   "n[4-12]", "n[0-16]",
                                             "n[9-17]", "n[2,5,8]", "n[0-17]", "n[8-10]"};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct cluster *c = race_track(seed);
        struct call *x[RACERS];
        for (uint32_t i = 0; i < RACERS; i++) {
            char text[] = "racer 0 was here";
            text[6] = (char)('0' + i);
            x[i] = cluster_ask(c, 17 - 2 * i, sets[i], xfer(8, text, DATA));
        }
        finish_race(c, x);
        for (uint32_t n = 0; n < c->universe; n++) {
            const struct call *last = NULL;
            uint64_t signals = 0;
            for (uint32_t i = 0; i < RACERS; i++) {
                signals += in_set(x[i], n);
                if (in_set(x[i], n) && (last == NULL || x[i]->result.order > last->result.order))
                    last = x[i];
            }
            CHECK_EQ(memcmp(world_heap(c->w, n) + 8, last->body, last->request.body.len), 0);
            CHECK_EQ(event_of(c, n, DATA), signals);
        }
        cluster_free(c);
    }
}

/* Every node hears the signals in the order of the completions' numbers. */
static void test_signals_come_in_order_everywhere(void) {
    struct cluster *c = race_track(9);
    for (uint32_t round = 0; round < 4; round++)
        for (uint32_t i = 0; i < RACERS; i++)
            cluster_ask(c, 2 * i + 1, i % 2 ? NULL : "n[0-11]", xfer(8 * i, "x", DATA));
    for (uint32_t i = 0; i < c->call_count; i++)
        CHECK_EQ(cluster_wait(c, &c->calls[i]), OUTCOME_DONE);
    for (uint32_t n = 0; n < c->universe; n++) {
        uint64_t newest = 0;
        for (uint32_t i = 0; i < c->log_count; i++) {
            if (c->log[i].node != n || c->log[i].in.kind != INPUT_SIGNAL)
                continue;
            CHECK(c->log[i].in.signal.order > newest);
            newest = c->log[i].in.signal.order;
        }
        CHECK_EQ(c->listeners[n].count[INPUT_SIGNAL], n < 12 ? 4 * RACERS : 4 * RACERS / 2);
    }
    cluster_free(c);
}

/* Operations of one step: later ones see and overwrite earlier ones, also when they have to wait.
 */
static void test_a_node_has_its_own_order(void) {
    static const uint32_t from[] = {17, 0, 12};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        struct cluster *c = cluster_new(NODES, SHAPE_KARY, 2);
        c->config.prim.limits.window = 2;
        CHECK(cluster_power(c, NODES));
        struct call *x[] = {
            cluster_ask(c, from[i], NULL, xfer(64, "first", DATA)),
            cluster_ask(c, from[i], "n[0-16]", xfer(64, "SECOND", DATA)),
            cluster_ask(c, from[i], NULL, then_write(compare(V, RELATION_EQ, 0), V, 1)),
            cluster_ask(c, from[i], NULL, then_write(compare(V, RELATION_EQ, 1), V, 2)),
            cluster_ask(c, from[i], "n[3-9]", xfer(64, "3rd", DATA)),
        };
        for (size_t k = 0; k < sizeof x / sizeof *x; k++) {
            CHECK_EQ(cluster_wait(c, x[k]), OUTCOME_DONE);
            CHECK_EQ(x[k]->asked_at, x[0]->asked_at);
            CHECK(k == 0 || x[k]->result.order > x[k - 1]->result.order);
        }
        for (uint32_t n = 0; n < c->universe; n++) {
            const char *text = n == 17 ? "first" : n >= 3 && n <= 9 ? "3rdOND" : "SECOND";
            CHECK(heap_holds(c, n, 64, text));
            CHECK_EQ(variable_of(c, n, V), 2);
        }
        cluster_free(c);
    }
}

/* ---- hints ---- */

static void test_hint_comes_before_the_signal(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct primitive r = xfer(24, "get ready", DATA);
    CHECK_EQ(cluster_wait(c, cluster_ask(c, 7, NULL, r)), OUTCOME_DONE);
    CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_PREPARED] > 0), 0);
    uint32_t from = c->log_count;
    r.hint = true;
    struct call *x = cluster_ask(c, 7, "n[0-7,17]", r);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    for (uint32_t n = 0; n < c->universe; n++) {
        const struct heard *prepared = heard_from(c, from, n, INPUT_PREPARED);
        const struct heard *signal = heard_from(c, from, n, INPUT_SIGNAL);
        CHECK_EQ(c->listeners[n].count[INPUT_PREPARED], in_set(x, n));
        if (!in_set(x, n) || !CHECK(prepared != NULL && signal != NULL))
            continue;
        CHECK(prepared < signal);
        CHECK_EQ(prepared->in.prepared.order, x->result.order);
        CHECK_EQ(prepared->in.prepared.heap_offset, 24);
        CHECK(prepared->len == 9 && memcmp(prepared->body, "get ready", 9) == 0);
        if (n != 17) /* the others know while it is undecided */
            CHECK(prepared->in.now < signal->in.now);
    }
    cluster_free(c);
}

static void test_hint_promises_nothing(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct primitive r = xfer(24, "get ready", DATA);
    r.hint = true;
    r.timeout_ns = P;
    world_pause(c->w, 16, world_now(c->w) + 2 * P);
    struct call *x = cluster_ask(c, 7, "n[0-7,16]", r);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
    cluster_run(c, 4 * P);
    CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_PREPARED] > 0), 9);
    CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_SIGNAL] > 0), 0);
    CHECK_EQ(COUNT_NODES(c, heap_empty(c, n)), c->universe);
    cluster_free(c);
}

/* ---- votes ---- */

/* Everybody agrees in the step in which it is asked, but for the one in seen[0]; one in seen[1] says nothing. */
static bool answer_asked(struct cluster *c, uint32_t node, const struct input *in,
                         struct effects *out) {
    if (in->kind != INPUT_PREPARED || node == c->seen[1])
        return false;
    CHECK(in->prepared.ask);
    effects_add(out, EFFECT_REQUEST)->request = (struct primitive){
        .kind = PRIMITIVE_VOTE, .order = in->prepared.order, .value = node == c->seen[0]};
    return false;
}

static struct cluster *asking(uint32_t refuses, uint32_t silent) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    c->above = answer_asked;
    c->seen[0] = refuses;
    c->seen[1] = silent;
    return c;
}

static struct primitive question(void) {
    struct primitive r = xfer(24, "may I", DATA);
    r.hint = r.ask = true;
    return r;
}

static void test_all_agree(void) {
    struct cluster *c = asking(NO_NODE, NO_NODE);
    CHECK_EQ(cluster_wait(c, cluster_ask(c, 7, "n[0-7,17]", question())), OUTCOME_DONE);
    CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_SIGNAL] > 0), 9);
    cluster_free(c);
}

static void test_one_refuses_for_all(void) {
    static const uint32_t who[] = {0, 7, 16, 17};
    for (size_t i = 0; i < sizeof who / sizeof *who; i++) {
        struct cluster *c = asking(who[i], NO_NODE);
        CHECK_EQ(cluster_wait(c, cluster_ask(c, 7, "n[0-7,16-17]", question())), OUTCOME_FAILED);
        cluster_run(c, 4 * P);
        CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_SIGNAL] > 0), 0);
        CHECK_EQ(COUNT_NODES(c, heap_empty(c, n)), c->universe);
        c->seen[0] = NO_NODE; /* the next is another matter */
        CHECK_EQ(cluster_wait(c, cluster_ask(c, 7, "n[0-7,16-17]", question())), OUTCOME_DONE);
        cluster_free(c);
    }
}

static void test_who_is_silent_lets_it_fail(void) {
    struct cluster *c = asking(NO_NODE, 5);
    struct primitive r = question();
    r.timeout_ns = P;
    CHECK_EQ(cluster_wait(c, cluster_ask(c, 7, "n[0-7]", r)), OUTCOME_FAILED);
    struct primitive late = {.kind = PRIMITIVE_VOTE, .order = 1};
    cluster_ask(c, 5, NULL, late);
    cluster_run(c, 4 * P);
    CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_SIGNAL] > 0), 0);
    cluster_free(c);
}

/* ---- standing compares ---- */

static void test_standing_compare_waits_for_the_last(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct call *x = cluster_ask(c, 8, "n[0-16]", then_write(standing(V, RELATION_GE, 3), W, 77));
    for (uint32_t n = 0; n < NODES; n++) {
        cluster_run(c, P / 8);
        CHECK_EQ(x->answers, 0);
        cluster_set(c, NODES - 1 - n, V, 3 + n);
    }
    uint64_t before = world_now(c->w);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK(x->answered_at > before && x->answered_at < before + P / 4);
    CHECK_EQ(COUNT_NODES(c, variable_of(c, n, W) == 77), NODES);
    CHECK_EQ(variable_of(c, c->root, W), 0);
    cluster_free(c);
}

static void test_standing_compare_of_what_holds_is_answered_at_once(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct call *x = cluster_ask(c, 3, NULL, standing(V, RELATION_LT, 1));
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK(x->answered_at < x->asked_at + P / 4);
    struct call *root = cluster_ask(c, c->root, "n17", standing(V, RELATION_EQ, 4));
    cluster_run(c, P);
    CHECK_EQ(root->answers, 0);
    cluster_set(c, c->root, V, 4);
    CHECK_EQ(cluster_wait(c, root), OUTCOME_DONE);
    cluster_free(c);
}

/* Both nodes have said yes, at different times; they never were true together. */
static void check_confirmed(bool writes) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct primitive r = standing(V, RELATION_EQ, 1);
    struct call *x = cluster_ask(c, 0, "n[4,13]", writes ? then_write(r, W, 9) : r);
    for (uint32_t round = 0; round < 4; round++) {
        uint32_t a = round % 2 ? 4 : 13;
        cluster_set(c, a, V, 1);
        cluster_run(c, P / 2);
        cluster_set(c, a, V, 0);
        cluster_run(c, P / 2);
        CHECK_EQ(x->answers, 0);
        CHECK_EQ(variable_of(c, 4, W) + variable_of(c, 13, W), 0);
    }
    cluster_set(c, 4, V, 1);
    cluster_run(c, P);
    CHECK_EQ(x->answers, 0);
    cluster_set(c, 13, V, 1);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK_EQ(COUNT_NODES(c, variable_of(c, n, W) == 9), writes ? 2 : 0);
    cluster_free(c);
}

static void test_standing_compare_is_confirmed(void) {
    check_confirmed(true);
    check_confirmed(false);
}

/* An ordered write, too, can make it true. */
static void test_standing_compare_sees_ordered_writes(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct call *x = cluster_ask(c, 0, NULL, standing(V, RELATION_GE, 10));
    cluster_run(c, P);
    CHECK_EQ(x->answers, 0);
    struct call *y = cluster_ask(c, 15, NULL, then_write(compare(V, RELATION_EQ, 0), V, 10));
    CHECK_EQ(cluster_wait(c, y), OUTCOME_DONE);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK(x->result.order > y->result.order);
    cluster_free(c);
}

static void test_standing_compare_fails_at_its_deadline(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct primitive r = then_write(standing(V, RELATION_GE, 1), W, 5);
    r.timeout_ns = 3 * P;
    cluster_set(c, 13, V, 1);
    struct call *x = cluster_ask(c, 4, "n[7,13]", r);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
    CHECK_EQ(x->result.culprit, 7); /* the one where it does not hold */
    CHECK(x->answered_at >= x->asked_at + 3 * P && x->answered_at < x->asked_at + 4 * P);
    cluster_set(c, 7, V, 1); /* too late */
    cluster_run(c, 2 * P);
    CHECK_EQ(COUNT_NODES(c, variable_of(c, n, W) == 0), c->universe);
    cluster_free(c);
}

/* ---- strobes ---- */

static void test_strobes_ascend_and_the_newest_wins(void) {
    enum { STROBES = 20 };
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    for (uint32_t i = 0; i < STROBES; i++) {
        char text[] = "slice a";
        text[6] = (char)('a' + i);
        cluster_ask(c, i % 3 ? c->root : 0, "n[2-8,12]", strobe(3, text));
        cluster_run(c, P / 16);
    }
    cluster_run(c, P);
    for (uint32_t n = 0; n < c->universe; n++) {
        bool named = (n >= 2 && n <= 8) || n == 12; /* 0, 1, 9, 10 and 11 are on the way */
        CHECK_EQ(c->listeners[n].count[INPUT_STROBE], named ? STROBES : 0);
        uint64_t newest = 0;
        uint8_t letter = 0;
        for (uint32_t i = 0; i < c->log_count; i++) {
            const struct heard *h = &c->log[i];
            if (h->node != n || h->in.kind != INPUT_STROBE)
                continue;
            CHECK_EQ(h->in.strobe.channel, 3);
            CHECK(h->in.strobe.number > newest);
            CHECK(h->len == 7 && h->body[6] > letter);
            newest = h->in.strobe.number;
            letter = h->body[6];
        }
        CHECK_EQ(letter, named ? 'a' + STROBES - 1 : 0);
    }
    CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_COMPLETION] > 0), 0);
    cluster_free(c);
}

/* Here all are lost that go past the tree. It carries one in fifty milliseconds, and the last. */
static void test_the_tree_makes_good_what_was_cast(void) {
    enum { STROBES = 120 };
    struct cluster *c = cluster_new(NODES, SHAPE_KARY, 2);
    c->config.prim.casts = true;
    CHECK(cluster_power(c, NODES));
    for (uint32_t i = 0; i < STROBES; i++) {
        char text[] = {'s', (char)(1 + i), '\0'};
        cluster_ask(c, c->root, NULL, strobe(3, text));
        cluster_run(c, NS_PER_MS);
    }
    cluster_run(c, 60 * NS_PER_MS);
    for (uint32_t n = 0; n < NODES; n++) {
        uint32_t heard = 0, last = 0;
        for (uint32_t i = 0; i < c->log_count; i++) {
            const struct heard *h = &c->log[i];
            if (h->node != n || h->in.kind != INPUT_STROBE)
                continue;
            heard++;
            CHECK(h->body[1] > last);
            last = h->body[1];
        }
        CHECK_EQ(last, STROBES);
        CHECK(heard == 3 || heard == 4);
    }
    cluster_free(c);
}

static void test_strobe_channels_are_apart(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    cluster_ask(c, c->root, NULL, strobe(1, "one"));
    cluster_ask(c, c->root, NULL, strobe(2, "two"));
    cluster_ask(c, c->root, "n17", strobe(1, "here"));
    cluster_run(c, P);
    CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_STROBE] == 2), NODES);
    CHECK_EQ(c->listeners[c->root].count[INPUT_STROBE], 3);
    cluster_free(c);
}

int main(void) {
    TEST(test_xfer_reaches_its_set_and_nobody_else);
    TEST(test_xfer_of_nothing_only_signals);
    TEST(test_events_count_signals);
    TEST(test_anyone_may_initiate);
    TEST(test_compare_answers_every_relation);
    TEST(test_compare_writes_everywhere_or_nowhere);
    TEST(test_compare_may_write_what_it_compares);
    TEST(test_racing_writes_leave_one_value_everywhere);
    TEST(test_of_racing_locks_one_succeeds);
    TEST(test_racing_transfers_land_in_one_order);
    TEST(test_signals_come_in_order_everywhere);
    TEST(test_a_node_has_its_own_order);
    TEST(test_hint_comes_before_the_signal);
    TEST(test_hint_promises_nothing);
    TEST(test_all_agree);
    TEST(test_one_refuses_for_all);
    TEST(test_who_is_silent_lets_it_fail);
    TEST(test_standing_compare_waits_for_the_last);
    TEST(test_standing_compare_of_what_holds_is_answered_at_once);
    TEST(test_standing_compare_is_confirmed);
    TEST(test_standing_compare_sees_ordered_writes);
    TEST(test_standing_compare_fails_at_its_deadline);
    TEST(test_strobes_ascend_and_the_newest_wins);
    TEST(test_the_tree_makes_good_what_was_cast);
    TEST(test_strobe_channels_are_apart);
    return tap_finish();
}

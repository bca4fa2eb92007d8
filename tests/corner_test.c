/* SPDX-License-Identifier: MIT */
/* Corners in which the primitives once did the wrong thing; each test names what must not happen. */
#include "cluster.h"

enum { NODES = 17 };
#ifdef STORM_SLOW
enum { SEEDS = 10 };
#else
enum { SEEDS = 60 };
#endif

static void test_bulk_of_nothing(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct call *x = cluster_bulk(c, c->root, "n[0-16]", 0, 0, 1);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    cluster_free(c);
}

static void test_timeout_for_ever(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct primitive r = xfer(0, "patience", DATA);
    r.timeout_ns = UINT64_MAX;
    struct call *x = cluster_ask(c, 4, NULL, r);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK_EQ(x->unknowns, 0);
    struct primitive s = standing(0, RELATION_GE, 1);
    s.timeout_ns = UINT64_MAX;
    x = cluster_ask(c, 4, NULL, s);
    cluster_run(c, 3 * P);
    CHECK_EQ(x->unknowns, 0);
    x = cluster_bulk(c, 4, NULL, 0, 300, 1);
    x->request.timeout_ns = UINT64_MAX;
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    cluster_free(c);
}

static void test_culprit_of_a_deadline(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    world_pause(c->w, 7, world_now(c->w) + 2 * P);
    struct primitive r = xfer(0, "late", DATA);
    r.timeout_ns = P;
    struct call *x = cluster_ask(c, 4, NULL, r);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
    CHECK_EQ(x->result.culprit, 7);
    cluster_free(c);
}

static void test_culprit_of_a_standing_compare(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct primitive r = standing(0, RELATION_GE, 1);
    r.timeout_ns = 3 * P;
    for (uint32_t n = 0; n < c->universe; n++)
        if (n != 7)
            cluster_set(c, n, 0, 1);
    struct call *x = cluster_ask(c, 4, NULL, r);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
    CHECK_EQ(x->result.culprit, 7);
    cluster_free(c);
}

/* Acknowledgements of an operation on all nodes: four messages on each of 17 links. */
static uint64_t messages_of_one(struct cluster *c) {
    uint64_t wave = c->listeners[c->root].count[INPUT_WAVE];
    WITHIN(c, 2 * P, c->listeners[c->root].count[INPUT_WAVE] > wave);
    uint64_t before = world_counts(c->w)->messages;
    struct call *x = cluster_ask(c, c->root, NULL, xfer(0, "count", DATA));
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    return world_counts(c->w)->messages - before;
}

static void test_expired_standing_compares_leave_nothing(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    CHECK_EQ(messages_of_one(c), 4 * NODES);
    cluster_set(c, 3, 0, 1);
    cluster_set(c, 7, 0, 1);
    cluster_set(c, 12, 0, 1);
    cluster_set(c, 16, 0, 1);
    for (uint32_t i = 0; i < 20; i++) {
        struct primitive r = standing(0, RELATION_GE, 1);
        r.timeout_ns = P / 4;
        struct call *x = cluster_ask(c, c->root, NULL, r);
        CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
    }
    CHECK_EQ(messages_of_one(c), 4 * NODES);
    cluster_free(c);
}

static void test_culprit_of_a_bulk_whose_sink_died_early(void) {
    struct cluster *c = cluster_new(NODES, SHAPE_KARY, 2);
    c->config.prim.limits.heap_bytes = 2048;
    CHECK(cluster_power(c, NODES));
    struct call *x = cluster_bulk(c, c->root, NULL, 16, 2000, 3);
    CHECK(WITHIN(c, P, status_of(c, 4).phase == PHASE_STREAMING));
    world_crash(c->w, 6);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
    CHECK_EQ(x->result.culprit, 6);
    cluster_free(c);
}

/* Room for one transfer: when it has failed there must be room again, without waiting for its
 * deadline. */
static void test_failed_bulk_lets_go(void) {
    struct cluster *c = cluster_new(NODES, SHAPE_KARY, 2);
    c->config.prim.limits.heap_bytes = 2048;
    c->config.prim.limits.transfers = 1;
    CHECK(cluster_power(c, NODES));
    struct call *x = cluster_bulk(c, c->root, NULL, 16, 2000, 3);
    CHECK(WITHIN(c, P, status_of(c, 4).phase == PHASE_STREAMING));
    cluster_run(c, 80 * NS_PER_US);
    world_crash(c->w, 6);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
    cluster_run(c, 2 * P);
    x = cluster_bulk(c, c->root, "n[0-5,7-17]", 16, 2000, 3);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    cluster_free(c);
}

/* Everyone hangs where the plan says, some time after all have joined. */
static void test_long_chain_finds_its_plan(void) {
    struct cluster *c = cluster_start(64, SHAPE_CHAIN, 0);
    cluster_run(c, 20 * P);
    CHECK_EQ(COUNT_NODES(c, n < 64 && status_of(c, n).parent == (n ? n - 1 : 64)), 64);
    cluster_free(c);
}

/* The first request is dropped by a node on its way that is just looking for a new parent; the second
 * gets through. */
static void test_program_order_over_a_broken_path(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    cluster_run(c, c->poll_ns - world_now(c->w) % c->poll_ns - 30 * NS_PER_US);
    world_crash(c->w, 9);
    struct call *a = cluster_ask(c, 12, "n[0-8]", xfer(0, "first", DATA));
    CHECK(WITHIN(c, P, a->asked));
    cluster_run(c, 300 * NS_PER_US);
    struct call *b = cluster_ask(c, 12, "n[0-8]", xfer(0, "SECOND", DATA));
    CHECK_EQ(cluster_wait(c, a), OUTCOME_DONE);
    CHECK_EQ(cluster_wait(c, b), OUTCOME_DONE);
    CHECK(a->result.order < b->result.order);
    CHECK_EQ(COUNT_NODES(c, n != 9 && heap_holds(c, n, 0, "SECOND")), 9);
    cluster_free(c);
}

/* A request is refused because of node 7, but the link breaks and the answer is lost; node 3 attaches
 * anew and asks again. */
static void test_repeated_refusal_keeps_its_culprit(void) {
    uint32_t nameless = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct cluster *c = cluster_new(NODES, SHAPE_KARY, 2);
        c->config.seed = seed;
        CHECK(cluster_power(c, NODES));
        world_crash(c->w, 7);
        CHECK(WITHIN(c, 4 * P, c->up_count == c->universe - 1));
        struct call *x = cluster_ask(c, 3, "n[4-8]", xfer(0, "refused", DATA));
        CHECK(WITHIN(c, P, x->asked));
        cluster_run(c, 150 * NS_PER_US);
        world_reset(c->w, 3, 0);
        CHECK_EQ(cluster_wait(c, x), OUTCOME_REFUSED);
        nameless += x->result.culprit != 7;
        cluster_free(c);
    }
    CHECK_EQ(nameless, 0);
}

/* Nothing fails, nobody is slow: nobody may be given up. */
static void test_healthy_nodes_are_not_fenced(void) {
    uint32_t fenced = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct cluster *c = cluster_new(64, SHAPE_CHAIN, 0);
        c->config.seed = seed;
        CHECK(cluster_power(c, 64));
        cluster_run(c, 60 * P);
        uint32_t here = COUNT_NODES(c, c->listeners[n].count[INPUT_FENCED] > 0);
        if (here > 0)
            printf("#   seed %u: %u nodes\n", (uint32_t)seed, here);
        fenced += here;
        cluster_free(c);
    }
    CHECK_EQ(fenced, 0);
}

/* Node 0 is dead and given up. Nobody has a reason to leave the parent it has found since. */
static void test_nobody_moves_towards_the_dead(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    world_crash(c->w, 0);
    CHECK(WITHIN(c, 4 * P, c->up_count == c->universe - 1));
    CHECK(WITHIN(c, P, status_of(c, 1).attached && status_of(c, 5).attached));
    uint32_t left = 0;
    for (uint32_t i = 0; i < 4000; i++) {
        cluster_run(c, P / 100);
        left += !status_of(c, 1).attached || !status_of(c, 5).attached;
    }
    CHECK_EQ(left, 0);
    cluster_free(c);
}

/* A node that was away for long comes back: how long until its children are below it again? */
static void test_children_return_soon(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    world_pause(c->w, 9, world_now(c->w) + 25 * P);
    cluster_run(c, 26 * P);
    CHECK(WITHIN(c, 4 * P, c->up_count == c->universe));
    uint64_t back = world_now(c->w);
    CHECK(WITHIN(c, 100 * P, status_of(c, 10).parent == 9 && status_of(c, 14).parent == 9));
    uint64_t periods = (world_now(c->w) - back) / P;
    printf("#   after %u periods\n", (uint32_t)periods);
    CHECK(periods <= 4);
    cluster_free(c);
}

/* Fields that a kind does not use are ignored. */
static void test_unused_fields(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct primitive r = xfer(0, "x", DATA);
    r.relation = RELATIONS;
    r.variable = 12345;
    r.write_variable = 54321;
    r.channel = 12345;
    CHECK_EQ(cluster_wait(c, cluster_ask(c, 4, NULL, r)), OUTCOME_DONE);
    struct primitive k = compare(0, RELATION_EQ, 0);
    k.heap_offset = UINT32_MAX;
    k.remote_event = 12345;
    k.body = bytes_of("0123456789", 10);
    CHECK_EQ(cluster_wait(c, cluster_ask(c, 4, NULL, k)), OUTCOME_DONE);
    cluster_free(c);
}

int main(void) {
    TEST(test_bulk_of_nothing);
    TEST(test_timeout_for_ever);
    TEST(test_culprit_of_a_deadline);
    TEST(test_culprit_of_a_standing_compare);
    TEST(test_expired_standing_compares_leave_nothing);
    TEST(test_culprit_of_a_bulk_whose_sink_died_early);
    TEST(test_unused_fields);
    TEST(test_repeated_refusal_keeps_its_culprit);
    TEST(test_healthy_nodes_are_not_fenced);
    TEST(test_nobody_moves_towards_the_dead);
    TEST(test_children_return_soon);
    TEST(test_program_order_over_a_broken_path);
    TEST(test_failed_bulk_lets_go);
    TEST(test_long_chain_finds_its_plan);
    return tap_finish();
}

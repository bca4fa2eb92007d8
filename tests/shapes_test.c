/* SPDX-License-Identifier: MIT */
/* The primitives in every shape and size of tree, and what they cost in messages. */
#include "cluster.h"

enum { V, W };

static const struct {
    enum shape shape;
    uint32_t arity;
} shapes[] = {
    {SHAPE_KARY, 1},     {SHAPE_KARY, 2},  {SHAPE_KARY, 8}, {SHAPE_KARY, 16},
    {SHAPE_BINOMIAL, 0}, {SHAPE_CHAIN, 0}, {SHAPE_FLAT, 0},
};

static bool wave_came_back(const struct cluster *c) {
    const struct heard *last = &c->log[c->log_count - 1];
    return last->in.kind == INPUT_WAVE && last->in.wave.complete &&
           last->in.wave.nodes == c->universe;
}

static bool as_planned(const struct cluster *c) {
    for (uint32_t n = 0; n < c->root; n++) {
        uint32_t parent = c->root;
        tree_ancestors(&c->config.prim.tree, n, &parent, 1);
        if (status_of(c, n).parent != parent)
            return false;
    }
    return true;
}

static void check_shape(enum shape shape, uint32_t arity, uint32_t nodes) {
    struct cluster *c = cluster_start(nodes, shape, arity);
    for (uint32_t i = 0; i < 80 && !as_planned(c); i++)
        cluster_run(c, P); /* in a long chain some begin further up */
    CHECK(as_planned(c));
    struct call *x = cluster_ask(c, nodes - 1, NULL, xfer(16, "every shape", DATA));
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK_EQ(COUNT_NODES(c, heap_holds(c, n, 16, "every shape")), c->universe);
    CHECK_EQ(COUNT_NODES(c, event_of(c, n, DATA) == 1), c->universe);
    struct primitive r = then_write(compare(V, RELATION_LT, 1), W, 8);
    CHECK_EQ(cluster_wait(c, cluster_ask(c, nodes / 2, NULL, r)), OUTCOME_DONE);
    CHECK_EQ(COUNT_NODES(c, variable_of(c, n, W) == 8), c->universe);
    cluster_set(c, nodes - 1, V, 1);
    cluster_run(c, 2 * c->poll_ns);
    CHECK_EQ(cluster_wait(c, cluster_ask(c, c->root, NULL, r)), OUTCOME_FALSE);
    CHECK(WITHIN(c, 2 * P, wave_came_back(c)));
    if (nodes <= 17) /* and nobody had to be given up on the way there */
        CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_JOINED] == 1), c->universe);
    cluster_free(c);
}

static void test_every_shape_and_size(void) {
    static const uint32_t sizes[] = {1, 2, 3, 17, 64};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            bool before = tap_current_fail;
            tap_current_fail = false;
            check_shape(shapes[i].shape, shapes[i].arity, sizes[k]);
            if (tap_current_fail)
                printf("#   %s %u of %u nodes\n", shape_name(shapes[i].shape), shapes[i].arity,
                       sizes[k]);
            tap_current_fail = tap_current_fail || before;
        }
    }
}

/* ---- nothing for nobody ---- */

enum { MANY = 1024, ARITY = 8 };

/* Messages between the asking and the answer, or in a quarter period if there is none. No heartbeat
 * is under way. */
static uint64_t cost(struct cluster *c, uint32_t from, const char *set, struct primitive r) {
    uint32_t waves = c->listeners[c->root].count[INPUT_WAVE];
    CHECK(WITHIN(c, 2 * P, c->listeners[c->root].count[INPUT_WAVE] > waves));
    uint64_t heartbeat = c->listeners[c->root].count[INPUT_WAVE];
    struct call *x = cluster_ask(c, from, set, r);
    CHECK(WITHIN(c, P, x->asked));
    uint64_t before = world_counts(c->w)->messages;
    cluster_run(c, P / 4);
    CHECK(r.kind == PRIMITIVE_STROBE || x->answers == 1);
    CHECK_EQ(c->listeners[c->root].count[INPUT_WAVE], heartbeat);
    return world_counts(c->w)->messages - before;
}

/* Links from the root to a node. */
static uint32_t hops(const struct cluster *c, uint32_t node) {
    uint32_t ancestors[TREE_DEPTH_MAX];
    return tree_ancestors(&c->config.prim.tree, node, ancestors, TREE_DEPTH_MAX) + 1;
}

/* Two nodes of a thousand, far apart: only the links on the way to them are used, twice in each
 * direction to prepare and to decide. */
static void test_an_operation_costs_those_it_names(void) {
    struct cluster *c = cluster_new(MANY, SHAPE_KARY, ARITY);
    c->poll_ns = P / 4;
    CHECK(cluster_power(c, MANY));
    CHECK_EQ(tree_depth(&c->config.prim.tree), 4);
    uint32_t links = hops(c, 100) + hops(c, 1023);
    CHECK(links >= 6 && links <= 8);
    static const char two[] = "n[100,1023]";
    CHECK(cost(c, c->root, two, xfer(0, "two", DATA)) <= 4 * links);
    CHECK(cost(c, c->root, two, then_write(compare(V, RELATION_EQ, 0), W, 1)) <= 4 * links);
    CHECK(cost(c, c->root, two, compare(V, RELATION_EQ, 0)) <= 2 * links);
    CHECK(cost(c, c->root, two, compare(V, RELATION_EQ, 1)) <= 2 * links);
    CHECK(cost(c, c->root, two, standing(V, RELATION_EQ, 0)) <= 4 * links);
    CHECK(cost(c, c->root, two, strobe(0, "two")) <= links);
    CHECK(cost(c, c->root, "n1024", xfer(0, "itself", DATA)) == 0);
    /* A request, its result and the word that it is there. */
    CHECK(cost(c, 500, two, xfer(0, "two", DATA)) <= 4 * links + 3 * hops(c, 500));
    CHECK_EQ(COUNT_NODES(c, event_of(c, n, DATA) > 0), 3);
    cluster_free(c);
}

/* Acknowledgements are combined: a thousand nodes answer with one message on each link. */
static void test_answers_are_combined(void) {
    struct cluster *c = cluster_new(MANY, SHAPE_KARY, ARITY);
    c->poll_ns = P / 4;
    CHECK(cluster_power(c, MANY));
    CHECK_EQ(cost(c, c->root, NULL, xfer(0, "all", DATA)), 4 * MANY);
    CHECK_EQ(cost(c, c->root, NULL, compare(V, RELATION_EQ, 0)), 2 * MANY);
    CHECK_EQ(cost(c, c->root, NULL, strobe(0, "all")), MANY);
    cluster_free(c);
}

/* A cluster with nothing to do has its heartbeat, one message a link and direction, and no more. */
static void test_an_idle_cluster_costs_a_heartbeat(void) {
    struct cluster *c = cluster_start(64, SHAPE_KARY, 4);
    cluster_run(c, 3 * P + P / 2);
    uint64_t before = world_counts(c->w)->messages;
    cluster_run(c, 10 * P);
    CHECK_EQ(world_counts(c->w)->messages - before, 10 * 2 * 64);
    cluster_free(c);
}

int main(void) {
    TEST(test_every_shape_and_size);
    TEST(test_an_operation_costs_those_it_names);
    TEST(test_answers_are_combined);
    TEST(test_an_idle_cluster_costs_a_heartbeat);
    return tap_finish();
}

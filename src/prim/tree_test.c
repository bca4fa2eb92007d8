/* SPDX-License-Identifier: MIT */
/* Every shape is a tree over all nodes, numbered in preorder, as deep as it should be. */
#include "prim/tree.h"

#include "tap.h"

enum { NODES_MAX = 600 };

/* Parents come before their children, every node reaches the root, and subtrees are contiguous. */
static void check_tree(const struct tree *t) {
    static uint32_t depth[NODES_MAX], last_below[NODES_MAX];
    uint32_t deepest = 0;
    for (uint32_t n = 0; n < t->nodes; n++) {
        uint32_t up;
        uint32_t ancestors = tree_ancestors(t, n, &up, 1);
        depth[n] = ancestors == 0 ? 1 : depth[up] + 1;
        CHECK(ancestors == 0 || up < n);
        CHECK(ancestors == 0 || tree_above(t, up, n));
        CHECK(!tree_above(t, n, n == 0 ? 0 : n - 1));
        if (depth[n] > deepest)
            deepest = depth[n];
        last_below[n] = n;
        for (uint32_t a = n; tree_ancestors(t, a, &up, 1) == 1; a = up) {
            CHECK_EQ(last_below[up], n - 1); /* contiguous so far */
            last_below[up] = n;
            if (t->shape == SHAPE_CHAIN)
                break;
        }
    }
    CHECK_EQ(tree_depth(t), deepest);
}

static void test_shapes(void) {
    for (uint32_t nodes = 1; nodes < 200; nodes += nodes < 40 ? 1 : 37)
        for (int shape = 0; shape < SHAPES; shape++)
            for (uint32_t arity = 1; arity < 10; arity += 3) {
                struct tree t = {.shape = (enum shape)shape, .arity = arity, .nodes = nodes};
                check_tree(&t);
            }
}

static uint32_t depth_of(enum shape shape, uint32_t arity, uint32_t nodes) {
    struct tree t = {.shape = shape, .arity = arity, .nodes = nodes};
    return tree_depth(&t);
}

static void test_depths(void) {
    CHECK_EQ(depth_of(SHAPE_KARY, 8, 8), 1);
    CHECK_EQ(depth_of(SHAPE_KARY, 8, 72), 2);
    CHECK_EQ(depth_of(SHAPE_KARY, 2, 1022), 9);
    CHECK_EQ(depth_of(SHAPE_BINOMIAL, 0, 1023), 10);
    CHECK_EQ(depth_of(SHAPE_CHAIN, 0, 77), 77);
    CHECK_EQ(depth_of(SHAPE_FLAT, 0, 5000), 1);
}

static void test_ancestors_are_nearest_first(void) {
    struct tree t = {.shape = SHAPE_CHAIN, .nodes = 100};
    uint32_t up[8];
    CHECK_EQ(tree_ancestors(&t, 50, up, 3), 3);
    CHECK_EQ(up[0], 49);
    CHECK_EQ(up[2], 47);
    CHECK_EQ(tree_ancestors(&t, 0, up, 8), 0);
    t = (struct tree){.shape = SHAPE_KARY, .arity = 2, .nodes = 62};
    uint32_t n = tree_ancestors(&t, 5, up, 8);
    for (uint32_t i = 0; i + 1 < n; i++)
        CHECK(tree_above(&t, up[i + 1], up[i]));
}

static void test_names(void) {
    enum shape s;
    for (int i = 0; i < SHAPES; i++) {
        CHECK(shape_parse(shape_name((enum shape)i), &s));
        CHECK_EQ(s, i);
    }
    CHECK(!shape_parse("star", &s));
}

int main(void) {
    TEST(test_shapes);
    TEST(test_depths);
    TEST(test_ancestors_are_nearest_first);
    TEST(test_names);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Every shape is a tree over all receivers, parents and children agree, and nothing is deeper or wider than
 * it should be; a pair loads nobody twice; plans with groups rarely cross from one to another; the choice of
 * a shape is what one would expect where the answer is plain. */
#include "rm/spread.h"

#include "base/random.h"
#include "base/units.h"
#include "tap.h"

enum { RECEIVERS_MAX = 99999, SMALL_MAX = 300 };

static const uint32_t large[] = {1023, 1024, 1025, 16384, RECEIVERS_MAX};

/* One tree as it was found from the source downwards. */
struct found {
    uint32_t count; /* of positions, the source included */
    uint32_t order[RECEIVERS_MAX + 1];
    uint32_t level[RECEIVERS_MAX + 1];
    uint32_t height[RECEIVERS_MAX + 1];
    uint32_t children[RECEIVERS_MAX + 1];
    uint32_t deepest, widest;
};

static struct found trees[2];

static uint32_t log2_floor(uint32_t v) {
    uint32_t log = 0;
    while (v >>= 1)
        log++;
    return log;
}

/* Breadth first. Each child's parent must be the one it was found at; each is found once, and if as many are
 * found as there are, all are reached. */
static void walk(const struct spread *s, uint32_t tree, struct found *f) {
    for (uint32_t p = 0; p <= s->receivers; p++)
        f->level[p] = 0;
    f->order[0] = f->deepest = f->widest = 0;
    f->count = 1;
    for (uint32_t i = 0; i < f->count; i++) {
        uint32_t at = f->order[i];
        uint32_t children = spread_child_count(s, tree, at);
        f->children[at] = children;
        if (children > f->widest)
            f->widest = children;
        for (uint32_t c = 0; c < children; c++) {
            uint32_t child = spread_child(s, tree, at, c);
            if (!CHECK(child > 0 && child <= s->receivers) || !CHECK(f->count <= s->receivers) ||
                !CHECK_EQ(spread_parent(s, tree, child), at) ||
                !CHECK_EQ(f->level[child], 0)) /* not found before */
                return;
            f->level[child] = f->level[at] + 1;
            f->deepest = f->level[child];
            f->order[f->count++] = child;
        }
    }
    CHECK_EQ(f->count, s->receivers + 1);
}

static void measure_heights(const struct spread *s, uint32_t tree, struct found *f) {
    for (uint32_t p = 0; p <= s->receivers; p++)
        f->height[p] = 0;
    for (uint32_t i = f->count; i-- > 1;) {
        uint32_t at = f->order[i], up = spread_parent(s, tree, at);
        if (f->height[up] < f->height[at] + 1)
            f->height[up] = f->height[at] + 1;
    }
}

static void check_serving(const struct spread *s, uint32_t tree, struct found *f) {
    measure_heights(s, tree, f);
    for (uint32_t at = 0; at <= s->receivers; at++)
        for (uint32_t c = 1; c < f->children[at]; c++)
            CHECK(f->height[spread_child(s, tree, at, c - 1)] >=
                  f->height[spread_child(s, tree, at, c)]);
}

/* Whatever the shape and its groups. */
static void check_plan(const struct spread *s) {
    uint32_t deepest = 0;
    for (uint32_t tree = 0; tree < spread_trees(s); tree++) {
        walk(s, tree, &trees[tree]);
        if (trees[tree].deepest > deepest)
            deepest = trees[tree].deepest;
    }
    CHECK_EQ(spread_depth(s), deepest);
}

static void check_pair(const struct spread *s) {
    for (uint32_t p = 1; p <= s->receivers; p++)
        CHECK(trees[0].children[p] == 0 || trees[1].children[p] == 0);
    for (uint32_t tree = 0; tree < 2; tree++) {
        CHECK(trees[tree].widest <= 2);
        CHECK_EQ(trees[tree].children[0], 1);
    }
}

static void check_plain(const struct spread *s) {
    CHECK(spread_valid(s));
    check_plan(s);
    for (uint32_t tree = 0; tree < spread_trees(s); tree++)
        if (s->shape != SPREAD_FLAT)
            check_serving(s, tree, &trees[tree]);
}

/* The fewest levels that hold so many, each node with so many children. */
static uint32_t fewest_levels(uint64_t arity, uint64_t receivers) {
    uint32_t levels = 0;
    for (uint64_t level = arity, held = 0; held < receivers; level *= arity) {
        held += level;
        levels++;
    }
    return levels;
}

static void check_all_shapes(uint32_t n) {
    struct spread s = {.shape = SPREAD_CHAIN, .receivers = n};
    check_plain(&s);
    CHECK_EQ(trees[0].deepest, n);
    s.shape = SPREAD_FLAT;
    check_plain(&s);
    CHECK_EQ(trees[0].deepest, 1);
    s.shape = SPREAD_BINOMIAL;
    check_plain(&s);
    CHECK_EQ(trees[0].deepest, log2_floor(n + 1));
    CHECK_EQ(trees[0].widest, log2_floor(n) + 1);
    s.shape = SPREAD_PAIR;
    check_plain(&s);
    check_pair(&s);
    CHECK(spread_depth(&s) <= log2_floor(n + 1) + 1);
    s.shape = SPREAD_KARY;
    static const uint32_t arities[] = {1, 2, 3, 8, SPREAD_ARITY_MAX};
    for (uint32_t i = 0; i < sizeof arities / sizeof arities[0]; i++) {
        s.arity = arities[i];
        if (s.arity > 8 && n > 1025)
            continue; /* all children of all nodes: a node's children squared */
        check_plain(&s);
        CHECK_EQ(trees[0].deepest, fewest_levels(s.arity, n));
        CHECK(trees[0].widest <= s.arity);
    }
}

static void test_small(void) {
    for (uint32_t n = 1; n <= SMALL_MAX; n++)
        check_all_shapes(n);
}

static void test_large(void) {
    for (uint32_t i = 0; i < sizeof large / sizeof large[0]; i++)
        check_all_shapes(large[i]);
}

static void test_nobody(void) {
    for (uint8_t shape = SPREAD_CHAIN; shape < SPREAD_SHAPES; shape++) {
        struct spread s = {.shape = shape, .arity = 2};
        check_plan(&s);
        CHECK_EQ(spread_depth(&s), 0);
    }
}

static void test_trees_as_drawn(void) {
    struct spread s = {.shape = SPREAD_PAIR, .receivers = 7};
    CHECK_EQ(spread_child(&s, 0, 0, 0), 4);
    CHECK_EQ(spread_child(&s, 0, 4, 0), 2);
    CHECK_EQ(spread_child(&s, 0, 4, 1), 6);
    CHECK_EQ(spread_parent(&s, 0, 7), 6);
    CHECK_EQ(spread_child(&s, 1, 0, 0), 3);
    CHECK_EQ(spread_child(&s, 1, 3, 0), 5); /* four below it, two below the other */
    CHECK_EQ(spread_child(&s, 1, 3, 1), 1);
    CHECK_EQ(spread_parent(&s, 1, 6), 7);
    s = (struct spread){.shape = SPREAD_KARY, .arity = 2, .receivers = 6};
    CHECK_EQ(spread_child(&s, 0, 0, 1), 4);
    CHECK_EQ(spread_parent(&s, 0, 6), 4);
    s.shape = SPREAD_BINOMIAL; /* three below the source's first, then two, then one */
    CHECK_EQ(spread_child(&s, 0, 0, 1), 4);
    CHECK_EQ(spread_child(&s, 0, 0, 2), 6);
}

/* ---- Groups ----------------------------------------------------------------------------------- */

static uint32_t switches[RECEIVERS_MAX], order[RECEIVERS_MAX], ends[RECEIVERS_MAX + 1];

/* So many switches with so many hosts each, drawn in any order. The source is at switch 1. */
static void draw_switches(uint32_t count, uint32_t hosts, uint64_t seed) {
    struct random r;
    random_init(&r, seed);
    for (uint32_t i = 0; i < count * hosts; i++)
        switches[i] = i / hosts + 1;
    for (uint32_t i = count * hosts; i > 1; i--) {
        uint32_t other = (uint32_t)random_below(&r, i);
        uint32_t mine = switches[i - 1];
        switches[i - 1] = switches[other];
        switches[other] = mine;
    }
}

struct crossings {
    uint32_t edges;
    uint32_t from_one_node; /* the most */
};

/* Edges between switches; `arranged` says who stands where, NULL: receivers as they are. */
static struct crossings count_crossings(const struct spread *s, uint32_t tree,
                                        const uint32_t *arranged, uint32_t source) {
    static uint32_t from[RECEIVERS_MAX + 1];
    memset(from, 0, sizeof from);
    struct crossings c = {0};
    for (uint32_t p = 1; p <= s->receivers; p++) {
        uint32_t up = spread_parent(s, tree, p);
        uint32_t mine = switches[arranged ? arranged[p - 1] : p - 1];
        uint32_t theirs = up == 0 ? source : switches[arranged ? arranged[up - 1] : up - 1];
        if (mine == theirs)
            continue;
        c.edges++;
        if (++from[up] > c.from_one_node)
            c.from_one_node = from[up];
    }
    return c;
}

static void arrange(struct spread *s, uint32_t source) {
    s->groups = spread_arrange(s, switches, source, order, ends);
    s->ends = ends;
    CHECK(spread_valid(s));
}

/* Receivers in any order, then arranged, then arranged in a plan that knows the groups: each is better by
 * far, and the last one is `most` at most. */
static void check_crossings(struct spread s, uint32_t count, uint32_t hosts, uint32_t most,
                            uint32_t from_one_node) {
    s.receivers = count * hosts;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        draw_switches(count, hosts, seed);
        for (uint32_t tree = 0; tree < spread_trees(&s); tree++) {
            s.groups = 0;
            uint32_t unaware = count_crossings(&s, tree, NULL, 1).edges;
            CHECK(unaware >= s.receivers / 2);
            arrange(&s, 1);
            struct spread plain = s;
            plain.groups = 0;
            uint32_t sorted = count_crossings(&plain, tree, order, 1).edges;
            CHECK(sorted * 2 < unaware);
            struct crossings aware = count_crossings(&s, tree, order, 1);
            CHECK(aware.edges >= count - 1);
            CHECK(aware.edges <= most);
            CHECK(aware.edges <= sorted);
            CHECK(aware.from_one_node <= from_one_node);
            CHECK(spread_child(&s, tree, 0, 0) <= ends[0]); /* first to the source's own switch */
        }
    }
}

static void test_crossings(void) {
    const struct spread chain = {.shape = SPREAD_CHAIN}, pair = {.shape = SPREAD_PAIR},
                        binomial = {.shape = SPREAD_BINOMIAL};
    struct spread kary = {.shape = SPREAD_KARY, .arity = 2};
    check_crossings(chain, 3, 33, 2, 1);
    check_crossings(chain, 16, 64, 15, 1);
    check_crossings(pair, 3, 33, 3, 1);
    check_crossings(pair, 16, 64, 17, 1);
    check_crossings(binomial, 3, 33, 2, 2);
    check_crossings(binomial, 16, 64, 15, 4);
    for (; kary.arity <= 8; kary.arity++) {
        check_crossings(kary, 3, 33, 2, 2);
        check_crossings(kary, 16, 64, 15, kary.arity);
    }
}

/* What knowing the groups costs in levels. */
static void test_grouped_depth(void) {
    struct spread s = {.shape = SPREAD_PAIR, .receivers = 99};
    draw_switches(3, 33, 1);
    arrange(&s, 1);
    CHECK(spread_depth(&s) <= 9);
    s.receivers = 1024;
    draw_switches(16, 64, 1);
    arrange(&s, 1);
    CHECK(spread_depth(&s) <= 16);
    s.shape = SPREAD_BINOMIAL;
    CHECK(spread_depth(&s) <= 11);
    s.shape = SPREAD_KARY;
    s.arity = 4;
    CHECK(spread_depth(&s) <= 6);
}

static void check_grouped(struct spread *s) {
    check_plan(s);
    CHECK(spread_depth(s) <= 2 * log2_floor(s->receivers) + 9);
    if (s->shape == SPREAD_PAIR)
        check_pair(s);
    if (s->shape == SPREAD_KARY)
        CHECK(trees[0].widest <= s->arity);
    uint32_t groups = s->groups - 1; /* that have to be entered */
    for (uint32_t tree = 0; tree < spread_trees(s); tree++) {
        uint32_t edges = count_crossings(s, tree, order, 1).edges;
        CHECK(edges >= groups);
        CHECK(edges <= (s->shape == SPREAD_PAIR ? 2 * groups : groups));
    }
}

/* Any sizes of groups: one receiver, nearly all of them, none at the source. */
static void test_groups_of_all_sizes(void) {
    struct random r;
    random_init(&r, 7);
    for (uint32_t round = 0; round < 1000; round++) {
        uint32_t n = (uint32_t)random_between(&r, 1, round % 100 == 0 ? 5000 : 200);
        uint32_t count = (uint32_t)random_between(&r, 1, round % 3 == 0 ? n : 12);
        bool even = random_chance(&r, 1, 2); /* few large groups and many small ones, or alike */
        for (uint32_t i = 0; i < n; i++) {
            uint64_t upto = even ? count : random_between(&r, 1, count);
            switches[i] = (uint32_t)random_between(&r, round % 2, upto);
        }
        struct spread s = {.receivers = n};
        static const uint8_t shapes[] = {SPREAD_PAIR, SPREAD_KARY, SPREAD_BINOMIAL};
        for (uint32_t i = 0; i < sizeof shapes; i++) {
            s.shape = shapes[i];
            s.arity = 2 + round % 7;
            s.groups = spread_arrange(&s, switches, 1, order, ends);
            s.ends = ends;
            check_grouped(&s);
        }
    }
}

static void test_many_switches(void) {
    struct spread s = {.shape = SPREAD_PAIR, .receivers = 500 * 48};
    draw_switches(500, 48, 3);
    arrange(&s, 1);
    check_grouped(&s);
    s.shape = SPREAD_KARY;
    s.arity = 4;
    check_grouped(&s);
}

static void test_arrangement(void) {
    static const uint32_t given[] = {5, 0, 2, 5, 9, 2, 0, 5};
    static const uint32_t wanted[] = {2, 5, 1, 6, 0, 3, 7, 4};
    struct spread s = {.shape = SPREAD_CHAIN, .receivers = 8};
    CHECK_EQ(spread_arrange(&s, given, 2, order, ends), 4);
    CHECK(memcmp(order, wanted, sizeof wanted) == 0);
    CHECK_EQ(ends[0], 2);
    CHECK_EQ(ends[1], 4);
    CHECK_EQ(ends[2], 7);
    CHECK_EQ(ends[3], 8);
    CHECK_EQ(spread_arrange(&s, given, 77, order, ends), 5); /* the source is alone */
    CHECK_EQ(ends[0], 0);
    CHECK_EQ(order[0], 1);
    CHECK_EQ(ends[4], 8);
}

static void test_validity(void) {
    uint32_t borders[] = {0, 3, 5};
    struct spread s = {.shape = SPREAD_PAIR, .receivers = 5, .groups = 3, .ends = borders};
    CHECK(spread_valid(&s));
    s.receivers = 6;
    CHECK(!spread_valid(&s));
    s.receivers = 5;
    borders[1] = 0;
    CHECK(!spread_valid(&s));
    borders[1] = 5;
    CHECK(!spread_valid(&s));
    s = (struct spread){.shape = SPREAD_KARY, .arity = 0, .receivers = 5};
    CHECK(!spread_valid(&s));
    s.arity = SPREAD_ARITY_MAX + 1;
    CHECK(!spread_valid(&s));
    s.shape = SPREAD_AUTO;
    CHECK(!spread_valid(&s));
    s.shape = SPREAD_SHAPES;
    CHECK(!spread_valid(&s));
}

/* ---- Costs ------------------------------------------------------------------------------------ */

/* 10 Gbit/s and pieces of 1 MiB. */
static struct spread_terms fast_network(uint64_t bytes, uint32_t receivers) {
    return (struct spread_terms){.bytes = bytes,
                                 .receivers = receivers,
                                 .piece_bytes = (uint32_t)MIB,
                                 .bytes_per_s = 1250000000,
                                 .latency_ns = 30 * NS_PER_US,
                                 .message_ns = 5 * NS_PER_US};
}

/* What two processors copy among processes of one host. */
static struct spread_terms one_host(uint64_t bytes, uint32_t receivers) {
    return (struct spread_terms){.bytes = bytes,
                                 .receivers = receivers,
                                 .piece_bytes = (uint32_t)(256 * KIB),
                                 .bytes_per_s = 3200000000,
                                 .latency_ns = 50 * NS_PER_US,
                                 .message_ns = 3 * NS_PER_US,
                                 .shared = true};
}

static uint64_t cost(uint8_t shape, uint32_t arity, const struct spread_terms *t) {
    struct spread s = {.shape = shape, .arity = arity, .receivers = t->receivers};
    return spread_cost_ns(&s, t);
}

static uint32_t chosen_depth(const struct spread_terms *t) {
    struct spread s = spread_choose(t);
    CHECK_EQ(s.receivers, t->receivers);
    return spread_depth(&s);
}

static void test_choice_of_large_files(void) {
    struct spread_terms t = fast_network(100 * GIB, 1000);
    CHECK_EQ(spread_choose(&t).shape, SPREAD_PAIR);
    /* Little more than the time of the bytes themselves; an eighth is lost in no other tree of this depth. */
    uint64_t bytes_ns = t.bytes / 5 * 4; /* 1.25 bytes a nanosecond */
    CHECK(cost(SPREAD_PAIR, 0, &t) >= bytes_ns);
    CHECK(cost(SPREAD_PAIR, 0, &t) < bytes_ns / 100 * 101);
    CHECK(cost(SPREAD_KARY, 2, &t) > bytes_ns / 10 * 19);
    CHECK(cost(SPREAD_FLAT, 0, &t) >= 1000 * bytes_ns);
    CHECK(cost(SPREAD_CHAIN, 0, &t) > cost(SPREAD_PAIR, 0, &t));
    t.receivers = 2; /* a pair of two is a chain with more turns to wait for */
    CHECK_EQ(spread_choose(&t).shape, SPREAD_CHAIN);
}

static void test_choice_of_small_files(void) {
    struct spread_terms t = fast_network(1000, 1000);
    CHECK(chosen_depth(&t) <= 4);
    t = one_host(1000, 1000);
    CHECK(chosen_depth(&t) <= 12);
    t = fast_network(0, 64);
    CHECK(chosen_depth(&t) <= 3);
    t = fast_network(1000, 3); /* there is nothing to gain below one level */
    CHECK_EQ(chosen_depth(&t), 1);
}

static uint32_t pieces_for(uint64_t bytes, uint32_t receivers) {
    struct spread any = {.shape = SPREAD_AUTO};
    struct spread_terms t = fast_network(bytes, receivers);
    t.piece_bytes = 77; /* is not used */
    return spread_piece_bytes(&any, &t);
}

static void test_choice_of_pieces(void) {
    CHECK_EQ(pieces_for(GIB, 1024), 128 * KIB);
    CHECK_EQ(pieces_for(12 * MIB, 16384), 16 * KIB);
    CHECK_EQ(pieces_for(0, 64), 128 * KIB);
    struct spread chain = {.shape = SPREAD_CHAIN};
    struct spread_terms t = fast_network(12 * MIB, 1);
    CHECK_EQ(spread_piece_bytes(&chain, &t), 128 * KIB); /* it is passed on by nobody */
    t.receivers = 1000;
    CHECK(spread_piece_bytes(&chain, &t) < 16 * KIB);
}

static uint32_t slots_for(uint64_t bytes, uint32_t piece_bytes, bool shared) {
    struct spread_terms t = {.bytes = bytes, .piece_bytes = piece_bytes, .shared = shared};
    return spread_slots(&t);
}

static void test_slots(void) {
    CHECK_EQ(slots_for(GIB, 28 * KIB, false), 24);
    CHECK_EQ(slots_for(GIB, 224 * KIB, false), 12);
    CHECK_EQ(slots_for(GIB, 1, false), 64);
    CHECK_EQ(slots_for(GIB, 0, false), 12);
    CHECK_EQ(slots_for(12 * MIB, 448 * KIB, true), 6);
    CHECK_EQ(slots_for(70 * MIB, 448 * KIB, true), 10);
    CHECK_EQ(slots_for(GIB, 448 * KIB, true), 16);
    CHECK_EQ(slots_for(0, 0, true), 6);
    CHECK_EQ(slots_for(UINT64_MAX, 1, true), 16);
}

static void test_choice_for_one(void) {
    struct spread_terms t = fast_network(GIB, 1);
    uint64_t chain = cost(SPREAD_CHAIN, 0, &t);
    CHECK_EQ(chosen_depth(&t), 1);
    for (uint8_t shape = SPREAD_CHAIN; shape < SPREAD_SHAPES; shape++)
        CHECK_EQ(cost(shape, 8, &t), chain);
    t.receivers = 0;
    CHECK_EQ(chosen_depth(&t), 0);
    CHECK_EQ(cost(SPREAD_PAIR, 0, &t), 0);
}

/* As measured: flat 333 ms, chain 240, binomial 245. */
static void test_choice_on_one_host(void) {
    struct spread_terms t = one_host(12000000, 64);
    CHECK_EQ(spread_choose(&t).shape, SPREAD_CHAIN);
    uint64_t chain = cost(SPREAD_CHAIN, 0, &t), binomial = cost(SPREAD_BINOMIAL, 0, &t);
    uint64_t flat = cost(SPREAD_FLAT, 0, &t);
    CHECK(chain < binomial && binomial < flat);
    CHECK(chain > 228 * NS_PER_MS && chain < 256 * NS_PER_MS);
    CHECK(binomial > 236 * NS_PER_MS && binomial < 262 * NS_PER_MS);
    CHECK(flat > 315 * NS_PER_MS && flat < 355 * NS_PER_MS);
    t.receivers = 20000; /* so many levels would take longer than the copies */
    t.bytes = 100000;
    CHECK(chosen_depth(&t) < 100);
}

static void test_more_bytes_take_longer(void) {
    struct spread_terms t = fast_network(0, 777);
    for (uint32_t i = 0; i < 2 * 9; i++) {
        uint8_t shape = (uint8_t)(SPREAD_CHAIN + i % 9 % (SPREAD_SHAPES - 1));
        t.shared = i >= 9;
        uint64_t last = 0;
        for (t.bytes = 0; t.bytes < 3 * MIB; t.bytes += 4099) {
            uint64_t ns = cost(shape, 2 + i % 9, &t);
            CHECK(ns >= last);
            last = ns;
        }
        t.bytes = TIB;
        CHECK(cost(shape, 2 + i % 9, &t) > 100 * last);
    }
}

static bool is_about(uint64_t ns, uint64_t wanted) {
    return ns > wanted - wanted / 1000 && ns < wanted + wanted / 1000;
}

/* Where messages take longer than their bytes they are what is counted: one in, and one out for each child. */
static void test_slow_processors(void) {
    struct spread_terms t = fast_network(10000 * MIB, 15);
    t.message_ns = 10 * NS_PER_MS;
    CHECK(is_about(cost(SPREAD_CHAIN, 0, &t), (2 * 9999 + 30) * t.message_ns));
    CHECK(is_about(cost(SPREAD_PAIR, 0, &t), (2 * 9999 + 14) * t.message_ns));
    CHECK(is_about(cost(SPREAD_KARY, 3, &t), (4 * 9999 + 12) * t.message_ns));
    CHECK(is_about(cost(SPREAD_FLAT, 0, &t), (16 * 9999 + 16) * t.message_ns));
}

/* A terabyte to a hundred thousand; and what cannot be said is not small. */
static void test_no_overflow(void) {
    struct spread_terms t = fast_network(1000000000000, 100000);
    CHECK(is_about(cost(SPREAD_FLAT, 0, &t), 100000 * 800 * NS_PER_S));
    CHECK(is_about(cost(SPREAD_PAIR, 0, &t), 800 * NS_PER_S));
    t.bytes_per_s = 100000000000;
    CHECK(is_about(cost(SPREAD_FLAT, 0, &t), 100000 * 10 * NS_PER_S));
    t.shared = true; /* each copy has 953,675 messages of 5 us */
    CHECK(is_about(cost(SPREAD_CHAIN, 0, &t), 100000 * (10 * NS_PER_S + 4768 * NS_PER_MS)));
    t = fast_network(UINT64_MAX, 100000);
    t.bytes_per_s = 1;
    CHECK_EQ(cost(SPREAD_FLAT, 0, &t), UINT64_MAX);
    CHECK_EQ(spread_choose(&t).shape, SPREAD_CHAIN);
    t.bytes_per_s = UINT64_MAX;
    CHECK(cost(SPREAD_PAIR, 0, &t) < UINT64_MAX);
    t.bytes_per_s = 0;
    t.piece_bytes = 0;
    CHECK(cost(SPREAD_PAIR, 0, &t) < NS_PER_S);
}

/* ---- Names ------------------------------------------------------------------------------------ */

static void check_name(const char *text, uint8_t shape, uint32_t arity, const char *shown) {
    struct spread s = {0};
    char buf[SPREAD_TEXT_MAX];
    CHECK(spread_parse(text, &s));
    CHECK_EQ(s.shape, shape);
    CHECK_EQ(s.arity, arity);
    CHECK_EQ(spread_format(&s, buf, sizeof buf), strlen(shown));
    CHECK_STR(buf, shown);
}

static void test_names(void) {
    check_name("auto", SPREAD_AUTO, 0, "auto");
    check_name("chain", SPREAD_CHAIN, 0, "chain");
    check_name("k-ary", SPREAD_KARY, SPREAD_ARITY_USUAL, "k-ary:4");
    check_name("kary", SPREAD_KARY, SPREAD_ARITY_USUAL, "k-ary:4");
    check_name("k-ary:1", SPREAD_KARY, 1, "k-ary:1");
    check_name("kary:1024", SPREAD_KARY, 1024, "k-ary:1024");
    check_name("binomial", SPREAD_BINOMIAL, 0, "binomial");
    check_name("flat", SPREAD_FLAT, 0, "flat");
    check_name("pair", SPREAD_PAIR, 0, "pair");
    CHECK_STR(spread_name(SPREAD_KARY), "k-ary");
    CHECK_STR(spread_name(SPREAD_SHAPES), "?");
    static const char *const wrong[] = {"",
                                        "star",
                                        "Chain",
                                        "chain:2",
                                        "k-ary:",
                                        "k-ary:0",
                                        "k-ary:-1",
                                        "k-ary:1025",
                                        "k-ary:4x",
                                        "k-ary4",
                                        "k-ary:99999999999999999999",
                                        "pair ",
                                        "kar",
                                        "k-ary:4:4"};
    struct spread s = {.shape = SPREAD_FLAT, .arity = 77};
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK(!spread_parse(wrong[i], &s));
    CHECK(s.shape == SPREAD_FLAT && s.arity == 77);
}

int main(void) {
    TEST(test_small);
    TEST(test_large);
    TEST(test_nobody);
    TEST(test_trees_as_drawn);
    TEST(test_crossings);
    TEST(test_grouped_depth);
    TEST(test_groups_of_all_sizes);
    TEST(test_many_switches);
    TEST(test_arrangement);
    TEST(test_validity);
    TEST(test_choice_of_large_files);
    TEST(test_choice_of_small_files);
    TEST(test_choice_of_pieces);
    TEST(test_slots);
    TEST(test_choice_for_one);
    TEST(test_choice_on_one_host);
    TEST(test_more_bytes_take_longer);
    TEST(test_slow_processors);
    TEST(test_no_overflow);
    TEST(test_names);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Bulk transfers: XFER-AND-SIGNAL of blocks that need many chunks.
 *
 * Whatever happens on the way, a node of the set sees the old bytes or all of the new ones, and the
 * new ones together with the signal. */
#include "cluster.h"

enum { NODES = 17, CHUNK = 64, HEAP = 2048 };

/* What every node's heap is compared with after each of its steps. */
static struct {
    const struct call *x;
    uint32_t violations;
    uint64_t signals; /* a node of the set has heard so many before this transfer */
    uint8_t old[HEAP], new[HEAP];
} watch;

static void look(struct cluster *c, uint32_t node) {
    const struct call *x = watch.x;
    if (x == NULL || !world_up(c->w, node))
        return;
    const uint8_t *at = world_heap(c->w, node) + x->request.heap_offset;
    size_t len = x->request.buffer_bytes;
    bool old = memcmp(at, watch.old, len) == 0;
    bool new = memcmp(at, watch.new, len) == 0;
    bool signalled = event_of(c, node, DATA) > watch.signals;
    bool expected = signalled && nodeset_has(&x->set, node) ? new : old;
    watch.violations += !expected;
}

static struct cluster *bulk_cluster(enum shape shape, uint32_t arity, uint32_t transfers) {
    struct cluster *c = cluster_new(NODES, shape, arity);
    c->config.prim.limits.transfers = transfers;
    c->config.prim.limits.heap_bytes = HEAP;
    c->config.prim.limits.chunk_bytes = CHUNK;
    c->look = look;
    memset(&watch, 0, sizeof watch);
    CHECK(cluster_power(c, NODES));
    return c;
}

/* Asks for a transfer to nodes that all have heard `signals` and hold the bytes of watch.old. */
static struct call *watched_bulk(struct cluster *c, uint32_t from, const char *set, uint32_t offset,
                                 uint64_t bytes, uint8_t mark, uint64_t signals) {
    struct call *x = cluster_bulk(c, from, set, offset, bytes, mark);
    x->request.local_event = LOCAL;
    memcpy(watch.new, world_buffer(c->w, from, x->request.buffer, bytes), bytes);
    watch.signals = signals;
    watch.x = x;
    return x;
}

/* Exactly the nodes of the set have it. */
static void check_landed(const struct cluster *c, const struct call *x) {
    size_t len = x->request.buffer_bytes;
    for (uint32_t n = 0; n < c->universe; n++) {
        const uint8_t *at = world_heap(c->w, n) + x->request.heap_offset;
        bool has = memcmp(at, watch.new, len) == 0;
        if (!CHECK_EQ(has, nodeset_has(&x->set, n)))
            printf("#   node %u, %zu bytes from %u\n", n, len, x->node);
    }
    CHECK_EQ(watch.violations, 0);
}

static void check_nowhere(const struct cluster *c) {
    CHECK_EQ(watch.violations, 0);
    CHECK_EQ(COUNT_NODES(c, world_up(c->w, n) && event_of(c, n, DATA) > 0), 0);
    CHECK_EQ(COUNT_NODES(c, world_up(c->w, n) && !heap_empty(c, n)), 0);
}

static const struct {
    enum shape shape;
    uint32_t arity;
} shapes[] = {
    {SHAPE_KARY, 1},     {SHAPE_KARY, 2},  {SHAPE_KARY, 8}, {SHAPE_KARY, 16},
    {SHAPE_BINOMIAL, 0}, {SHAPE_CHAIN, 0}, {SHAPE_FLAT, 0},
};

/* One after the other, each over the bytes of the one before. */
static void test_bulk_of_any_size_in_every_shape(void) {
    static const uint64_t sizes[] = {1, CHUNK - 1, CHUNK, CHUNK + 1, 4 * CHUNK, 1000, HEAP - 8};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct cluster *c = bulk_cluster(shapes[i].shape, shapes[i].arity, 1);
        for (uint32_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            uint32_t from = (5 * k + 17) % c->universe;
            struct call *x = watched_bulk(c, from, NULL, 8, sizes[k], (uint8_t)(1 + 20 * k), k);
            if (!CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE))
                printf("#   %s %u\n", shape_name(shapes[i].shape), shapes[i].arity);
            CHECK(x->result.order > 0);
            CHECK_EQ(event_of(c, from, LOCAL) > 0, true);
            check_landed(c, x);
            memcpy(watch.old, watch.new, HEAP);
        }
        CHECK_EQ(COUNT_NODES(c, event_of(c, n, DATA) == 7), c->universe);
        cluster_free(c);
    }
}

static void test_bulk_to_some_nodes(void) {
    static const struct {
        uint32_t from;
        const char *set;
    } cases[] = {{17, "n[0-16]"},  {17, "n16"},     {17, "n17"},        {12, "n[0-11,13-17]"},
                 {12, "n[12,17]"}, {0, "n[1-8]"},   {0, "n[9-16]"},     {3, "n[2,4,6,8,10,12]"},
                 {5, "n[5-6]"},    {16, "n[0,17]"}, {1, "n[3,7,11,15]"}};
    for (size_t i = 0; i < 3 * (sizeof cases / sizeof *cases); i++) {
        struct cluster *c = bulk_cluster(i % 2 ? SHAPE_KARY : SHAPE_BINOMIAL, 3, 1);
        uint32_t from = cases[i / 3].from;
        struct call *x = watched_bulk(c, from, cases[i / 3].set, 24, 100 + 300 * (i % 3), 7, 0);
        CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
        check_landed(c, x);
        CHECK_EQ(COUNT_NODES(c, event_of(c, n, DATA) == nodeset_has(&x->set, n)), c->universe);
        CHECK_EQ(event_of(c, from, LOCAL), 1);
        cluster_free(c);
    }
}

/* Two at once to the same place: the one with the higher order is the last, everywhere. */
static void test_bulk_race(void) {
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct cluster *c = cluster_new(NODES, SHAPE_KARY, 2);
        c->config.seed = seed;
        c->config.link.jitter_ns = 30 * NS_PER_US;
        CHECK(cluster_power(c, NODES));
        struct call *a = cluster_bulk(c, 3, NULL, 0, 700, 1);
        struct call *b = cluster_bulk(c, 14, NULL, 0, 700, 101);
        CHECK_EQ(cluster_wait(c, a), OUTCOME_DONE);
        CHECK_EQ(cluster_wait(c, b), OUTCOME_DONE);
        const struct call *last = a->result.order > b->result.order ? a : b;
        const uint8_t *block = world_buffer(c->w, last->node, last->request.buffer, 700);
        CHECK_EQ(COUNT_NODES(c, memcmp(world_heap(c->w, n), block, 700) == 0), c->universe);
        CHECK_EQ(COUNT_NODES(c, event_of(c, n, DATA) == 2), c->universe);
        cluster_free(c);
    }
}

/* Ordered operations do not wait for the bytes of a transfer. */
static void test_bulk_delays_nobody(void) {
    struct cluster *c = cluster_new(NODES, SHAPE_KARY, 2);
    c->config.link.bytes_per_s = 1000000; /* a kilobyte takes a millisecond */
    c->config.prim.limits.heap_bytes = 16384;
    CHECK(cluster_power(c, NODES));
    struct call *bulk = cluster_bulk(c, c->root, NULL, 0, 16000, 1);
    CHECK(WITHIN(c, P, bulk->asked && status_of(c, 5).phase == PHASE_STREAMING));
    struct call *x = cluster_ask(c, c->root, NULL, xfer(16100, "ahead", OTHER));
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK_EQ(bulk->answers, 0);
    CHECK(x->answered_at < x->asked_at + P);
    CHECK_EQ(cluster_wait(c, bulk), OUTCOME_DONE);
    CHECK(bulk->result.order > x->result.order);
    cluster_free(c);
}

/* ---- faults while the bytes are under way ---- */

static struct call *start_streaming(struct cluster *c, uint32_t from, const char *set) {
    struct call *x = watched_bulk(c, from, set, 16, 2000, 3, 0);
    x->request.timeout_ns = 5 * P;
    CHECK(WITHIN(c, P, status_of(c, 4).phase == PHASE_STREAMING));
    CHECK_EQ(x->answers, 0);
    return x;
}

/* There is room for one transfer only: the one that failed has let go of it. */
static void check_next_one_succeeds(struct cluster *c, const char *set) {
    struct call *x = watched_bulk(c, 15, set, 16, 2000, 90, 0);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK_EQ(watch.violations, 0);
}

static void test_bulk_with_a_sink_that_dies(void) {
    for (uint32_t when = 0; when < 6; when++) {
        struct cluster *c = bulk_cluster(SHAPE_KARY, 2, 1);
        struct call *x = start_streaming(c, c->root, NULL);
        cluster_run(c, when * 40 * NS_PER_US);
        world_crash(c->w, 6);
        enum outcome outcome = cluster_wait(c, x);
        if (outcome == OUTCOME_DONE) { /* it was published before the crash was noticed */
            CHECK_EQ(COUNT_NODES(c, world_up(c->w, n) && event_of(c, n, DATA) == 1), NODES);
        } else {
            CHECK_EQ(outcome, OUTCOME_FAILED);
            CHECK(x->result.culprit == 6 || x->result.culprit == NO_NODE);
            cluster_run(c, 12 * P); /* by then everyone has forgotten it */
            check_nowhere(c);
            check_next_one_succeeds(c, "n[0-5,7-17]");
        }
        CHECK_EQ(watch.violations, 0);
        cluster_free(c);
    }
}

static void test_bulk_whose_source_dies(void) {
    for (uint32_t when = 0; when < 6; when++) {
        struct cluster *c = bulk_cluster(SHAPE_KARY, 2, 1);
        start_streaming(c, 14, "n[0-13,15-17]");
        cluster_run(c, when * 30 * NS_PER_US);
        world_crash(c->w, 14);
        cluster_run(c, 4 * P);
        uint32_t have = COUNT_NODES(c, n != 14 && event_of(c, n, DATA) == 1);
        CHECK(have == 0 || have == NODES);
        CHECK_EQ(watch.violations, 0);
        if (have == 0) {
            check_nowhere(c);
            check_next_one_succeeds(c, "n[0-13,15-17]");
        }
        cluster_free(c);
    }
}

static void test_bulk_survives_broken_links_and_a_pause(void) {
    for (uint32_t fault = 0; fault < 8; fault++) {
        struct cluster *c = bulk_cluster(SHAPE_KARY, 2, 1);
        struct call *x = start_streaming(c, 8, NULL);
        if (fault < 6)
            world_reset(c->w, 2 * fault + 1, fault);
        else
            world_pause(c->w, fault, world_now(c->w) + 2 * P);
        CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
        check_landed(c, x);
        CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_FENCED] > 0), 0);
        cluster_free(c);
    }
}

/* Between announcing and publishing: what the caller hears in the end is what has happened. */
static void test_bulk_over_a_new_root(void) {
    uint32_t done = 0, failed = 0;
    for (uint32_t when = 0; when < 24; when++) {
        struct cluster *c = bulk_cluster(SHAPE_KARY, 2, 1);
        struct call *x = watched_bulk(c, 12, "n[0-16]", 16, 2000, 3, 0);
        x->request.timeout_ns = 12 * P;
        CHECK(WITHIN(c, P, x->asked));
        cluster_run(c, when * 100 * NS_PER_US);
        world_crash(c->w, c->root);
        world_boot(c->w, c->root, true);
        cluster_wait(c, x);
        cluster_run(c, P);
        CHECK_EQ(x->answers, 1);
        CHECK(x->result.outcome == OUTCOME_DONE || x->result.outcome == OUTCOME_FAILED);
        done += x->result.outcome == OUTCOME_DONE;
        failed += x->result.outcome == OUTCOME_FAILED;
        CHECK_EQ(COUNT_NODES(c, event_of(c, n, DATA) == 1),
                 x->result.outcome == OUTCOME_DONE ? NODES : 0);
        CHECK_EQ(watch.violations, 0);
        CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_FENCED] > 0), 0);
        cluster_free(c);
    }
    CHECK(done > 0 && failed > 0);
}

static void test_bulk_fails_at_its_deadline(void) {
    struct cluster *c = bulk_cluster(SHAPE_KARY, 2, 1);
    struct call *x = watched_bulk(c, 3, "n[0-9,17]", 16, 2000, 3, 0);
    x->request.timeout_ns = P;
    world_pause(c->w, 8, world_now(c->w) + 3 * P);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
    CHECK(x->answered_at < x->asked_at + 4 * P);
    cluster_run(c, 12 * P);
    check_nowhere(c);
    check_next_one_succeeds(c, NULL);
    cluster_free(c);
}

int main(void) {
    TEST(test_bulk_of_any_size_in_every_shape);
    TEST(test_bulk_to_some_nodes);
    TEST(test_bulk_race);
    TEST(test_bulk_delays_nobody);
    TEST(test_bulk_with_a_sink_that_dies);
    TEST(test_bulk_whose_source_dies);
    TEST(test_bulk_survives_broken_links_and_a_pause);
    TEST(test_bulk_over_a_new_root);
    TEST(test_bulk_fails_at_its_deadline);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Remote queues on simulated clusters: nothing is lost, doubled, out of order or overwritten, however
 * slow a node is and whoever dies. The argument "measure" prints the figures of decision 12. */
#include "base/random.h"
#include "queue_stage.h"

enum { NODES = 17 };

static bool delivered(struct stage *s, uint64_t number) {
    return CHECK(WITHIN(s->c, 10000 * P, s->results[0].delivered >= number));
}

/* ---- nobody dies ---- */

static void test_every_way_of_waiting_and_every_pace(void) {
    for (enum queue_wait wait = 0; wait < QUEUE_WAITS; wait++) {
        struct stage *s = stage_start(NODES, 2000, wait);
        for (uint32_t n = 0; n < NODES; n++) {
            s->pace_ns[n] = n * 20 * NS_PER_US;
            s->batch = 3;
        }
        nodeset_add(&s->set, s->c->root); /* the master may consume, too */
        CHECK(stage_power(s));
        finished(s);
        check_all_but(s, NO_NODE);
        stage_free(s);
    }
}

static void test_rings_of_any_size(void) {
    static const uint32_t slots[] = {1, 2, 3, 5, 7, 16, 64};
    static const uint32_t bodies[] = {48, 100, 512};
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++) {
            struct stage *s = stage_start(5, 300, QUEUE_WAIT_MIXED);
            s->slots = slots[i];
            s->c->config.prim.limits.body_bytes = bodies[k];
            s->config.queue.backlog = 1 + (uint32_t)(i * 3);
            s->pace_ns[2] = 100 * NS_PER_US;
            s->batch = 1;
            CHECK(stage_power(s));
            finished(s);
            check_all_but(s, NO_NODE);
            if (s->slots > 2 && s->config.queue.backlog > 1 && bodies[k] == 512)
                CHECK(s->results[0].transfers < 300);
            stage_free(s);
        }
}

/* A message that comes alone is sent at once: nothing waits for company or for a timer. */
static void test_a_single_message_does_not_wait(void) {
    struct stage *s = stage_start(NODES, 20, QUEUE_WAIT_MIXED);
    s->config.push_ns = 2 * NS_PER_MS;
    CHECK(stage_power(s));
    CHECK(WITHIN(s->c, 10 * P, s->results[0].pushed >= 5));
    for (uint64_t number = 6; number <= 20; number++) {
        CHECK(WITHIN(s->c, 10 * P, s->results[0].pushed == number));
        uint64_t pushed_at = world_now(s->c->w);
        CHECK(WITHIN(s->c, 10 * P, s->results[0].delivered == number));
        CHECK(world_now(s->c->w) - pushed_at < 500 * NS_PER_US);
    }
    finished(s);
    CHECK_EQ(s->results[0].transfers, 20);
    check_all_but(s, NO_NODE);
    stage_free(s);
}

static void test_several_queues_at_once(void) {
    for (uint32_t compute = 0; compute < 2; compute++) {
        struct stage *s = stage_start(NODES, 1500, QUEUE_WAIT_MIXED);
        s->queues = STAGE_QUEUES; /* more requests than a node may have open: some are refused */
        s->c->config.prim.limits.outstanding = 6;
        s->c->config.prim.limits.standing = 2;
        s->pace_ns[4] = 60 * NS_PER_US;
        s->batch = 2;
        s->master = compute ? 7 : s->c->root;
        CHECK(stage_power(s));
        finished(s);
        check_all_but(s, NO_NODE);
        stage_free(s);
    }
}

static void test_a_master_on_a_compute_node(void) {
    for (enum queue_wait wait = 0; wait < QUEUE_WAITS; wait++) {
        struct stage *s = stage_start(NODES, 3000, wait);
        s->master = 7;
        s->pace_ns[11] = 40 * NS_PER_US;
        s->batch = 1;
        CHECK(stage_power(s));
        finished(s);
        check_all_but(s, NO_NODE);
        stage_free(s);
    }
}

/* ---- nodes die and come back ---- */

/* What a node has consumed by the time it died is the beginning, without gaps. */
static void check_beginning(struct stage *s, uint32_t node) {
    const struct queue_consumer_result *r = stage_result(s, node, 0);
    CHECK_EQ(r->begun, 1);
    CHECK_EQ(r->consumed, r->last);
    CHECK(r->last < s->config.messages);
}

static void check_killed(uint32_t node, uint32_t master, enum queue_wait wait) {
    struct stage *s = stage_start(NODES, 3000, wait);
    s->master = master;
    s->pace_ns[node] = 50 * NS_PER_US;
    s->batch = 2;
    CHECK(stage_power(s));
    delivered(s, 1000);
    world_crash(s->c->w, node);
    finished(s);
    check_all_but(s, node);
    check_beginning(s, node);
    CHECK_EQ(s->results[0].lost, 1);
    CHECK_EQ(s->results[0].lost_node, node);
    stage_free(s);
}

static void test_a_node_dies(void) {
    for (enum queue_wait wait = 0; wait < QUEUE_WAITS; wait++) {
        check_killed(0, NODES, wait); /* an inner node */
        check_killed(13, NODES, wait);
        check_killed(0, 7, wait); /* the master is not told, and finds out */
        check_killed(13, 7, wait);
    }
}

/* It begins with some message and then gets every one. */
static void check_rejoined(struct stage *s, uint32_t node, uint64_t lives) {
    const struct queue_consumer_result *r = stage_result(s, node, 0);
    CHECK_EQ(r->begun, lives);
    CHECK_EQ(r->last, s->config.messages);
    CHECK(r->first > 1000 && r->first < s->config.messages);
}

static void check_back(uint32_t node, uint32_t master, uint64_t away_ns, enum queue_wait wait) {
    struct stage *s = stage_start(NODES, 6000, wait);
    s->master = master;
    s->pace_ns[node] = 30 * NS_PER_US;
    s->batch = 2;
    s->config.push_ns = 60 * NS_PER_US; /* some are left when it is back */
    CHECK(stage_power(s));
    delivered(s, 1000);
    world_crash(s->c->w, node);
    cluster_run(s->c, away_ns);
    world_boot(s->c->w, node, false);
    finished(s);
    check_all_but(s, node);
    check_rejoined(s, node, 2);
    stage_free(s);
}

static void test_a_node_comes_back(void) {
    for (enum queue_wait wait = 0; wait < QUEUE_WAITS; wait++) {
        check_back(0, NODES, 5 * P, wait);
        check_back(13, NODES, 5 * P, wait);
        check_back(13, NODES, P / 10, wait);
        check_back(13, 7, P / 10, wait); /* too quick for the master to notice */
        check_back(0, 7, 2 * P, wait);
    }
}

/* The node sleeps, is given up, wakes up and is fenced: its state is void, though it did not die. */
static void test_a_node_is_fenced(void) {
    struct stage *s = stage_start(NODES, 6000, QUEUE_WAIT_MIXED);
    s->pace_ns[13] = 30 * NS_PER_US;
    s->config.push_ns = 60 * NS_PER_US;
    CHECK(stage_power(s));
    delivered(s, 1000);
    world_pause(s->c->w, 13, world_now(s->c->w) + 8 * P);
    finished(s);
    check_all_but(s, 13);
    check_rejoined(s, 13, 2);
    CHECK_EQ(s->results[0].lost, 1);
    CHECK_EQ(s->results[0].entered, NODES + 1);
    stage_free(s);
}

static void test_a_short_sleep_loses_nothing(void) {
    struct stage *s = stage_start(NODES, 3000, QUEUE_WAIT_MIXED);
    CHECK(stage_power(s));
    for (uint64_t number = 500; number < 2500; number += 500) {
        delivered(s, number);
        world_pause(s->c->w, (uint32_t)number % NODES, world_now(s->c->w) + P);
        world_reset(s->c->w, (uint32_t)number % 7, 1);
    }
    finished(s);
    check_all_but(s, NO_NODE);
    CHECK_EQ(s->results[0].lost, 0);
    stage_free(s);
}

static void test_a_queue_may_fail_with_its_node(void) {
    struct stage *s = stage_start(NODES, 3000, QUEUE_WAIT_MIXED);
    s->config.queue.loss = QUEUE_LOSS_FAIL;
    CHECK(stage_power(s));
    delivered(s, 1000);
    world_crash(s->c->w, 3);
    CHECK(WITHIN(s->c, 100 * P, s->results[0].failed));
    CHECK_EQ(s->results[0].lost_node, 3);
    uint64_t end = s->results[0].delivered;
    cluster_run(s->c, 10 * P);
    CHECK_EQ(s->results[0].delivered, end);
    CHECK(s->results[0].refused > 0);
    stage_sound(s);
    for (uint32_t n = 0; n < NODES; n++)
        CHECK(n == 3 || stage_result(s, n, 0)->last >= end);
    stage_free(s);
}

/* Nobody is left: messages wait until somebody is back. */
static void test_everybody_dies(void) {
    struct stage *s = stage_start(4, 3000, QUEUE_WAIT_MIXED);
    CHECK(stage_power(s));
    delivered(s, 1000);
    for (uint32_t n = 0; n < 4; n++)
        world_crash(s->c->w, n);
    cluster_run(s->c, 10 * P);
    CHECK_EQ(s->results[0].lost, 4);
    CHECK(s->results[0].delivered < 1500);
    for (uint32_t n = 0; n < 4; n++)
        world_boot(s->c->w, n, false);
    finished(s);
    stage_sound(s);
    for (uint32_t n = 0; n < 4; n++)
        CHECK_EQ(stage_result(s, n, 0)->last, 3000);
    stage_free(s);
}

/* ---- the root, or the master, dies ---- */

static void replace_root(struct stage *s) {
    world_crash(s->c->w, s->c->root);
    cluster_run(s->c, P / 100);
    world_boot(s->c->w, s->c->root, true);
}

/* The master on a compute node outlives the root: nothing is lost or doubled anywhere. */
static void check_root_killed(enum queue_wait wait, uint64_t after) {
    struct stage *s = stage_start(NODES, 2000, wait);
    s->master = 7;
    s->pace_ns[11] = 40 * NS_PER_US;
    s->batch = 3;
    CHECK(stage_power(s));
    delivered(s, 700);
    cluster_run(s->c, after);
    replace_root(s);
    delivered(s, 1400);
    replace_root(s);
    finished(s);
    check_all_but(s, NO_NODE);
    stage_free(s);
}

static void test_the_root_dies_and_the_master_does_not(void) {
    for (enum queue_wait wait = 0; wait < QUEUE_WAITS; wait++)
        for (uint64_t after = 0; after < 400 * NS_PER_US; after += 57 * NS_PER_US)
            check_root_killed(wait, after);
}

/* The master dies with the root. What it knew to be delivered is consumed all the same, also by a
 * slow node; then comes what the next master has to say. */
static void check_master_killed(enum queue_wait wait, uint64_t after) {
    struct stage *s = stage_start(NODES, 1500, wait);
    s->pace_ns[11] = 2 * NS_PER_MS;
    s->batch = 1;
    CHECK(stage_power(s));
    delivered(s, 60);
    cluster_run(s->c, after);
    uint64_t known = s->results[0].delivered;
    CHECK(stage_result(s, 11, 0)->last < known);
    s->pace_ns[11] = 0;
    replace_root(s);
    CHECK_EQ(s->lives, 2);
    finished(s);
    stage_sound(s);
    for (uint32_t n = 0; n < NODES; n++) {
        const struct queue_consumer_result *r = stage_result(s, n, 0);
        CHECK_EQ(r->begun, 2);
        CHECK(r->lives[1] >= known);
        CHECK_EQ(r->lives[1], stage_result(s, 0, 0)->lives[1]);
        CHECK_EQ(r->lives[1] + r->lives[2], r->consumed);
        CHECK_EQ(r->lives[2], 1500);
    }
    stage_free(s);
}

static void test_the_master_dies_with_the_root(void) {
    for (enum queue_wait wait = 0; wait < QUEUE_WAITS; wait++)
        for (uint64_t after = 0; after < 400 * NS_PER_US; after += 93 * NS_PER_US)
            check_master_killed(wait, after);
}

/* The master's node is given up and fenced: what became of its transfers it never hears. It goes on
 * when it is back; the others see no difference. Its own consumer begins anew. */
static void check_master_fenced(enum queue_wait wait, uint64_t after) {
    struct stage *s = stage_start(NODES, 2000, wait);
    s->master = 7;
    s->pace_ns[11] = 40 * NS_PER_US;
    s->batch = 3;
    CHECK(stage_power(s));
    delivered(s, 700);
    cluster_run(s->c, after);
    world_pause(s->c->w, 7, world_now(s->c->w) + 8 * P);
    finished(s);
    check_all_but(s, 7);
    CHECK_EQ(stage_result(s, 7, 0)->begun, 2);
    CHECK_EQ(stage_result(s, 7, 0)->last, 2000);
    CHECK(s->results[0].repeated > 0);
    stage_free(s);
}

static void test_the_masters_node_is_fenced(void) {
    for (enum queue_wait wait = 0; wait < QUEUE_WAITS; wait++)
        for (uint64_t after = 0; after < 400 * NS_PER_US; after += 57 * NS_PER_US)
            check_master_fenced(wait, after);
}

/* ---- anything, at any time ---- */

static void draw_fault(struct stage *s, struct random *r) {
    struct cluster *c = s->c;
    uint32_t node = (uint32_t)random_below(r, c->root);
    uint64_t kind = random_below(r, 10);
    uint64_t until = world_now(c->w) + random_below(r, 10 * P);
    if (kind < 3 && node != s->master && world_up(c->w, node)) {
        world_crash(c->w, node);
        cluster_run(c, random_below(r, random_chance(r, 1, 2) ? P / 4 : 5 * P));
        world_boot(c->w, node, false);
    } else if (kind < 5) {
        world_pause(c->w, node, until);
    } else if (kind < 7) {
        world_reset(c->w, node, (uint32_t)random_below(r, 4));
    } else if (kind < 8) {
        world_slow(c->w, node, 20, until);
    } else if (s->lives + 1 < STAGE_LIVES_MAX) {
        replace_root(s);
    }
}

static struct stage *draw_stage(struct random *r) {
    uint32_t nodes = (uint32_t)random_between(r, 3, 20);
    struct stage *s = stage_start(nodes, 2500, (enum queue_wait)random_below(r, QUEUE_WAITS));
    s->c->config.seed = random_u64(r);
    s->c->config.prim.tree.arity = (uint32_t)random_between(r, 2, 4);
    s->c->config.prim.limits.body_bytes = (uint32_t)random_between(r, 48, 600);
    s->c->config.prim.limits.window = (uint32_t)random_between(r, 2, 12);
    s->slots = (uint32_t)random_between(r, 1, 24);
    s->batch = (uint32_t)random_between(r, 0, 5);
    s->config.queue.flights = (uint32_t)random_between(r, 1, QUEUE_FLIGHTS_MAX);
    s->config.queue.backlog = (uint32_t)random_between(r, 1, 64);
    s->config.push_ns = random_chance(r, 1, 2) ? random_below(r, 100 * NS_PER_US) : 0;
    if (random_chance(r, 1, 2))
        s->master = (uint32_t)random_below(r, nodes);
    for (uint32_t i = 0; i < 3; i++)
        s->pace_ns[random_below(r, nodes)] = random_below(r, 300 * NS_PER_US);
    return s;
}

/* Who was never given up has everything, once; if the master lived on. */
static bool check_faithful(struct stage *s) {
    bool all = true;
    for (uint32_t n = 0; n < s->c->root && s->lives == 1; n++)
        if (world_boots(s->c->w, n) == 1 && s->nodes[n].fenced == 0)
            all = stage_all(s, n) && all;
    return all;
}

#ifdef STORM_SLOW
enum { SEEDS = 8 };
#else
enum { SEEDS = 60 };
#endif

static void check_seed(uint64_t seed) {
    struct random r;
    random_init(&r, seed);
    struct stage *s = draw_stage(&r);
    CHECK(stage_power(s));
    for (uint32_t i = 0; i < 6; i++) {
        cluster_run(s->c, random_below(&r, 2 * P));
        draw_fault(s, &r);
    }
    bool right = finished(s);
    cluster_run(s->c, 20 * P); /* who sleeps finds out that it was given up */
    right = stage_sound(s) && check_faithful(s) && right;
    if (!right)
        printf("#   seed %llu\n", (unsigned long long)seed);
    stage_free(s);
}

static void test_anything_at_any_time(void) {
    static const uint64_t once_wrong[] = {3636, 5828};
    for (size_t i = 0; i < sizeof once_wrong / sizeof *once_wrong; i++)
        check_seed(once_wrong[i]);
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        check_seed(seed);
}

/* ---- the figures of decision 12 ---- */

static void measure(uint32_t nodes, enum queue_wait wait, uint64_t pace_ns) {
    struct stage *s = stage_new(nodes);
    s->c->look = NULL;
    s->c->config.prim.limits.body_bytes = 1024; /* the whole ring */
    s->config.messages = nodes > 500 ? 400 : 4000;
    s->config.queue.wait = wait;
    s->pace_ns[nodes / 2] = pace_ns;
    s->batch = 1;
    CHECK(stage_power(s));
    CHECK(WITHIN(s->c, 2000 * P, s->results[0].started));
    uint64_t before = world_counts(s->c->w)->messages;
    CHECK(WITHIN(s->c, 200000 * P, stage_finished(s)));
    const struct queue_master_result *r = &s->results[0];
    uint64_t n = s->config.messages;
    printf("| %u | %llu | %s | %.1f | %.2f | %.3f | %.3f |\n", nodes,
           (unsigned long long)(pace_ns / 1000), queue_wait_name(wait),
           (double)(r->finished_ns - r->started_ns) / 1000 / (double)n,
           (double)(world_counts(s->c->w)->messages - before) / (double)n / nodes,
           (double)r->compares / (double)n, (double)r->standing / (double)n);
    fflush(stdout);
    stage_free(s);
}

static void measure_all(void) {
    static const uint32_t sizes[] = {8, 64, 256, 1024};
    static const uint64_t paces[] = {0, 50, 200, 2000};
    printf("| nodes | slow node, us a message | wait | us a message | messages a message and node "
           "| compares | standing |\n|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof paces / sizeof *paces; k++)
            for (enum queue_wait wait = 0; wait < QUEUE_WAITS; wait++)
                measure(sizes[i], wait, paces[k] * NS_PER_US);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "measure") == 0) {
        measure_all();
        return 0;
    }
    for (int i = 1; i < argc; i++)
        check_seed(strtoull(argv[i], NULL, 10));
    if (argc > 1)
        return tap_current_fail;
    TEST(test_every_way_of_waiting_and_every_pace);
    TEST(test_rings_of_any_size);
    TEST(test_a_single_message_does_not_wait);
    TEST(test_several_queues_at_once);
    TEST(test_a_master_on_a_compute_node);
    TEST(test_a_node_dies);
    TEST(test_a_node_comes_back);
    TEST(test_a_node_is_fenced);
    TEST(test_a_short_sleep_loses_nothing);
    TEST(test_a_queue_may_fail_with_its_node);
    TEST(test_everybody_dies);
    TEST(test_the_root_dies_and_the_master_does_not);
    TEST(test_the_master_dies_with_the_root);
    TEST(test_the_masters_node_is_fenced);
    TEST(test_anything_at_any_time);
    return tap_finish();
}

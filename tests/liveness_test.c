/* SPDX-License-Identifier: MIT */
/* Liveness and status in a simulated cluster: the root's daemon embeds both machines of rm/, every
 * node publishes who it is when it joins.
 *
 * Whoever stands still, and nobody else, is found silent within two and a half periods; whoever
 * crashes goes down; and as long as all is well nothing but the heartbeat is sent. */
#include <stdio.h>

#include "forge.h"
#include "rm/gather.h"
#include "rm/liveness.h"

enum { CHANNEL = 1, TIMER = 50, TRIES = 3 };
#define LIVENESS_TAG ((uint64_t)1 << 40)
#define GATHER_TAG   ((uint64_t)2 << 40)

/* What the daemon at the root has; one cluster at a time. */
struct manager {
    struct liveness *liveness;
    struct gather *gather;
    void *memory;
    bool start; /* a gather of `set` */
    struct nodeset set;
    uint64_t timeout_ns;
    enum gather_news ended;
    uint64_t ended_at;
    uint32_t waves;
    struct nodeset ever; /* silent, since the test has cleared it */
    struct nodeset gone; /* down */
    uint64_t storage[3][64];
};

static struct manager manager;

/* ---- the daemons ---- */

static void make_manager(const struct cluster *c) {
    struct liveness_config lc = {.limits = c->config.prim.limits,
                                 .period_ns = c->config.prim.period_ns,
                                 .tag = LIVENESS_TAG};
    struct gather_config gc = {.limits = c->config.prim.limits,
                               .channel = CHANNEL,
                               .tries = TRIES,
                               .timer = TIMER,
                               .tag = GATHER_TAG};
    struct arena a;
    size_t bytes = align_up(liveness_bytes(&lc), 64) + gather_bytes(&gc) + 64;
    free(manager.memory);
    manager = (struct manager){.memory = malloc(bytes)};
    arena_init(&a, manager.memory, bytes);
    manager.liveness = liveness_new(&lc, &a);
    manager.gather = gather_new(&gc, &a);
    nodeset_init(&manager.set, c->universe, manager.storage[0]);
    nodeset_init(&manager.ever, c->universe, manager.storage[1]);
    nodeset_init(&manager.gone, c->universe, manager.storage[2]);
}

static void words(const struct cluster *c, uint32_t node, char out[TEXT_MAX]) {
    snprintf(out, TEXT_MAX, "node %u, life %u", node, c->listeners[node].count[INPUT_JOINED]);
}

static bool manage(struct cluster *c, const struct input *in, struct effects *out) {
    if (in->kind == INPUT_BOOT)
        make_manager(c);
    manager.waves += in->kind == INPUT_WAVE;
    const struct liveness_news *news = liveness_input(manager.liveness, in, out);
    if (news != NULL) {
        nodeset_unite(&manager.ever, &news->silent);
        nodeset_unite(&manager.gone, &news->down);
    }
    enum gather_news ended = gather_input(manager.gather, in, out);
    if (ended != GATHER_NOTHING) {
        manager.ended = ended;
        manager.ended_at = in->now;
    }
    if (manager.start && in->kind == INPUT_TIMER) {
        manager.start = false;
        CHECK(gather_start(manager.gather, &manager.set, manager.timeout_ns, in->now, out));
    }
    return (in->kind == INPUT_TIMER && in->timer.id == TIMER) ||
           (in->kind == INPUT_GATHERED && in->gathered.tag >= LIVENESS_TAG) ||
           (in->kind == INPUT_COMPLETION && in->completion.tag >= LIVENESS_TAG);
}

static bool daemon_above(struct cluster *c, uint32_t node, const struct input *in,
                         struct effects *out) {
    if (in->kind == INPUT_JOINED) {
        char text[TEXT_MAX];
        words(c, node, text);
        gather_publish(CHANNEL, bytes_from_str(text), out);
    }
    return node == c->root && manage(c, in, out);
}

static struct cluster *start(uint32_t nodes, enum shape shape, uint32_t arity) {
    struct cluster *c = cluster_new(nodes, shape, arity);
    c->above = daemon_above;
    CHECK(cluster_power(c, nodes));
    cluster_run(c, 4 * P);
    nodeset_clear(&manager.ever);
    nodeset_clear(&manager.gone);
    return c;
}

static void end(struct cluster *c) {
    cluster_free(c);
    free(manager.memory);
    manager.memory = NULL;
}

static bool is(const struct nodeset *set, const char *text) {
    char now[400];
    nodeset_format(set, "n", now, sizeof now);
    if (strcmp(now, text) == 0)
        return true;
    printf("#   %s instead of %s\n", now, text);
    return false;
}

static enum liveness_state state(uint32_t node) {
    return liveness_node(manager.liveness, node).state;
}

static uint64_t gathers(const struct cluster *c) {
    return prim_of(c, c->root)->queries.next;
}

/* ---- liveness ---- */

static void test_all_is_well(void) {
    static const struct tree shapes[] = {
        {SHAPE_KARY, 2, 40}, {SHAPE_BINOMIAL, 2, 100}, {SHAPE_FLAT, 1, 20}, {SHAPE_CHAIN, 1, 8}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct cluster *c = start(shapes[i].nodes, shapes[i].shape, shapes[i].arity);
        uint64_t before = gathers(c);
        uint32_t waves = manager.waves;
        cluster_run(c, 20 * P);
        CHECK_EQ(gathers(c), before);
        CHECK(manager.waves - waves >= 19);
        CHECK_EQ(nodeset_count(liveness_up(manager.liveness)), c->universe);
        CHECK(nodeset_empty(&manager.ever));
        CHECK(liveness_wave_ns(manager.liveness) > 0 && liveness_wave_ns(manager.liveness) < P);
        end(c);
    }
}

/* A leaf stands still: it alone is silent, in time, and comes back. */
static void test_a_pause_is_noticed(void) {
    for (uint32_t i = 0; i < 8; i++) {
        struct cluster *c = start(40, i % 2 ? SHAPE_KARY : SHAPE_BINOMIAL, 2);
        cluster_run(c, i * P / 8); /* at any point of the period */
        uint64_t from = world_now(c->w), before = gathers(c);
        world_pause(c->w, 39, from + 3 * P);
        CHECK(WITHIN(c, 5 * P / 2, state(39) == LIVENESS_SILENT));
        CHECK_EQ(liveness_node(manager.liveness, 39).missed, 1);
        CHECK(is(liveness_silent(manager.liveness), "n39"));
        CHECK(WITHIN(c, 5 * P / 2, state(39) == LIVENESS_UP));
        CHECK(world_now(c->w) >= from + 3 * P);
        CHECK(is(&manager.ever, "n39"));
        CHECK(gathers(c) - before <= 6);
        cluster_run(c, 5 * P);
        before = gathers(c);
        cluster_run(c, 5 * P);
        CHECK_EQ(gathers(c), before); /* all is well again */
        CHECK(nodeset_empty(&manager.gone));
        CHECK_EQ(fenced_count(c), 0);
        end(c);
    }
}

static void test_the_count_of_missed_heartbeats(void) {
    struct cluster *c = start(20, SHAPE_FLAT, 1);
    world_pause(c->w, 7, world_now(c->w) + 30 * P);
    CHECK(WITHIN(c, 3 * P, state(7) == LIVENESS_SILENT));
    uint64_t since = liveness_node(manager.liveness, 7).since_ns;
    CHECK_EQ(since, world_now(c->w));
    cluster_run(c, P);
    CHECK_EQ(liveness_node(manager.liveness, 7).missed, 2);
    CHECK_EQ(liveness_node(manager.liveness, 7).since_ns, since);
    CHECK(WITHIN(c, 10 * P, state(7) == LIVENESS_DOWN)); /* given up */
    CHECK(is(&manager.gone, "n7"));
    CHECK(WITHIN(c, 60 * P, state(7) == LIVENESS_UP)); /* fenced, and a member again */
    CHECK(is(&manager.ever, "n7"));
    end(c);
}

/* Whoever is behind a node that stands still cannot be heard either. */
static void test_a_pause_hides_those_below(void) {
    struct cluster *c = start(7, SHAPE_KARY, 2);
    world_pause(c->w, 4, world_now(c->w) + 3 * P);
    CHECK(WITHIN(c, 5 * P / 2, state(4) == LIVENESS_SILENT));
    CHECK(is(liveness_silent(manager.liveness), "n[4-6]"));
    CHECK(WITHIN(c, 5 * P, nodeset_empty(liveness_silent(manager.liveness))));
    CHECK(is(&manager.ever, "n[4-6]"));
    end(c);
}

static void check_crash(uint32_t node, enum shape shape, const char *text) {
    struct cluster *c = start(40, shape, 2);
    world_crash(c->w, node);
    CHECK(WITHIN(c, 5 * P, state(node) == LIVENESS_DOWN));
    cluster_run(c, 5 * P);
    CHECK(is(&manager.gone, text));
    nodeset_remove(&manager.ever, node); /* it may have been silent before it was down */
    CHECK(is(&manager.ever, ""));
    CHECK_EQ(nodeset_count(liveness_up(manager.liveness)), 40);
    world_boot(c->w, node, false);
    CHECK(WITHIN(c, 20 * P, state(node) == LIVENESS_UP));
    uint64_t before = gathers(c);
    cluster_run(c, 5 * P);
    CHECK(gathers(c) <= before + 1);
    end(c);
}

static void test_a_crash(void) {
    check_crash(39, SHAPE_KARY, "n39");
    check_crash(0, SHAPE_KARY, "n0");
    check_crash(1, SHAPE_BINOMIAL, "n1");
    check_crash(20, SHAPE_FLAT, "n20");
}

static void test_broken_links_silence_nobody(void) {
    struct cluster *c = start(200, SHAPE_KARY, 4);
    for (uint32_t n = 0; n < 200; n += 7) {
        world_reset(c->w, n, n);
        cluster_run(c, P / 5);
    }
    cluster_run(c, 5 * P);
    CHECK(is(&manager.ever, "") && is(&manager.gone, ""));
    CHECK_EQ(nodeset_count(liveness_up(manager.liveness)), c->universe);
    end(c);
}

/* Of 200 nodes several stand still at once; leaves in this shape. */
static void test_many_pauses_at_once(void) {
    struct cluster *c = start(200, SHAPE_FLAT, 1);
    static const uint32_t paused[] = {0, 3, 77, 78, 79, 150, 199};
    for (size_t i = 0; i < sizeof paused / sizeof *paused; i++)
        world_pause(c->w, paused[i], world_now(c->w) + 3 * P);
    CHECK(WITHIN(c, 5 * P / 2, !nodeset_empty(liveness_silent(manager.liveness))));
    CHECK(is(liveness_silent(manager.liveness), "n[0,3,77-79,150,199]"));
    cluster_run(c, 5 * P);
    CHECK(nodeset_empty(liveness_silent(manager.liveness)) && nodeset_empty(&manager.gone));
    end(c);
}

static void test_a_new_root(void) {
    struct cluster *c = start(40, SHAPE_KARY, 2);
    world_crash(c->w, c->root);
    world_crash(c->w, 20);
    cluster_run(c, 2 * P);
    world_boot(c->w, c->root, true);
    CHECK(WITHIN(c, 40 * P, nodeset_count(liveness_up(manager.liveness)) == 40));
    CHECK_EQ(state(20), LIVENESS_DOWN);
    cluster_run(c, 5 * P);
    world_pause(c->w, 39, world_now(c->w) + 3 * P);
    CHECK(WITHIN(c, 5 * P / 2, state(39) == LIVENESS_SILENT));
    CHECK(is(&manager.ever, "n39"));
    end(c);
}

/* ---- status ---- */

static enum gather_news gather_all(struct cluster *c, const char *set, uint64_t timeout_ns) {
    struct nodeset s;
    set_of(c, &s, set);
    nodeset_copy(&manager.set, &s);
    free(s.storage);
    manager.ended = GATHER_NOTHING;
    manager.timeout_ns = timeout_ns;
    manager.start = true;
    CHECK(WITHIN(c, 60 * P, manager.ended != GATHER_NOTHING));
    return manager.ended;
}

static bool knows(const struct cluster *c, uint32_t node) {
    struct gather_record r;
    char text[TEXT_MAX];
    words(c, node, text);
    return gather_get(manager.gather, node, &r) && bytes_equal(r.bytes, bytes_from_str(text));
}

static void test_status_of_all(void) {
    struct cluster *c = start(100, SHAPE_KARY, 4);
    uint64_t from = world_now(c->w);
    CHECK_EQ(gather_all(c, NULL, 9 * P), GATHER_COMPLETE);
    CHECK(manager.ended_at - from < P);
    CHECK_EQ(COUNT_NODES(c, knows(c, n)), c->universe);
    end(c);
}

/* One stands still for longer than the first try lasts: the second has it. */
static void test_status_of_one_that_is_late(void) {
    struct cluster *c = start(40, SHAPE_KARY, 2);
    uint64_t from = world_now(c->w);
    world_pause(c->w, 39, from + 5 * P / 4);
    CHECK_EQ(gather_all(c, NULL, 3 * P), GATHER_COMPLETE);
    CHECK(manager.ended_at - from > P && manager.ended_at - from < 2 * P);
    CHECK_EQ(COUNT_NODES(c, knows(c, n)), c->universe);
    end(c);
}

/* One is off: the others are known, it is missing; when it is back it has a new record. */
static void test_status_without_one(void) {
    struct cluster *c = start(40, SHAPE_BINOMIAL, 2);
    CHECK_EQ(gather_all(c, NULL, 9 * P), GATHER_COMPLETE);
    world_crash(c->w, 20);
    CHECK_EQ(gather_all(c, NULL, 9 * P), GATHER_ENDED);
    CHECK(is(gather_missing(manager.gather), "n20"));
    CHECK_EQ(COUNT_NODES(c, knows(c, n)), c->universe - 1);
    CHECK(!knows(c, 20)); /* what it said in its former life is forgotten */
    world_boot(c->w, 20, false);
    CHECK_EQ(gather_all(c, NULL, 60 * P), GATHER_COMPLETE); /* it joins in time for a later try */
    CHECK(knows(c, 20));
    CHECK_EQ(c->listeners[20].count[INPUT_JOINED], 2);
    end(c);
}

int main(void) {
    TEST(test_all_is_well);
    TEST(test_a_pause_is_noticed);
    TEST(test_the_count_of_missed_heartbeats);
    TEST(test_a_pause_hides_those_below);
    TEST(test_a_crash);
    TEST(test_broken_links_silence_nobody);
    TEST(test_many_pauses_at_once);
    TEST(test_a_new_root);
    TEST(test_status_of_all);
    TEST(test_status_of_one_that_is_late);
    TEST(test_status_without_one);
    return tap_finish();
}

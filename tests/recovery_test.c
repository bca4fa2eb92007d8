/* SPDX-License-Identifier: MIT */
/* What roots that follow each other quickly must not get wrong: an outcome once settled stays, and
 * nobody follows an epoch that its disk does not know. Each of these went wrong once.
 *
 * All nodes hang directly below the root. */
#include "forge.h"

enum { NODES = 4, ROOT = NODES };

static void replace_root(struct cluster *c) {
    world_crash(c->w, ROOT);
    cluster_run(c, P / 100);
    world_boot(c->w, ROOT, true);
}

static enum root_stage stage(const struct cluster *c) {
    return prim_of(c, ROOT)->view->stage;
}

/* Node 1 has carried a transfer out when the root dies, and sleeps while the second root, which
 * hears only of nodes that have not, drops it. It wakes up under the third one: its report of a
 * commit is older than the others' of an abort. Any commit that was reported used to win, so those
 * who had not yet heard the second root carried out what the others had dropped. */
static void test_what_a_later_root_has_dropped_stays_dropped(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 4);
    struct call *x = cluster_ask(c, 0, "n[0-2]", xfer(0, "hello", DATA));
    CHECK(WITHIN(c, P, deciding(c)));
    deafen(c, 0, ROOT, ROLE_PARENT, P / 4);
    deafen(c, 2, ROOT, ROLE_PARENT, P / 4);
    cluster_run(c, 50 * NS_PER_US);
    CHECK(heap_holds(c, 1, 0, "hello"));
    CHECK(heap_empty(c, 0) && heap_empty(c, 2));
    world_pause(c->w, 1, world_now(c->w) + 5 * P);
    replace_root(c);
    CHECK(WITHIN(c, 6 * P, stage(c) != STAGE_COLLECTING));
    deafen(c, 2, ROOT, ROLE_PARENT, P / 4);
    cluster_run(c, 60 * NS_PER_US);
    CHECK_EQ(prim_of(c, 0)->member.epoch, 2);
    CHECK_EQ(prim_of(c, 2)->member.epoch, 1);
    CHECK(world_paused(c->w, 1));
    world_pause(c->w, 3, world_now(c->w) + 2 * P); /* the third root waits for it: 1 can report */
    replace_root(c);
    CHECK(WITHIN(c, 4 * P, !world_paused(c->w, 1)));
    CHECK_EQ(stage(c), STAGE_COLLECTING);
    CHECK(WITHIN(c, 30 * P, c->up_count == c->universe));
    CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
    CHECK_EQ(COUNT_NODES(c, heap_empty(c, n)), c->universe);
    CHECK_EQ(event_of(c, 0, DATA) + event_of(c, 2, DATA), 0);
    CHECK_EQ(c->listeners[1].count[INPUT_FENCED], 1);
    CHECK_EQ(fenced_count(c), 1);
    cluster_free(c);
}

/* A transfer is done, but the root dies before its initiator hears so, and so does the next root,
 * under which a new node has joined. That node's place in the order, far above the transfer's, used
 * to be taken for the end of a window in which the transfer was not any more: the initiator was told
 * that it had failed. */
static void check_kept_result(bool joiner) {
    struct cluster *c = cluster_new(NODES, SHAPE_KARY, 4);
    CHECK(cluster_power(c, 3));
    struct call *x = cluster_ask(c, 0, "n[1-2]", xfer(0, "hello", DATA));
    CHECK(WITHIN(c, P, deciding(c)));
    deafen(c, 0, ROOT, ROLE_PARENT, P / 4);
    cluster_run(c, 200 * NS_PER_US);
    CHECK(heap_holds(c, 1, 0, "hello") && heap_holds(c, 2, 0, "hello"));
    if (joiner)
        world_boot(c->w, 3, false);
    replace_root(c);
    CHECK(WITHIN(c, 10 * P, stage(c) == STAGE_OPEN));
    deafen(c, 0, ROOT, ROLE_PARENT, P / 2);
    CHECK(WITHIN(c, P / 4, prim_of(c, joiner ? 3 : 1)->member.epoch == 2));
    CHECK_EQ(x->answers, 0);
    replace_root(c);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK(WITHIN(c, 30 * P, c->up_count == (joiner ? c->universe : c->universe - 1)));
    CHECK_EQ(status_of(c, 0).epoch, 3);
    CHECK_EQ(COUNT_NODES(c, world_up(c->w, n) && event_of(c, n, DATA) == 1), 2);
    CHECK_EQ(fenced_count(c), 0);
    cluster_free(c);
}

static void test_a_result_survives_two_roots(void) {
    check_kept_result(false);
}

static void test_a_result_survives_a_root_that_admits_a_node(void) {
    check_kept_result(true);
}

/* A node that dies with the root and is back before it: nobody waits for a report of the life that it has lost. The new root used to, for the
 * whole time that survivors have. */
static void test_who_is_back_is_not_waited_for(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 4);
    world_crash(c->w, 2);
    world_crash(c->w, ROOT);
    cluster_run(c, P / 100);
    world_boot(c->w, 2, false);
    world_boot(c->w, ROOT, true);
    CHECK(WITHIN(c, 2 * P, stage(c) != STAGE_COLLECTING));
    CHECK(WITHIN(c, 30 * P, c->up_count == c->universe));
    CHECK_EQ(fenced_count(c), 0);
    cluster_free(c);
}

/* No node may act in an epoch that it could forget: it might follow an older one after a crash. */
static void look_at_disk(struct cluster *c, uint32_t node) {
    if (node == c->root || !world_up(c->w, node))
        return;
    c->seen[0]++;
    c->seen[1] += prim_of(c, node)->epoch > c->w->nodes[node].persisted >> 32;
}

/* The disk is slow and the epoch being written is replaced by a newer one. When the older was on the
 * disk the newer used to be taken for safe. */
static void test_an_epoch_is_followed_only_from_the_disk(void) {
    for (uint64_t after = P / 20; after < P; after += P / 20) {
        struct cluster *c = cluster_new(2, SHAPE_KARY, 2);
        c->config.link.durable_ns = 4 * P / 5;
        CHECK(cluster_power(c, 2));
        c->look = look_at_disk;
        world_crash(c->w, c->root);
        cluster_run(c, P / 100);
        world_boot(c->w, c->root, true);
        CHECK(WITHIN(c, 4 * P, prim_of(c, 0)->epoch_wanted == 2));
        cluster_run(c, after);
        world_crash(c->w, c->root);
        cluster_run(c, P / 100);
        world_boot(c->w, c->root, true);
        CHECK(WITHIN(c, 30 * P, c->up_count == c->universe));
        CHECK_EQ(status_of(c, 0).epoch, 3);
        CHECK(c->seen[0] > 0);
        if (!CHECK_EQ(c->seen[1], 0))
            printf("#   %llu us after the first\n", (unsigned long long)(after / NS_PER_US));
        cluster_free(c);
    }
}

int main(void) {
    TEST(test_what_a_later_root_has_dropped_stays_dropped);
    TEST(test_a_result_survives_two_roots);
    TEST(test_a_result_survives_a_root_that_admits_a_node);
    TEST(test_who_is_back_is_not_waited_for);
    TEST(test_an_epoch_is_followed_only_from_the_disk);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* What must not be left behind when something was lost, was late or ran out of time: full tables,
 * parents that nobody wants, operations that wait for ever. Each of these was left behind once. */
#include "forge.h"

static struct primitive within(struct primitive r, uint64_t timeout_ns) {
    r.timeout_ns = timeout_ns;
    return r;
}

static void check_all_well(struct cluster *c, uint32_t from) {
    struct call *x = cluster_ask(c, from, NULL, xfer(900, "all is well", OTHER));
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK_EQ(COUNT_NODES(c, heap_holds(c, n, 900, "all is well")), c->universe);
}

/* ---- tables ---- */

/* One request that stays open used to end all others after it: the root remembered the last 64
 * numbers of a node and counted from the lowest that was open. */
static void test_a_long_wait_ends_nobody_elses(void) {
    for (uint32_t from = 3; from <= 4; from++) { /* a leaf, the root */
        struct cluster *c = cluster_start(4, SHAPE_KARY, 2);
        struct primitive r = within(standing(0, RELATION_GE, 1), 100000 * P);
        struct call *open = cluster_ask(c, from, NULL, r);
        for (uint32_t i = 0; i < 150; i++) {
            struct call *x = cluster_ask(c, from, NULL, xfer(0, "hello", DATA));
            if (!CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE))
                break;
        }
        CHECK_EQ(COUNT_NODES(c, event_of(c, n, DATA) == 150), c->universe);
        CHECK_EQ(open->answers, 0);
        cluster_set_all(c, 0, 1);
        CHECK_EQ(cluster_wait(c, open), OUTCOME_DONE);
        cluster_free(c);
    }
}

static uint32_t ops_in_use(const struct cluster *c) {
    const struct order *o = prim_of(c, c->root)->order;
    uint32_t used = 0;
    for (uint32_t i = 0; i < o->op_count; i++)
        used += o->ops[i].state != OP_FREE;
    return used;
}

/* A standing compare runs out of time, its initiator hears so, but its thanks are lost. The root
 * never asked again, so the place of the compare was never free again. */
static void test_lost_thanks_keep_no_place(void) {
    struct cluster *c = cluster_new(8, SHAPE_KARY, 2);
    c->config.prim.limits.standing = 2;
    CHECK(cluster_power(c, 8));
    for (uint32_t i = 0; i < 5; i++) {
        struct primitive r = within(standing(0, RELATION_GE, 1), P / 2);
        struct call *x = cluster_ask(c, 2, "n3", r);
        CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
        CHECK_EQ(x->result.culprit, 3);
        deafen(c, c->root, 0, ROLE_CHILD, 100 * NS_PER_US);
        cluster_run(c, 20 * P);
        CHECK_EQ(prim_of(c, c->root)->order->armed_count, 0);
        CHECK_EQ(ops_in_use(c), 0);
    }
    struct call *x = cluster_ask(c, 5, "n6", standing(0, RELATION_GE, 0));
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK_EQ(fenced_count(c), 0);
    check_all_well(c, 2);
    cluster_free(c);
}

static uint32_t open_acks(const struct cluster *c, uint32_t node) {
    const struct prim *p = prim_of(c, node);
    uint32_t open = 0;
    for (uint32_t i = 0; i < p->ack_count; i++)
        open += p->acks[i].open;
    return open;
}

static uint64_t messages_of_one_transfer(struct cluster *c) {
    struct call *x = cluster_ask(c, c->root, NULL, xfer(0, "hello", DATA));
    CHECK(WITHIN(c, P, x->asked));
    uint64_t before = world_counts(c->w)->messages;
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    return world_counts(c->w)->messages - before;
}

/* Inner nodes went on waiting for the answers to standing compares that had run out of time. When
 * their tables were full of them they combined no answers any more: every node's came to the root.
 */
static void test_compares_out_of_time_leave_no_one_waiting(void) {
    struct cluster *c = cluster_start(63, SHAPE_KARY, 2);
    uint64_t first = messages_of_one_transfer(c);
    for (uint32_t i = 0; i < 25; i++) {
        struct primitive r = within(standing(0, RELATION_GE, 1), P / 20);
        struct call *x = cluster_ask(c, c->root, NULL, r);
        CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
        cluster_run(c, P / 10);
        CHECK_EQ(COUNT_NODES(c, n < 63 && open_acks(c, n) > 0), 0);
    }
    CHECK(messages_of_one_transfer(c) < 3 * first / 2); /* a heartbeat may come between */
    cluster_free(c);
}

/* The end of a standing compare does not reach a node. The node kept it for ever; with its table
 * full of such, it heard of new ones and said nothing. */
static void test_a_compare_whose_end_was_missed_makes_room(void) {
    struct cluster *c = cluster_new(8, SHAPE_KARY, 2);
    c->config.prim.limits.standing = 2;
    CHECK(cluster_power(c, 8));
    for (uint32_t i = 0; i < 4; i++) {
        struct primitive r = within(standing(0, RELATION_GE, 1), P / 2);
        struct call *x = cluster_ask(c, c->root, "n3", r);
        CHECK(WITHIN(c, P, x->asked));
        world_run_until(c->w, x->asked_at + P / 2 - 10 * NS_PER_US);
        deafen(c, 3, status_of(c, 3).parent, ROLE_PARENT, 300 * NS_PER_US);
        CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
        cluster_run(c, 10 * P);
    }
    const struct armed *armed = prim_of(c, 3)->member.armed;
    CHECK(armed[0].used || armed[1].used); /* else nothing was lost, and nothing was tested */
    struct call *x = cluster_ask(c, c->root, "n3", standing(1, RELATION_GE, 0));
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK_EQ(fenced_count(c), 0);
    cluster_free(c);
}

/* ---- counters ---- */

/* Strobes and requests were numbered in 32 bits: after some years nobody would have heard them. */
static void test_numbers_beyond_32_bits(void) {
    struct cluster *c = cluster_start(4, SHAPE_KARY, 2);
    prim_of(c, c->root)->order->strobes.count = UINT32_MAX - 1;
    for (uint32_t i = 1; i <= 4; i++) {
        cluster_ask(c, 2, NULL, strobe(1, "newest"));
        cluster_run(c, P / 4);
        CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_STROBE] == i), c->universe);
    }
    for (uint32_t from = 3; from <= 4; from++) {
        struct prim *p = prim_of(c, from);
        p->requests.generation = ((uint64_t)1 << 32) / p->config.limits.outstanding - 6;
        for (uint32_t i = 0; i < 12; i++) {
            struct call *x = cluster_ask(c, from, NULL, xfer(0, "hello", DATA));
            CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
            CHECK_EQ(cluster_wait(c, cluster_bulk(c, from, NULL, 0, 300, 1)), OUTCOME_DONE);
        }
        CHECK(p->requests.generation * p->config.limits.outstanding > UINT32_MAX);
    }
    CHECK_EQ(COUNT_NODES(c, event_of(c, n, DATA) == 48), c->universe);
    cluster_free(c);
}

/* ---- parents ---- */

/* Node 2 was about to move back to its parent when the root changed. It kept the intention but not
 * the timer, and so stayed where it was for ever. */
static void test_a_move_is_not_forgotten_at_a_new_root(void) {
    struct cluster *c = cluster_start(3, SHAPE_CHAIN, 1);
    world_crash(c->w, 1);
    CHECK(WITHIN(c, 20 * P, status_of(c, 2).parent == 0));
    cluster_run(c, 2 * P);
    world_boot(c->w, 1, false);
    CHECK(WITHIN(c, 20 * P, prim_of(c, 2)->uplink.move));
    world_crash(c->w, c->root);
    world_boot(c->w, c->root, true);
    CHECK(WITHIN(c, 20 * P, status_of(c, 2).parent == 1 && status_of(c, 2).attached));
    CHECK(WITHIN(c, 20 * P, c->up_count == c->universe));
    CHECK_EQ(status_of(c, 2).epoch, 2);
    check_all_well(c, 2);
    CHECK_EQ(fenced_count(c), 0);
    cluster_free(c);
}

/* Once node 2 has found its other way, nobody has a reason to suspect it. */
static void look_for_suspicion(struct cluster *c, uint32_t node) {
    if (node != c->root || !world_up(c->w, node))
        return;
    bool attached = prim_of(c, 2)->uplink.state == UPLINK_ATTACHED;
    bool suspect = nodeset_has(&prim_of(c, node)->view->suspects, 2);
    c->seen[0] += attached;
    c->seen[1] += attached && suspect;
}

/* Lets node 1 stand still for a while when node 2 has just attached through it. */
static void check_other_way(struct cluster *c, uint64_t still) {
    c->look = look_for_suspicion;
    world_pause(c->w, 1, world_now(c->w) + still);
    cluster_run(c, 15 * P);
    CHECK(WITHIN(c, 15 * P, c->up_count == c->universe && all_attached(c)));
    bool well = CHECK(c->seen[0] > 0);
    well = CHECK_EQ(c->seen[1], 0) && well;
    well = CHECK_EQ(c->listeners[2].count[INPUT_FENCED], 0) && well;
    if (!well)
        printf("#   1 stood still for %llu us\n", (unsigned long long)(still / NS_PER_US));
    check_all_well(c, 2);
    cluster_free(c);
}

/* Node 1 stands still just when node 2 attaches through it. Node 2 goes by another way, for which it
 * had too little time once; then 1 wakes up and passes on what 2 had said before. The root used to
 * believe what came last, lost 2 on a way that led nowhere and gave it up. */
static void test_a_node_that_went_another_way_is_not_given_up(void) {
    for (uint64_t still = P / 20; still <= 3 * P / 2; still += P / 20) {
        struct cluster *c = cluster_start(3, SHAPE_CHAIN, 1);
        cluster_run(c, 2 * P);
        break_link(c, 2, 1, ROLE_PARENT);
        CHECK(WITHIN(c, P, prim_of(c, 2)->uplink.state == UPLINK_ATTACHING));
        check_other_way(c, still);
    }
}

/* The same while a new root collects its members. */
static void test_a_survivor_that_went_another_way_is_not_given_up(void) {
    for (uint64_t still = P / 20; still <= 3 * P / 2; still += P / 20) {
        struct cluster *c = cluster_start(3, SHAPE_CHAIN, 1);
        world_crash(c->w, c->root);
        cluster_run(c, P / 100);
        world_boot(c->w, c->root, true);
        CHECK(WITHIN(c, 10 * P, prim_of(c, 2)->epoch == 2));
        CHECK(WITHIN(c, P, prim_of(c, 2)->uplink.state == UPLINK_ATTACHING));
        check_other_way(c, still);
    }
}

/* ---- operations ---- */

/* Node 0 passes a "no" up while 1 has not voted yet, and the "no" is lost with the link. When the
 * root asked again it was not told again: 0 had answered, and the rest was swallowed. */
static void test_a_lost_no_is_said_again(void) {
    struct cluster *c = cluster_start(3, SHAPE_CHAIN, 1);
    cluster_set(c, 1, 0, 1);
    cluster_run(c, P);
    world_pause(c->w, 1, world_now(c->w) + 3 * P / 5);
    struct primitive r = then_write(compare(0, RELATION_GE, 1), 1, 7);
    struct call *x = cluster_ask(c, c->root, "n[0-1]", r);
    CHECK(WITHIN(c, P, x->asked));
    deafen(c, c->root, 0, ROLE_CHILD, P / 100);
    cluster_run(c, P / 100);
    CHECK_EQ(x->answers, 0);
    break_link(c, c->root, 0, ROLE_CHILD);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_FALSE);
    CHECK(x->answered_at - x->asked_at < P / 2); /* nobody waits for 1 */
    cluster_run(c, 10 * P);
    CHECK_EQ(fenced_count(c), 0);
    CHECK_EQ(COUNT_NODES(c, variable_of(c, n, 1) == 7), 0);
    check_all_well(c, 0);
    cluster_free(c);
}

enum { DUMB = 7 };

/* Whatever the node acknowledges, on its way to its parent it becomes an answer to something that
 * nobody asked. */
static void garble_acknowledgements(struct cluster *c, uint32_t node) {
    struct end *e = node == DUMB ? end_at(c, DUMB, status_of(c, DUMB).parent, ROLE_PARENT) : NULL;
    if (e == NULL)
        return;
    LIST_EACH (at, &end_peer(e)->flight) {
        struct frame *f = CONTAINER_OF(at, struct frame, flight);
        struct header h;
        header_decode(&h, f->header);
        if (h.type == MESSAGE_ACK)
            f->body->bytes[9] |= 0x80; /* the highest byte of the number */
    }
}

/* A node that lives, beats, and acknowledges nothing. What it had been asked was never over, so
 * after some operations nobody in the whole cluster could have another. An operation that fails for
 * it is over now; with the next view, which everyone must acknowledge, it is given up. */
static void test_a_node_that_acknowledges_nothing_stops_nobody(void) {
    struct cluster *c = cluster_start(8, SHAPE_KARY, 2);
    cluster_run(c, 2 * P);
    c->look = garble_acknowledgements;
    struct call *x = cluster_ask(c, c->root, NULL, within(xfer(0, "hello", DATA), 10 * P));
    CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
    CHECK_EQ(x->result.culprit, DUMB);
    CHECK_EQ(COUNT_NODES(c, !heap_empty(c, n)), 0);
    for (uint32_t i = 0; i < 30; i++) { /* more than the window has room for */
        struct call *y = cluster_ask(c, i % 7, "n[0-6]", xfer(0, "hello", DATA));
        CHECK_EQ(cluster_wait(c, y), OUTCOME_DONE);
        cluster_run(c, P);
    }
    CHECK_EQ(fenced_count(c), 0);
    world_crash(c->w, 3);
    world_boot(c->w, 3, false);
    CHECK(WITHIN(c, 60 * P, c->listeners[DUMB].count[INPUT_FENCED] > 0));
    c->look = NULL;
    CHECK(WITHIN(c, 60 * P, c->up_count == c->universe && all_attached(c)));
    check_all_well(c, DUMB);
    CHECK_EQ(fenced_count(c), 1);
    cluster_free(c);
}

/* A node stands still. An operation that names it fails at its deadline; from then on nobody waits for
 * it, however many operations follow. They used to: what it had not dropped could not be forgotten,
 * and the window was full until it was given up. */
static void test_a_paused_node_delays_nobody_after_the_deadline(void) {
    struct cluster *c = cluster_start(8, SHAPE_KARY, 2);
    cluster_run(c, 2 * P);
    world_pause(c->w, DUMB, world_now(c->w) + 30 * P);
    struct call *x = cluster_ask(c, c->root, NULL, within(xfer(0, "hello", DATA), P));
    CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
    CHECK_EQ(x->result.culprit, DUMB);
    for (uint32_t i = 0; i < 40; i++) {
        struct call *y = cluster_ask(c, i % 7, "n[0-6]", xfer(8, "others", DATA));
        CHECK_EQ(cluster_wait(c, y), OUTCOME_DONE);
        CHECK(y->answered_at - y->asked_at < P);
    }
    CHECK(status_of(c, c->root).view == status_of(c, 0).view);
    CHECK(WITHIN(c, 60 * P, c->listeners[DUMB].count[INPUT_FENCED] > 0));
    CHECK(WITHIN(c, 60 * P, c->up_count == c->universe && all_attached(c)));
    check_all_well(c, DUMB);
    cluster_free(c);
}

/* The same, but it comes back before it is given up: it has missed that the operation was dropped, and
 * finds out by what the others have forgotten. */
static void test_a_node_that_missed_the_end_finds_out(void) {
    struct cluster *c = cluster_start(8, SHAPE_KARY, 2);
    cluster_run(c, 2 * P);
    uint32_t parent = status_of(c, DUMB).parent;
    struct call *x = cluster_ask(c, c->root, NULL, within(xfer(0, "hello", DATA), P / 2));
    CHECK(WITHIN(c, 10 * P, prim_of(c, DUMB)->member.count > 0));
    deafen(c, DUMB, parent, ROLE_PARENT, P);
    deafen(c, parent, DUMB, ROLE_CHILD, P);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
    cluster_run(c, 2 * P);
    struct call *y = cluster_ask(c, 0, NULL, xfer(8, "later", DATA));
    CHECK_EQ(cluster_wait(c, y), OUTCOME_DONE);
    CHECK_EQ(COUNT_NODES(c, heap_holds(c, n, 8, "later")), c->universe);
    CHECK_EQ(COUNT_NODES(c, heap_holds(c, n, 0, "hello")), 0);
    cluster_free(c);
}

/* A node that hangs below the root finds its ancestors back and scouts. Its parent greets it once more
 * (as after a change of epoch), then is gone; it was the last candidate, so the node pauses before it
 * looks for another. The scout that came back then used to cancel the timer of that pause: the node
 * never looked for a parent again. (Found with seed 3636 of queue_test.) */
static void test_a_scout_does_not_end_the_search(void) {
    struct cluster *c = cluster_start(3, SHAPE_CHAIN, 1);
    world_crash(c->w, 0);
    world_crash(c->w, 1);
    CHECK(WITHIN(c, 20 * P, status_of(c, 2).parent == c->root && c->up_count == 2));
    world_boot(c->w, 0, false);
    world_boot(c->w, 1, false);
    CHECK(WITHIN(c, 20 * P, prim_of(c, 2)->uplink.scout_cookie != 0));
    forge_soon(c, c->root, 2, ROLE_PARENT, MESSAGE_EPOCH,
               &(union message){.epoch = {.root = c->root}});
    CHECK(WITHIN(c, P / 100, prim_of(c, 2)->uplink.state == UPLINK_ATTACHING));
    break_link(c, 2, c->root, ROLE_PARENT);
    CHECK(WITHIN(c, P / 100, prim_of(c, 2)->uplink.state == UPLINK_WAITING));
    CHECK(WITHIN(c, 30 * P, all_attached(c)));
    check_all_well(c, 2);
    cluster_free(c);
}

int main(void) {
    TEST(test_a_long_wait_ends_nobody_elses);
    TEST(test_lost_thanks_keep_no_place);
    TEST(test_compares_out_of_time_leave_no_one_waiting);
    TEST(test_a_compare_whose_end_was_missed_makes_room);
    TEST(test_numbers_beyond_32_bits);
    TEST(test_a_move_is_not_forgotten_at_a_new_root);
    TEST(test_a_node_that_went_another_way_is_not_given_up);
    TEST(test_a_survivor_that_went_another_way_is_not_given_up);
    TEST(test_a_lost_no_is_said_again);
    TEST(test_a_node_that_acknowledges_nothing_stops_nobody);
    TEST(test_a_paused_node_delays_nobody_after_the_deadline);
    TEST(test_a_node_that_missed_the_end_finds_out);
    TEST(test_a_scout_does_not_end_the_search);
    return tap_finish();
}

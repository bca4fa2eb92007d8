/* SPDX-License-Identifier: MIT */
/* What the primitives promise when nodes die, stand still, come back or join, and when the root is
 * replaced.
 *
 * 17 nodes in a binary tree. Below the root (17) are 0 and 9; below 0 are 1 and 5, below 1 are 2
 * and 4, below 9 are 10 and 14; the leaves are 3, 4, 7, 8, 12, 13, 15 and 16. */
#include "cluster.h"

enum { NODES = 17, ROOT = NODES };
enum { V, W };

/* Whoever has tried in vain to move to a better place takes its time before it tries again. */
#define SOON (80 * P)

static struct call *ask(struct cluster *c, uint32_t from, const char *set, const char *text) {
    return cluster_ask(c, from, set, xfer(32, text, DATA));
}

/* Done, and in the time it takes when all is well. */
static void check_prompt(struct cluster *c, struct call *x) {
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK(x->answered_at - x->asked_at < P / 4);
}

/* Done, though nodes may be moving to better places meanwhile. */
static void check_done(struct cluster *c, struct call *x) {
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK(x->answered_at - x->asked_at < 5 * P);
}

static void check_refused(struct cluster *c, struct call *x, uint32_t culprit) {
    CHECK_EQ(cluster_wait(c, x), OUTCOME_REFUSED);
    CHECK_EQ(x->result.culprit, culprit);
    CHECK_EQ(x->result.order, 0);
    CHECK(x->answered_at - x->asked_at < P / 4);
}

/* How many of those in the set that are up have the data. */
static uint32_t landed(const struct cluster *c, const struct call *x) {
    uint32_t have = 0;
    NODESET_EACH (n, &x->set)
        have += world_up(c->w, n) && heap_holds(c, n, 32, (const char *)x->body);
    return have;
}

static bool all_members(const struct cluster *c) {
    for (uint32_t n = 0; n < c->universe; n++)
        if (!status_of(c, n).member || !status_of(c, n).attached)
            return false;
    return true;
}

static uint32_t planned_parent(const struct cluster *c, uint32_t node) {
    uint32_t parent;
    return tree_ancestors(&c->config.prim.tree, node, &parent, 1) > 0 ? parent : c->root;
}

static bool as_planned(const struct cluster *c) {
    for (uint32_t n = 0; n < NODES; n++)
        if (status_of(c, n).parent != planned_parent(c, n))
            return false;
    return all_members(c);
}

static uint32_t fenced(const struct cluster *c) {
    return COUNT_NODES(c, c->listeners[n].count[INPUT_FENCED] > 0);
}

/* ---- nodes that die ---- */

static void test_crashed_node_fails_only_what_names_it(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct call *x = ask(c, ROOT, NULL, "in flight");
    CHECK(WITHIN(c, P, x->asked));
    world_crash(c->w, 7);
    cluster_run(c, 200 * NS_PER_US); /* its parent has noticed; it is not given up yet */
    struct call *other = ask(c, 15, "n[9-14]", "elsewhere");
    struct call *suspect = ask(c, ROOT, "n7", "suspect");
    CHECK(WITHIN(c, P, suspect->asked));
    CHECK_EQ(suspect->answered_at, suspect->asked_at);
    check_refused(c, suspect, 7);
    CHECK_EQ(x->answers, 0);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
    CHECK_EQ(x->result.culprit, 7);
    CHECK(x->answered_at < x->asked_at + 2 * P);
    CHECK_EQ(cluster_wait(c, other), OUTCOME_DONE);
    cluster_run(c, P);
    CHECK_EQ(COUNT_NODES(c, n != 7 && !heap_empty(c, n)), 6);
    check_refused(c, ask(c, 3, NULL, "refused"), 7);
    check_refused(c, ask(c, ROOT, "n7", "refused"), 7);
    check_refused(c, cluster_ask(c, 16, "n[7,9]", standing(V, RELATION_EQ, 0)), 7);
    check_refused(c, cluster_bulk(c, 16, "n[7,9]", 0, 300, 1), 7);
    check_prompt(c, ask(c, 8, "n[0-6,8-17]", "the others"));
    world_boot(c->w, 7, false);
    CHECK(WITHIN(c, 4 * P, c->up_count == c->universe));
    check_done(c, ask(c, 7, NULL, "all again"));
    CHECK_EQ(fenced(c), 0);
    cluster_free(c);
}

static void check_culprit(const struct call *x, uint32_t victim) {
    if (x->result.outcome == OUTCOME_DONE)
        CHECK_EQ(x->result.culprit, NO_NODE);
    else if (x->result.outcome == OUTCOME_FAILED)
        CHECK_EQ(x->result.culprit, victim);
    else /* a refusal that has to be repeated has lost its reason */
        CHECK(x->result.outcome == OUTCOME_REFUSED &&
              (x->result.culprit == victim || x->result.culprit == NO_NODE));
}

/* Whoever dies and whenever: the survivors have all of it or nothing, as the caller was told. */
static void test_death_at_any_moment_is_all_or_nothing(void) {
    static const uint32_t victims[] = {7, 0, 9, 3}; /* leaf, inner, inner elsewhere, initiator */
    uint32_t done = 0, failed = 0;
    for (uint32_t i = 0; i < 4 * 20; i++) {
        uint32_t victim = victims[i % 4];
        struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
        struct call *x = ask(c, 3, NULL, "all or nothing");
        struct call *y = cluster_ask(c, 3, NULL, then_write(compare(V, RELATION_EQ, 0), W, 6));
        CHECK(WITHIN(c, P, x->asked));
        cluster_run(c, i / 4 * 25 * NS_PER_US);
        world_crash(c->w, victim);
        cluster_run(c, 8 * P);
        uint32_t have = landed(c, x);
        uint32_t written = COUNT_NODES(c, world_up(c->w, n) && variable_of(c, n, W) == 6);
        CHECK(have == 0 || have == NODES);
        CHECK(written == 0 || written == NODES);
        CHECK(written == 0 || have == NODES); /* no later one without an earlier one */
        CHECK_EQ(fenced(c), 0);
        if (victim != 3) {
            CHECK_EQ(x->answers + y->answers, 2);
            CHECK_EQ(x->result.outcome == OUTCOME_DONE, have > 0);
            CHECK_EQ(y->result.outcome == OUTCOME_DONE, written > 0);
            check_culprit(x, victim);
            check_culprit(y, victim);
            done += have > 0;
            failed += have == 0;
        }
        cluster_free(c);
    }
    CHECK(done > 0 && failed > 0); /* the moments cover both sides of the decision */
}

/* ---- nodes that stand still ---- */

static void test_paused_node_is_given_up_fenced_and_rejoins(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    CHECK_EQ(cluster_wait(c, ask(c, 0, NULL, "before")), OUTCOME_DONE);
    uint64_t incarnation = status_of(c, 12).incarnation;
    world_pause(c->w, 12, world_now(c->w) + 20 * P);
    struct call *x = ask(c, 4, "n[12-13]", "waits");
    check_prompt(c, ask(c, 4, "n[0-8]", "outside"));
    CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
    CHECK_EQ(x->result.culprit, 12);
    CHECK(x->answered_at < x->asked_at + 8 * P);
    check_refused(c, ask(c, 4, NULL, "refused"), 12);
    cluster_set(c, ROOT, V, 123);
    struct primitive r = then_write(compare(W, RELATION_EQ, 0), W, 42);
    check_prompt(c, cluster_ask(c, 8, "n[0-11,13-17]", r));
    CHECK_EQ(c->listeners[12].count[INPUT_FENCED], 0);
    CHECK(WITHIN(c, 30 * P, c->listeners[12].count[INPUT_JOINED] == 2));
    CHECK_EQ(c->listeners[12].count[INPUT_FENCED], 1);
    CHECK(status_of(c, 12).incarnation > incarnation);
    CHECK(heap_empty(c, 12));
    CHECK_EQ(c->listeners[12].snapshot[V], 123);
    CHECK_EQ(c->listeners[12].snapshot[W], 42);
    CHECK_EQ(event_of(c, 12, DATA), 0);
    CHECK(WITHIN(c, P, c->up_count == c->universe));
    check_done(c, ask(c, 12, NULL, "all again"));
    CHECK_EQ(fenced(c), 1);
    cluster_free(c);
}

static void test_paused_node_delays_to_the_deadline_only(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    world_pause(c->w, 8, world_now(c->w) + 5 * P / 2);
    struct primitive r = xfer(32, "soon", DATA);
    r.timeout_ns = P;
    struct call *x = cluster_ask(c, ROOT, "n8", r);
    struct call *y = ask(c, ROOT, "n[8,15]", "later");
    CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
    CHECK_EQ(x->result.culprit, 8);
    CHECK(x->answered_at - x->asked_at >= P && x->answered_at - x->asked_at < P + P / 4);
    CHECK_EQ(cluster_wait(c, y), OUTCOME_DONE); /* it was not still for too long */
    CHECK_EQ(event_of(c, 8, DATA), 1);
    CHECK_EQ(fenced(c), 0);
    cluster_free(c);
}

/* Those below a node that stands still find another way, and what names them is not lost. */
static void test_paused_inner_node_is_bypassed(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    world_pause(c->w, 9, world_now(c->w) + 25 * P);
    struct call *below = ask(c, 12, "n[10-16]", "below");
    check_prompt(c, ask(c, 4, "n[0-8,17]", "outside"));
    CHECK_EQ(cluster_wait(c, below), OUTCOME_DONE);
    CHECK(below->answered_at < below->asked_at + 10 * P);
    CHECK(WITHIN(c, 4 * P, status_of(c, 10).parent == ROOT && status_of(c, 14).parent == ROOT));
    CHECK(WITHIN(c, 40 * P, c->listeners[9].count[INPUT_JOINED] == 2));
    CHECK(WITHIN(c, SOON, as_planned(c)));
    CHECK_EQ(fenced(c), 1);
    check_done(c, ask(c, 9, NULL, "all again"));
    cluster_free(c);
}

/* As nodes on one machine do when that stands still: nobody is the worse for it. */
static void test_all_stand_still_at_once(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    CHECK_EQ(cluster_wait(c, ask(c, 0, NULL, "before")), OUTCOME_DONE);
    for (uint32_t round = 0; round < 8; round++) {
        cluster_run(c, P + round * P / 8);
        for (uint32_t n = 0; n < c->universe; n++)
            world_pause(c->w, n, world_now(c->w) + 20 * P + (n * 7 + round) % 18 * P / 6);
        cluster_run(c, 28 * P);
        check_done(c, ask(c, 4, NULL, "all"));
    }
    CHECK_EQ(fenced(c), 0);
    for (uint32_t n = 0; n < c->universe; n++)
        CHECK_EQ(c->listeners[n].count[INPUT_JOINED], 1);
    CHECK(WITHIN(c, SOON, as_planned(c)));
    cluster_free(c);
}

/* Whoever was given up never learns what became of its requests, and they bind nobody. */
static void test_requests_of_the_fenced_are_lost(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct call *x[4];
    for (uint32_t i = 0; i < 4; i++) /* as many as there may be */
        x[i] = cluster_ask(c, 12, "n[0-8]", standing(V, RELATION_EQ, 1));
    cluster_run(c, P);
    world_pause(c->w, 12, world_now(c->w) + 20 * P);
    cluster_run(c, 10 * P);
    struct call *y[4];
    for (uint32_t i = 0; i < 4; i++)
        y[i] = cluster_ask(c, 4, "n[0-8]", standing(V, RELATION_EQ, 1));
    cluster_run(c, P);
    cluster_set_all(c, V, 1);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQ(cluster_wait(c, y[i]), OUTCOME_DONE);
        CHECK_EQ(x[i]->answers, 0);
    }
    for (uint32_t i = 0; i < 4; i++)
        CHECK_EQ(cluster_wait(c, x[i]), OUTCOME_LOST);
    CHECK(WITHIN(c, 4 * P, c->listeners[12].count[INPUT_JOINED] == 2));
    check_done(c, ask(c, 12, "n[0-17]", "a new life"));
    cluster_free(c);
}

/* Links break and frames come twice all the time: what is done is done once, the rest not at all.
 */
static void test_broken_links_and_duplicates(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    for (uint32_t n = 0; n < c->universe; n++)
        world_duplicate(c->w, n, world_now(c->w) + 20 * P);
    for (uint32_t i = 0; i < 100; i++) {
        cluster_ask(c, i * 5 % c->universe, NULL, xfer(8 * i, "once", DATA));
        cluster_run(c, P / 10);
        world_reset(c->w, i * 7 % c->universe, i);
    }
    uint32_t done = 0;
    for (uint32_t i = 0; i < c->call_count; i++) {
        bool once = cluster_wait(c, &c->calls[i]) == OUTCOME_DONE;
        done += once;
        uint32_t offset = c->calls[i].request.heap_offset;
        CHECK_EQ(COUNT_NODES(c, heap_holds(c, n, offset, "once")), once ? c->universe : 0);
    }
    CHECK(done >= 10);
    CHECK_EQ(COUNT_NODES(c, event_of(c, n, DATA) == done), c->universe);
    CHECK_EQ(fenced(c), 0);
    CHECK(world_counts(c->w)->refused[REFUSAL_DUPLICATE] > 0);
    cluster_run(c, 2 * P); /* the last break has been noticed */
    CHECK(WITHIN(c, 10 * P, all_members(c)));
    check_done(c, ask(c, 12, NULL, "all"));
    cluster_free(c);
}

/* ---- new parents ---- */

static void test_children_of_the_dead_move_up_and_back(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    CHECK(as_planned(c));
    uint64_t incarnations[NODES];
    for (uint32_t n = 0; n < NODES; n++)
        incarnations[n] = status_of(c, n).incarnation;
    for (uint32_t i = 0; i < 40; i++) {
        ask(c, i % 2 ? ROOT : 4, "n[1-8]", "stream");
        cluster_run(c, P / 8);
        if (i == 5)
            world_crash(c->w, 0);
    }
    for (uint32_t i = 0; i < c->call_count; i++)
        CHECK_EQ(cluster_wait(c, &c->calls[i]), OUTCOME_DONE);
    CHECK(WITHIN(c, 4 * P, status_of(c, 1).parent == ROOT && status_of(c, 5).parent == ROOT));
    CHECK_EQ(status_of(c, 2).parent, 1);
    world_boot(c->w, 0, false);
    CHECK(WITHIN(c, SOON, as_planned(c)));
    check_done(c, ask(c, 4, "n[1-8]", "stream"));
    for (uint32_t n = 1; n < NODES; n++) {
        CHECK_EQ(status_of(c, n).incarnation, incarnations[n]);
        CHECK_EQ(event_of(c, n, DATA), n <= 8 ? 41 : 0);
    }
    CHECK_EQ(fenced(c), 0);
    cluster_free(c);
}

/* Parent and grandparent at once. */
static void test_two_dead_generations(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct call *x = ask(c, 2, "n[2-8,15]", "over both");
    CHECK(WITHIN(c, P, x->asked));
    world_crash(c->w, 0);
    world_crash(c->w, 1);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK_EQ(landed(c, x), 8);
    CHECK(WITHIN(c, 4 * P, status_of(c, 2).parent == ROOT && status_of(c, 4).parent == ROOT));
    world_boot(c->w, 1, false);
    CHECK(WITHIN(c, SOON, status_of(c, 2).parent == 1 && status_of(c, 4).parent == 1));
    CHECK_EQ(status_of(c, 1).parent, ROOT);
    world_boot(c->w, 0, false);
    CHECK(WITHIN(c, SOON, as_planned(c)));
    check_done(c, ask(c, 0, NULL, "all again"));
    CHECK_EQ(fenced(c), 0);
    cluster_free(c);
}

/* ---- new roots ---- */

static void replace_root(struct cluster *c, uint64_t after) {
    world_crash(c->w, ROOT);
    cluster_run(c, after);
    world_boot(c->w, ROOT, true);
}

static void check_one_epoch(struct cluster *c, uint32_t epoch) {
    CHECK(WITHIN(c, 20 * P, c->up_count == c->universe && all_members(c)));
    CHECK_EQ(COUNT_NODES(c, status_of(c, n).epoch == epoch), c->universe);
    CHECK_EQ(COUNT_NODES(c, n < NODES && status_of(c, n).incarnation == (uint64_t)1 << 32), NODES);
    CHECK_EQ(fenced(c), 0);
}

static void test_new_root_finds_everything_as_it_was(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct call *x = ask(c, ROOT, NULL, "kept");
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    struct primitive r = then_write(compare(V, RELATION_EQ, 0), W, 42);
    CHECK_EQ(cluster_wait(c, cluster_ask(c, 5, NULL, r)), OUTCOME_DONE);
    CHECK_EQ(status_of(c, 3).epoch, 1);
    replace_root(c, P / 4);
    check_one_epoch(c, 2);
    CHECK_EQ(COUNT_NODES(c, variable_of(c, n, W) == 42), c->universe);
    CHECK_EQ(COUNT_NODES(c, n < NODES && heap_holds(c, n, 32, "kept")), NODES);
    CHECK_EQ(COUNT_NODES(c, event_of(c, n, DATA) == 1), NODES);
    struct call *y = ask(c, 16, NULL, "the new epoch");
    check_done(c, y);
    CHECK(y->result.order > x->result.order);
    CHECK_EQ(landed(c, y), c->universe);
    cluster_free(c);
}

/* One final outcome, and it is the truth. */
static void check_outcome(struct cluster *c, struct call *x, struct call *y, uint32_t *done) {
    cluster_wait(c, x);
    cluster_wait(c, y);
    cluster_run(c, P);
    CHECK_EQ(x->answers + y->answers, 2);
    CHECK(x->result.outcome == OUTCOME_DONE || x->result.outcome == OUTCOME_FAILED);
    CHECK(y->result.outcome == OUTCOME_DONE || y->result.outcome == OUTCOME_FAILED);
    CHECK_EQ(landed(c, x), x->result.outcome == OUTCOME_DONE ? NODES : 0);
    CHECK_EQ(COUNT_NODES(c, n < NODES && variable_of(c, n, W) == 6),
             y->result.outcome == OUTCOME_DONE ? NODES : 0);
    *done += x->result.outcome == OUTCOME_DONE;
}

static void test_root_dies_at_any_moment(void) {
    enum { MOMENTS = 24 };
    uint32_t done = 0;
    for (uint32_t i = 0; i < MOMENTS; i++) {
        struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
        struct call *x = ask(c, 12, "n[0-16]", "in flight");
        struct call *y =
            cluster_ask(c, 12, "n[0-16]", then_write(compare(V, RELATION_EQ, 0), W, 6));
        CHECK(WITHIN(c, P, x->asked));
        cluster_run(c, i * 25 * NS_PER_US);
        replace_root(c, i % 3 * P / 2);
        check_one_epoch(c, 2);
        check_outcome(c, x, y, &done);
        check_done(c, ask(c, 12, NULL, "afterwards"));
        cluster_free(c);
    }
    CHECK(done > 0 && done < MOMENTS);
}

/* The root decides, half of the tree hears so, then it dies: the other half must follow. */
static void test_root_dies_when_half_has_heard(void) {
    uint32_t halves = 0;
    for (uint32_t i = 0; i < 16; i++) {
        struct cluster *c = cluster_new(NODES, SHAPE_KARY, 2);
        c->config.seed = i / 2 + 1;
        CHECK(cluster_power(c, NODES));
        struct call *x = ask(c, ROOT, "n[0-16]", "decided");
        CHECK(WITHIN(c, P, x->asked && status_of(c, ROOT).phase == PHASE_DECIDING));
        cluster_run(c, 5 * NS_PER_US);
        world_reset(c->w, ROOT, i % 2); /* may or may not lose the decision */
        world_crash(c->w, ROOT);
        cluster_run(c, P / 4);
        uint32_t before = landed(c, x);
        world_boot(c->w, ROOT, true);
        check_one_epoch(c, 2);
        CHECK_EQ(landed(c, x), before > 0 ? NODES : 0);
        CHECK_EQ(COUNT_NODES(c, event_of(c, n, DATA) == 1), before > 0 ? NODES : 0);
        halves += before > 0 && before < NODES;
        cluster_free(c);
    }
    CHECK(halves > 0);
}

static void test_two_new_roots_in_quick_succession(void) {
    static const uint64_t lives[] = {0, P / 100, P / 20, P / 4, P / 2, P, 2 * P, 5 * P, 8 * P};
    uint32_t done = 0;
    for (size_t i = 0; i < 2 * (sizeof lives / sizeof *lives); i++) {
        struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
        struct call *x = ask(c, 12, "n[0-16]", "in flight");
        struct call *y =
            cluster_ask(c, 12, "n[0-16]", then_write(compare(V, RELATION_EQ, 0), W, 6));
        CHECK(WITHIN(c, P, x->asked));
        cluster_run(c, i % 2 ? 350 * NS_PER_US : 50 * NS_PER_US);
        replace_root(c, P / 8);
        cluster_run(c, lives[i / 2]);
        replace_root(c, P / 8);
        check_one_epoch(c, 3);
        check_outcome(c, x, y, &done);
        check_done(c, ask(c, 12, NULL, "afterwards"));
        cluster_free(c);
    }
}

/* A compare that is waiting goes on waiting; with a write it fails, as it may have been done. */
static void test_standing_compare_and_strobes_over_a_new_root(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct call *x = cluster_ask(c, 12, "n[0-16]", standing(V, RELATION_GE, 1));
    struct call *y = cluster_ask(c, 3, "n[0-8]", then_write(standing(V, RELATION_GE, 1), W, 9));
    cluster_ask(c, ROOT, NULL, strobe(1, "before"));
    cluster_run(c, P);
    replace_root(c, P / 4);
    check_one_epoch(c, 2);
    cluster_ask(c, ROOT, NULL, strobe(1, "after"));
    cluster_run(c, 3 * P);
    CHECK_EQ(x->answers, 0);
    CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_STROBE] == 2), c->universe);
    cluster_set_all(c, V, 1);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK(cluster_wait(c, y) == OUTCOME_DONE || y->result.outcome == OUTCOME_FAILED);
    CHECK_EQ(COUNT_NODES(c, variable_of(c, n, W) == 9), y->result.outcome == OUTCOME_DONE ? 9 : 0);
    cluster_free(c);
}

/* Without a root nobody guesses. */
static void test_without_a_root_the_outcome_is_unknown(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    world_crash(c->w, ROOT);
    struct primitive r = xfer(32, "unknown", DATA);
    r.timeout_ns = P;
    struct call *x = cluster_ask(c, 12, "n[0-16]", r);
    cluster_run(c, 12 * P);
    CHECK_EQ(x->unknowns, 1);
    CHECK_EQ(x->answers, 0);
    world_boot(c->w, ROOT, true);
    check_one_epoch(c, 2);
    CHECK(cluster_wait(c, x) == OUTCOME_DONE || x->result.outcome == OUTCOME_FAILED);
    CHECK_EQ(landed(c, x), x->result.outcome == OUTCOME_DONE ? NODES : 0);
    cluster_free(c);
}

/* Who cannot report to the new root in time is no survivor. */
static void test_new_root_goes_on_without_the_missing(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    CHECK_EQ(cluster_wait(c, ask(c, ROOT, NULL, "kept")), OUTCOME_DONE);
    world_pause(c->w, 16, world_now(c->w) + 20 * P);
    world_crash(c->w, 4);
    replace_root(c, P / 4);
    CHECK(WITHIN(c, 10 * P, c->up_count == c->universe - 2));
    check_refused(c, ask(c, 0, "n[3-4]", "refused"), 4);
    check_refused(c, ask(c, 0, "n[15-16]", "refused"), 16);
    check_prompt(c, ask(c, 0, "n[0-3,5-15,17]", "the others"));
    world_boot(c->w, 4, false);
    CHECK(WITHIN(c, 30 * P, c->up_count == c->universe));
    CHECK_EQ(c->listeners[16].count[INPUT_FENCED], 1);
    CHECK_EQ(fenced(c), 1);
    CHECK(heap_empty(c, 16) && heap_holds(c, 15, 32, "the others"));
    check_done(c, ask(c, 16, NULL, "all again"));
    cluster_free(c);
}

/* ---- joining ---- */

static void test_late_node_gets_the_roots_variables(void) {
    struct cluster *c = cluster_new(NODES, SHAPE_KARY, 2);
    CHECK(cluster_power(c, NODES - 1));
    check_refused(c, ask(c, 0, "n[0,16]", "refused"), 16);
    cluster_set(c, ROOT, V, 123);
    struct primitive r = then_write(compare(W, RELATION_EQ, 0), W, 99);
    struct call *x = cluster_ask(c, 5, "n[0-15,17]", r);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    world_boot(c->w, 16, false);
    CHECK(WITHIN(c, 4 * P, c->up_count == c->universe));
    CHECK_EQ(c->listeners[16].snapshot[V], 123);
    CHECK_EQ(c->listeners[16].snapshot[W], 99);
    const struct heard *joined = heard_from(c, 0, 16, INPUT_JOINED);
    CHECK(joined != NULL && joined->in.joined.order >= x->result.order);
    CHECK(joined != NULL && joined->in.joined.epoch == 1);
    /* Its copies are as good as anyone's. */
    check_prompt(c, cluster_ask(c, 16, "n[0-17]", compare(W, RELATION_EQ, 99)));
    cluster_free(c);
}

/* Nodes join in the middle of a stream to those who are there: nothing fails, nothing is lost. */
static void test_joining_disturbs_nobody(void) {
    struct cluster *c = cluster_new(NODES, SHAPE_KARY, 2);
    CHECK(cluster_power(c, 8));
    for (uint32_t i = 0; i < 60; i++) {
        struct primitive r = then_write(compare(V, RELATION_EQ, i), V, i + 1);
        cluster_ask(c, i % 8, "n[0-7,17]", r);
        cluster_run(c, P / 10);
        if (i >= 5 && i < 5 + NODES - 8)
            world_boot(c->w, i + 3, false);
    }
    for (uint32_t i = 0; i < c->call_count; i++)
        CHECK_EQ(cluster_wait(c, &c->calls[i]), OUTCOME_DONE);
    CHECK(WITHIN(c, 4 * P, c->up_count == c->universe));
    for (uint32_t n = 8; n < NODES; n++) { /* a snapshot is a state between two operations */
        CHECK(c->listeners[n].snapshot[V] > 0);
        CHECK_EQ(variable_of(c, n, V), c->listeners[n].snapshot[V]);
    }
    CHECK_EQ(COUNT_NODES(c, variable_of(c, n, V) == 60), 9);
    check_done(c, ask(c, 9, NULL, "all"));
    cluster_free(c);
}

/* ---- the heartbeat ---- */

/* Of the waves from `at` in the log on: how many were complete with so many nodes? */
static uint32_t waves(const struct cluster *c, uint32_t at, bool complete, uint32_t nodes) {
    uint32_t count = 0;
    for (uint32_t i = at; i < c->log_count; i++) {
        const struct input *in = &c->log[i].in;
        count += in->kind == INPUT_WAVE && in->wave.complete == complete &&
                 (!complete || in->wave.nodes == nodes);
    }
    return count;
}

static void test_wave_counts_the_living(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    cluster_run(c, P);
    uint32_t from = c->log_count;
    cluster_run(c, 10 * P);
    CHECK_EQ(waves(c, from, true, c->universe), 10);
    CHECK_EQ(c->log_count - from, 10);

    world_pause(c->w, 13, world_now(c->w) + 15 * P);
    cluster_run(c, P);
    from = c->log_count;
    cluster_run(c, 13 * P);
    CHECK(waves(c, from, false, 0) >= 3);
    CHECK_EQ(waves(c, from, true, c->universe), 0);
    CHECK(waves(c, from, true, c->universe - 1) >= 5); /* all that are attached */

    CHECK(WITHIN(c, 10 * P, c->up_count == c->universe));
    cluster_run(c, 2 * P);
    from = c->log_count;
    cluster_run(c, 5 * P);
    CHECK_EQ(waves(c, from, true, c->universe), 5);
    uint64_t tick = 0;
    for (uint32_t i = 0; i < c->log_count; i++) {
        if (c->log[i].in.kind != INPUT_WAVE)
            continue;
        CHECK(c->log[i].in.wave.tick > tick);
        tick = c->log[i].in.wave.tick;
    }
    cluster_free(c);
}

int main(void) {
    TEST(test_crashed_node_fails_only_what_names_it);
    TEST(test_death_at_any_moment_is_all_or_nothing);
    TEST(test_paused_node_is_given_up_fenced_and_rejoins);
    TEST(test_paused_node_delays_to_the_deadline_only);
    TEST(test_paused_inner_node_is_bypassed);
    TEST(test_all_stand_still_at_once);
    TEST(test_requests_of_the_fenced_are_lost);
    TEST(test_broken_links_and_duplicates);
    TEST(test_children_of_the_dead_move_up_and_back);
    TEST(test_two_dead_generations);
    TEST(test_new_root_finds_everything_as_it_was);
    TEST(test_root_dies_at_any_moment);
    TEST(test_root_dies_when_half_has_heard);
    TEST(test_two_new_roots_in_quick_succession);
    TEST(test_standing_compare_and_strobes_over_a_new_root);
    TEST(test_without_a_root_the_outcome_is_unknown);
    TEST(test_new_root_goes_on_without_the_missing);
    TEST(test_late_node_gets_the_roots_variables);
    TEST(test_joining_disturbs_nobody);
    TEST(test_wave_counts_the_living);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Gathering small records: whatever happens on the way, what comes is what the nodes have stored,
 * and exactly those who have not answered are missing.
 *
 * Nodes say who they are and which version of themselves it is; every seventh has no record. */
#include <stdio.h>

#include "forge.h"
#include "wire/message.h"

enum { CHANNEL = 1, SOME = 3 };

/* ---- what is stored and what comes ---- */

static bool has_record(uint32_t node) {
    return node % 7 != 3;
}

static void words(uint32_t node, uint32_t version, char out[TEXT_MAX]) {
    snprintf(out, TEXT_MAX, "node %u, version %u", node, version);
}

static void store(struct cluster *c, uint32_t node, uint32_t version) {
    char text[TEXT_MAX];
    words(node, version, text);
    cluster_record(c, node, CHANNEL, text);
}

static void store_all(struct cluster *c, uint32_t version) {
    for (uint32_t n = 0; n < c->universe; n++)
        if (has_record(n))
            store(c, n, version);
    cluster_run(c, 2 * c->poll_ns);
}

static struct call *ask(struct cluster *c, const char *set, uint64_t timeout_ns) {
    struct call *x = cluster_ask(c, c->root, set, gather(CHANNEL, timeout_ns));
    CHECK(WITHIN(c, P, x->asked));
    return x;
}

static bool over(struct cluster *c, const struct call *x) {
    return WITHIN(c, 60 * P, x->answers > 0);
}

/* The records ascend, are of nodes that are asked and not missing, and say what was stored. */
static uint32_t count_records(struct cluster *c, const struct call *x, uint32_t version) {
    uint32_t count = 0, before = NO_NODE;
    struct reply r;
    size_t at = 0;
    for (; reply_next(x->records, &at, &r); count++) {
        char text[TEXT_MAX];
        words(r.node, version, text);
        CHECK(r.record.len == strlen(text) && memcmp(r.record.at, text, r.record.len) == 0);
        CHECK(before == NO_NODE || r.node > before);
        CHECK(nodeset_has(&x->set, r.node) && !nodeset_has(&x->missing, r.node));
        before = r.node;
    }
    CHECK_EQ(at, x->records.len);
    CHECK(c->universe > 0);
    return count;
}

/* All of the set but `missing` have answered, those with a record with that. */
static void check(struct cluster *c, const struct call *x, const char *missing, uint32_t version) {
    struct nodeset s;
    if (!CHECK(over(c, x)))
        return;
    set_of(c, &s, missing);
    if (!CHECK(nodeset_equal(&s, &x->missing))) {
        char text[200];
        nodeset_format(&x->missing, "n", text, sizeof text);
        printf("#   missing are %s\n", text);
    }
    free(s.storage);
    uint32_t expected =
        COUNT_NODES(c, nodeset_has(&x->set, n) && !nodeset_has(&x->missing, n) && has_record(n));
    CHECK_EQ(count_records(c, x, version), expected);
}

/* ---- a quiet cluster ---- */

static void check_shape(uint32_t nodes, enum shape shape, uint32_t arity) {
    struct cluster *c = cluster_start(nodes, shape, arity);
    store_all(c, 1);
    struct call *x = ask(c, NULL, 20 * P);
    check(c, x, "", 1);
    CHECK(x->answered_at - x->asked_at < 5 * P);
    store_all(c, 2);
    check(c, ask(c, nodes > 6 ? "n[2,4-6]" : "n0", 20 * P), "", 2);
    struct call *who = cluster_ask(c, c->root, NULL, gather(NO_CHANNEL, 20 * P));
    struct call *none = cluster_ask(c, c->root, NULL, gather(0, 20 * P));
    CHECK(over(c, who) && over(c, none));
    CHECK(nodeset_empty(&who->missing) && who->records.len == 0);
    CHECK(nodeset_empty(&none->missing) && none->records.len == 0);
    cluster_free(c);
}

static void test_every_shape_and_size(void) {
    static const uint32_t sizes[] = {1, 2, 3, 7, 20, 64, 200};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_shape(sizes[i], SHAPE_KARY, 2);
        check_shape(sizes[i], SHAPE_KARY, 16);
        check_shape(sizes[i], SHAPE_BINOMIAL, 2);
        check_shape(sizes[i], SHAPE_FLAT, 1);
        if (sizes[i] <= 20)
            check_shape(sizes[i], SHAPE_CHAIN, 1);
    }
}

/* A record can be taken back; one that is too large, or for no channel, is no record. */
static void test_the_newest_record_counts(void) {
    struct cluster *c = cluster_start(7, SHAPE_KARY, 2);
    static char large[TEXT_MAX + 2];
    memset(large, 'x', TEXT_MAX + 1);
    store_all(c, 1);
    store_all(c, 2);
    cluster_record(c, 3, CHANNEL, large);
    cluster_record(c, 3, 2, "no such channel");
    check(c, ask(c, NULL, 20 * P), "", 2);
    cluster_record(c, 3, CHANNEL, "");
    cluster_run(c, 2 * c->poll_ns);
    struct call *x = ask(c, "n3", 20 * P);
    CHECK(over(c, x));
    CHECK(nodeset_empty(&x->missing) && x->records.len == 0);
    large[TEXT_MAX] = '\0';
    cluster_record(c, 3, CHANNEL, large); /* just fits */
    cluster_run(c, 2 * c->poll_ns);
    x = ask(c, "n3", 20 * P);
    CHECK(over(c, x));
    CHECK_EQ(x->records.len, TEXT_MAX + REPLY_HEAD_BYTES);
    cluster_free(c);
}

static void check_refused(struct cluster *c, uint32_t node, const char *set, uint32_t channel) {
    struct call *x = cluster_ask(c, node, set, gather(channel, 20 * P));
    CHECK_EQ(cluster_wait(c, x), OUTCOME_REFUSED);
    CHECK(x->missing.storage == NULL);
}

static void test_what_is_refused(void) {
    struct cluster *c = cluster_start(7, SHAPE_KARY, 2);
    store_all(c, 1);
    check_refused(c, 3, NULL, CHANNEL);
    check_refused(c, c->root, NULL, 2);
    check_refused(c, c->root, "", CHANNEL);
    world_pause(c->w, 5, world_now(c->w) + P);
    struct call *x[PRIM_GATHERS_MAX];
    for (uint32_t i = 0; i < PRIM_GATHERS_MAX; i++)
        x[i] = ask(c, NULL, 20 * P);
    check_refused(c, c->root, NULL, CHANNEL);
    for (uint32_t i = 0; i < PRIM_GATHERS_MAX; i++)
        check(c, x[i], "", 1);
    check(c, ask(c, NULL, 20 * P), "", 1);
    cluster_free(c);
}

static void test_nothing_without_channels(void) {
    struct cluster *c = cluster_new(7, SHAPE_KARY, 2);
    c->config.prim.limits.record_channels = 0;
    CHECK(cluster_power(c, 7));
    cluster_record(c, 3, 0, "nobody listens");
    check_refused(c, c->root, NULL, 0);
    check_refused(c, c->root, NULL, NO_CHANNEL);
    cluster_free(c);
}

/* A channel for records of no bytes: one still hears who is there. */
static void test_records_of_nothing(void) {
    struct cluster *c = cluster_new(7, SHAPE_KARY, 2);
    c->config.prim.limits.record_channels = 1;
    c->config.prim.limits.record_bytes = 0;
    CHECK(cluster_power(c, 6));
    cluster_record(c, 3, 0, "");
    cluster_record(c, 4, 0, "x");
    struct call *x = cluster_ask(c, c->root, NULL, gather(0, 20 * P));
    CHECK(over(c, x));
    CHECK(x->records.len == 0 && nodeset_count(&x->missing) == 1 && nodeset_has(&x->missing, 6));
    cluster_free(c);
}

/* Nodes that were never there, or are not yet, are missing at once. */
static void test_who_is_no_member_is_missing_at_once(void) {
    struct cluster *c = cluster_new(7, SHAPE_KARY, 2);
    CHECK(cluster_power(c, 5));
    for (uint32_t n = 0; n < 5; n++)
        if (has_record(n))
            store(c, n, 1);
    cluster_run(c, 2 * c->poll_ns);
    struct call *x = ask(c, "n[0-3,5-6]", 20 * P);
    check(c, x, "n[5-6]", 1);
    CHECK(x->answered_at - x->asked_at < P);
    x = ask(c, "n[5-6]", 20 * P);
    check(c, x, "n[5-6]", 1);
    CHECK_EQ(x->answered_at, x->asked_at);
    cluster_free(c);
}

/* ---- replies that do not fit into one message ---- */

static void test_replies_are_split(void) {
    static const size_t rooms[] = {70, 100, 333};
    for (uint32_t i = 0; i < 6; i++) {
        struct cluster *c = cluster_start(40, i % 2 ? SHAPE_CHAIN : SHAPE_BINOMIAL, 2);
        for (uint32_t n = 0; n < c->universe; n++)
            prim_of(c, n)->queries.room = rooms[i / 2];
        store_all(c, 1);
        check(c, ask(c, NULL, 20 * P), "", 1);
        CHECK_EQ(COUNT_NODES(c, prim_of(c, n)->refused[REFUSAL_BODY] > 0), 0);
        cluster_free(c);
    }
}

/* ---- faults in the middle ---- */

/* 40 nodes, binary: node 1 is inner with many below, 39 a leaf. The gather is under way. */
enum { MANY = 40, INNER = 1, LEAF = 39 };

static struct cluster *start_many(enum shape shape) {
    struct cluster *c = cluster_start(MANY, shape, 2);
    store_all(c, 1);
    cluster_run(c, 3 * P);
    return c;
}

static void test_a_crash_costs_one_node(void) {
    static const uint32_t victims[] = {INNER, LEAF, 20};
    static const char *const missing[] = {"n1", "n39", "n20"};
    for (uint32_t i = 0; i < 9; i++) {
        struct cluster *c = start_many(i < 3 ? SHAPE_KARY : i < 6 ? SHAPE_BINOMIAL : SHAPE_CHAIN);
        world_pause(c->w, victims[i % SOME], world_now(c->w) + 30 * P); /* so it cannot answer */
        struct call *x = ask(c, NULL, 50 * P);
        world_crash(c->w, victims[i % SOME]);
        check(c, x, missing[i % SOME], 1);
        CHECK(x->answered_at - x->asked_at < 20 * P); /* when it is given up, not at the end */
        cluster_free(c);
    }
}

/* A node stands still for longer than the gather may take: at the deadline it alone is missing,
 * since the repeated query is not combined. */
static void test_a_pause_is_named(void) {
    for (uint32_t i = 0; i < 3; i++) {
        struct cluster *c = start_many(i == 0 ? SHAPE_KARY : i == 1 ? SHAPE_BINOMIAL : SHAPE_FLAT);
        world_pause(c->w, LEAF, world_now(c->w) + 3 * P / 2);
        struct call *x = ask(c, NULL, P);
        check(c, x, "n39", 1);
        CHECK_EQ(x->answered_at - x->asked_at, P);
        CHECK(world_paused(c->w, LEAF));
        cluster_run(c, 5 * P);
        check(c, ask(c, NULL, P), "", 1); /* it is back */
        CHECK_EQ(fenced_count(c), 0);
        cluster_free(c);
    }
}

/* Below an inner node that stands still nobody can be heard in time. */
static void test_a_pause_hides_those_below(void) {
    struct cluster *c = cluster_start(7, SHAPE_KARY, 2);
    store_all(c, 1);
    cluster_run(c, 3 * P);
    world_pause(c->w, 4, world_now(c->w) + 3 * P / 2);
    check(c, ask(c, NULL, P), "n[4-6]", 1);
    cluster_free(c);
}

/* After half of the time a node finds its way back, with one below it that stands still: that one is
 * missing and not the others, though 0 has never been asked before. */
static void test_a_late_return_hides_nobody(void) {
    struct cluster *c = cluster_start(7, SHAPE_KARY, 2);
    store_all(c, 1);
    cluster_run(c, 3 * P);
    uint64_t now = world_now(c->w);
    world_pause(c->w, 0, now + 9 * P / 10);
    world_pause(c->w, 2, now + 2 * P);
    break_link(c, 0, c->root, ROLE_PARENT);
    struct call *x = ask(c, NULL, 16 * P / 10);
    check(c, x, "n2", 1);
    CHECK(world_paused(c->w, 2));
    cluster_free(c);
}

static void test_broken_links_cost_nobody(void) {
    for (uint32_t i = 0; i < 12; i++) {
        struct cluster *c = start_many(i % 2 ? SHAPE_KARY : SHAPE_BINOMIAL);
        world_pause(c->w, LEAF, world_now(c->w) + P / 4); /* so it is not over yet */
        struct call *x = ask(c, NULL, 50 * P);
        for (uint32_t n = i; n < MANY; n += 12)
            world_reset(c->w, n, i);
        CHECK_EQ(x->answers, 0);
        check(c, x, "", 1);
        CHECK_EQ(fenced_count(c), 0);
        cluster_free(c);
    }
}

/* ---- lives ---- */

/* A node starts anew while it is asked: what it had stored is gone, and so is the old life. */
static void test_a_new_life_has_no_record(void) {
    struct cluster *c = start_many(SHAPE_KARY);
    world_crash(c->w, 20);
    cluster_run(c, 5 * P);
    world_boot(c->w, 20, false);
    CHECK(WITHIN(c, 20 * P, c->up_count == c->universe));
    struct call *x = ask(c, "n20", 20 * P);
    CHECK(over(c, x));
    CHECK(nodeset_empty(&x->missing) && x->records.len == 0);
    store(c, 20, 2);
    cluster_run(c, 2 * c->poll_ns);
    x = ask(c, "n20", 20 * P);
    check(c, x, "", 2);
    CHECK_EQ(count_records(c, x, 2), 1);
    cluster_free(c);
}

static void test_a_fenced_node_has_no_record(void) {
    struct cluster *c = start_many(SHAPE_BINOMIAL);
    world_pause(c->w, LEAF, world_now(c->w) + 12 * P);
    check(c, ask(c, NULL, 30 * P), "n39", 1);
    CHECK(WITHIN(c, 60 * P, fenced_count(c) == 1 && c->up_count == c->universe));
    struct call *x = ask(c, "n39", 20 * P);
    CHECK(over(c, x));
    CHECK(nodeset_empty(&x->missing) && x->records.len == 0);
    cluster_free(c);
}

/* The root is gone in the middle: nobody answers that gather any more. The next root gathers from
 * everyone, and the nodes have forgotten the former one's. */
static void test_a_new_root(void) {
    struct cluster *c = start_many(SHAPE_KARY);
    world_pause(c->w, LEAF, world_now(c->w) + P / 2);
    struct call *x = ask(c, NULL, 50 * P);
    world_crash(c->w, c->root);
    cluster_run(c, P);
    world_boot(c->w, c->root, true);
    CHECK(WITHIN(c, 60 * P, c->up_count == c->universe));
    CHECK_EQ(x->answers, 0);
    uint32_t open = 0;
    for (uint32_t n = 0; n < MANY; n++)
        for (uint32_t i = 0; i < PRIM_GATHERS_MAX; i++)
            open += prim_of(c, n)->queries.relays[i].open;
    CHECK_EQ(open, 0);
    if (has_record(c->root))
        store(c, c->root, 1);
    cluster_run(c, 2 * c->poll_ns);
    check(c, ask(c, NULL, 20 * P), "", 1);
    CHECK_EQ(x->answers, 0);
    cluster_free(c);
}

/* Gathers that nobody waits for any more hold up no later ones. */
static void test_abandoned_gathers_hold_up_nobody(void) {
    struct cluster *c = start_many(SHAPE_KARY);
    world_pause(c->w, LEAF, world_now(c->w) + 3 * P / 2);
    for (uint32_t i = 0; i < 3 * PRIM_GATHERS_MAX; i++)
        check(c, ask(c, NULL, P / 10), "n39", 1);
    cluster_run(c, 3 * P);
    check(c, ask(c, NULL, P), "", 1);
    cluster_free(c);
}

/* ---- how much it costs ---- */

/* Counts the RECORDS messages that the root takes in, from its log of inputs. */
static void count_message(void *context, struct bytes record) {
    enum { KIND_AT = 5, TYPE_AT = 26 };
    uint32_t *count = context;
    if (record.at[KIND_AT] == INPUT_MESSAGE && load_le16(record.at + TYPE_AT) == MESSAGE_RECORDS)
        ++*count;
}

static void test_the_root_hears_its_children_only(void) {
    enum { NODES = 2000, ARITY = 16 };
    struct cluster *c = cluster_new(NODES, SHAPE_KARY, ARITY);
    uint32_t count = 0;
    CHECK(cluster_power(c, NODES));
    store_all(c, 1);
    cluster_run(c, 3 * P);
    CHECK_EQ(status_of(c, c->root).children, ARITY);
    world_record(c->w, c->root, count_message, &count);
    uint64_t before = world_counts(c->w)->messages;
    struct call *x = ask(c, NULL, 20 * P);
    check(c, x, "", 1);
    CHECK_EQ(count, ARITY);
    uint64_t messages = world_counts(c->w)->messages - before;
    CHECK(messages >= 2 * NODES && messages < 5 * NODES); /* a heartbeat may be among them */
    printf("# %u nodes: %llu us, %u messages at the root, %llu in all\n", (unsigned)NODES,
           (unsigned long long)(x->answered_at - x->asked_at) / 1000, count,
           (unsigned long long)messages);
    world_record(c->w, c->root, NULL, NULL);
    cluster_free(c);
}

int main(void) {
    TEST(test_every_shape_and_size);
    TEST(test_the_newest_record_counts);
    TEST(test_what_is_refused);
    TEST(test_nothing_without_channels);
    TEST(test_records_of_nothing);
    TEST(test_who_is_no_member_is_missing_at_once);
    TEST(test_replies_are_split);
    TEST(test_a_crash_costs_one_node);
    TEST(test_a_pause_is_named);
    TEST(test_a_pause_hides_those_below);
    TEST(test_a_late_return_hides_nobody);
    TEST(test_broken_links_cost_nobody);
    TEST(test_a_new_life_has_no_record);
    TEST(test_a_fenced_node_has_no_record);
    TEST(test_a_new_root);
    TEST(test_abandoned_gathers_hold_up_nobody);
    TEST(test_the_root_hears_its_children_only);
    return tap_finish();
}

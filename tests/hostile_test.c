/* SPDX-License-Identifier: MIT */
/* A compute node in the wrong hands: it holds its links properly and says on them what it likes.
 *
 * Whatever it says, nobody's machine fails, no word of it counts as another's, and nodes that do
 * not hang below it do not even notice. Most of these once stopped the receiver or the cluster.
 *
 * 7 nodes in a binary tree: below the root (7) are 0, which is the hostile one, and 4; below 0 are
 * 1 to 3, below 4 are 5 and 6. */
#include "forge.h"

enum { NODES = 7, ROOT = NODES, HOSTILE = 0, FAR = 6 };

#define OTHERS "n[1-7]"

static struct cluster *start(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    cluster_run(c, 3 * P); /* until all is quiet */
    CHECK_EQ(status_of(c, HOSTILE).parent, ROOT);
    CHECK_EQ(status_of(c, FAR).parent, 4);
    return c;
}

static void say(struct cluster *c, uint16_t type, const union message *m) {
    forge(c, HOSTILE, ROOT, ROLE_CHILD, type, m);
}

/* To all others an operation is done, whoever asks; all are who they were. */
static void check_others_well(struct cluster *c) {
    static const uint32_t askers[] = {ROOT, FAR, 3};
    for (uint32_t i = 0; i < 3; i++) {
        struct call *x = cluster_ask(c, askers[i], OTHERS, xfer(900, "all is well", OTHER));
        CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
        CHECK(x->answered_at - x->asked_at < P);
    }
    CHECK_EQ(COUNT_NODES(c, n != HOSTILE && heap_holds(c, n, 900, "all is well")), NODES);
    CHECK_EQ(COUNT_NODES(c, n != HOSTILE && event_of(c, n, OTHER) == 3), NODES);
    CHECK_EQ(fenced_count(c), 0);
    CHECK_EQ(c->up_count, c->universe);
    CHECK(all_attached(c));
}

static uint64_t refused(const struct cluster *c, enum refusal why) {
    return prim_of(c, ROOT)->refused[why];
}

static uint64_t next_order(const struct cluster *c) {
    return prim_of(c, ROOT)->order->next;
}

/* ---- its own requests, as no daemon could make them ---- */

/* Numbers that its real requests will not meet. */
static struct op_id own_id(const struct cluster *c, uint64_t number) {
    return (struct op_id){HOSTILE, 1000 + number, status_of(c, HOSTILE).incarnation};
}

static void request(struct cluster *c, struct op_id id, const char *set, struct operation o) {
    struct nodeset s;
    set_of(c, &s, set);
    union message m = {
        .request = {.id = id, .epoch = 1, .timeout_ns = 20 * P, .set = &s, .operation = o}};
    say(c, MESSAGE_REQUEST, &m);
    free(s.storage);
}

static struct operation operation(enum operation_kind kind) {
    return (struct operation){.kind = (uint8_t)kind,
                              .event = NO_EVENT,
                              .variable = NO_VARIABLE,
                              .write_variable = NO_VARIABLE};
}

/* A compare with a body: every node kept the body and never gave its room back, until there was
 * none and everyone stopped at once. */
static void test_a_compare_with_a_body(void) {
    struct cluster *c = start();
    uint64_t order = next_order(c);
    for (uint32_t i = 0; i < 20; i++) {
        struct operation o = operation(i % 2 ? OPERATION_COMPARE : OPERATION_STANDING);
        o.variable = 0;
        o.relation = RELATION_GE;
        o.body = bytes_of((const uint8_t *)"x", 1);
        request(c, own_id(c, i), OTHERS, o);
        say(c, MESSAGE_RECEIVED, &(union message){.received = {.id = own_id(c, i)}});
    }
    CHECK_EQ(next_order(c), order);
    CHECK_EQ(COUNT_NODES(c, prim_of(c, n)->member.bodies_used != 0), 0);
    check_others_well(c);
    cluster_free(c);
}

/* Operations beyond the limits: the root used to trust that the asking node had looked. */
static void test_operations_beyond_the_limits(void) {
    static const uint8_t bytes[TEXT_MAX + 1];
    struct operation o = operation(OPERATION_XFER);
    struct operation bad[10] = {o, o, o, o, o, o, o, o, o, o};
    bad[0].heap_offset = UINT32_MAX;
    bad[1].heap_offset = 1020;
    bad[1].body = bytes_of(bytes, 5);
    bad[2].body = bytes_of(bytes, sizeof bytes);
    bad[3].event = CLUSTER_EVENTS;
    bad[4].kind = OPERATION_COMPARE;
    bad[5].kind = OPERATION_COMPARE;
    bad[5].variable = 0;
    bad[5].write_variable = CLUSTER_VARIABLES;
    bad[6].kind = OPERATION_STANDING;
    bad[6].variable = CLUSTER_VARIABLES;
    bad[7].kind = OPERATION_ANNOUNCE;
    bad[7].len = 1025;
    bad[8].kind = OPERATION_PUBLISH;
    bad[8].heap_offset = 0xfffff000;
    bad[9].kind = OPERATION_PUBLISH;
    bad[9].len = UINT64_MAX;
    bad[9].heap_offset = 8;
    struct cluster *c = start();
    uint64_t order = next_order(c);
    for (uint32_t i = 0; i < 10; i++) {
        request(c, own_id(c, i), OTHERS, bad[i]);
        if (!CHECK_EQ(next_order(c), order))
            printf("#   operation %u\n", i);
    }
    CHECK_EQ(COUNT_NODES(c, heap_empty(c, n)), c->universe);
    check_others_well(c);
    cluster_free(c);
}

static void set_bytes(const struct cluster *c, const char *set, uint8_t out[TEXT_MAX],
                      struct bytes *ret) {
    struct nodeset s;
    set_of(c, &s, set);
    struct codec codec = {.encoding = true, .out = out, .len = TEXT_MAX};
    codec_set(&codec, &s);
    ASSERT(!codec.failed);
    *ret = bytes_of(out, codec.at);
    free(s.storage);
}

/* It announces a transfer of nothing and has it published far beyond the heap; the nodes had voted
 * for it and stopped when they carried it out. Then one with a set that is none. */
static void test_a_transfer_beyond_the_heap(void) {
    static const uint8_t noise[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    struct cluster *c = start();
    uint8_t room[TEXT_MAX];
    struct operation announce = operation(OPERATION_ANNOUNCE);
    announce.transfer = own_id(c, 1).number;
    announce.value = P;
    set_bytes(c, OTHERS, room, &announce.body);
    request(c, own_id(c, 1), OTHERS, announce);
    cluster_run(c, P / 4);
    CHECK(slot_active(prim_of(c, FAR))); /* so far it may */
    struct operation publish = operation(OPERATION_PUBLISH);
    publish.transfer = announce.transfer;
    publish.heap_offset = 0xfffff000;
    publish.event = DATA;
    request(c, own_id(c, 2), OTHERS, publish);
    announce.body = bytes_of(noise, sizeof noise);
    announce.transfer = own_id(c, 3).number;
    request(c, own_id(c, 3), OTHERS, announce);
    cluster_run(c, 10 * P);
    CHECK_EQ(COUNT_NODES(c, slot_active(prim_of(c, n))), 0); /* and it is over in time */
    CHECK_EQ(COUNT_NODES(c, event_of(c, n, DATA) > 0), 0);
    check_others_well(c);
    CHECK_EQ(cluster_wait(c, cluster_bulk(c, FAR, OTHERS, 0, 300, 1)), OUTCOME_DONE);
    cluster_free(c);
}

/* ---- bulk transfers it takes part in ---- */

/* The root sends to all; the hostile node has opened its link and asks. */
static struct call *offer(struct cluster *c, uint64_t bytes) {
    struct call *x = cluster_bulk(c, ROOT, NULL, 0, bytes, 1);
    CHECK(WITHIN(c, 2 * P, end_at(c, ROOT, HOSTILE, ROLE_SINK) != NULL));
    return x;
}

static struct message_want wish(const struct cluster *c) {
    const struct transfer *t = prim_of(c, ROOT)->transfers;
    CHECK(t->used && t->source);
    return (struct message_want){
        .transfer = t->id, .node = HOSTILE, .credit = 1, .buffer = 0x80000000};
}

/* It asks in the name of the source itself, or of others: as a receiver of its own transfer the
 * source used to fail. The transfer may suffer, since the node is one of its receivers. */
static void test_wishes_in_the_name_of_others(void) {
    static const uint32_t names[] = {ROOT, 4, FAR, 99, NO_NODE};
    for (uint32_t i = 0; i < 5; i++) {
        struct cluster *c = start();
        struct call *x = offer(c, 1000);
        world_pause(c->w, FAR, world_now(c->w) + P / 2); /* so it is not over yet */
        union message m = {.want = wish(c)};
        m.want.node = names[i];
        m.want.done = true;
        for (uint32_t k = 0; k < 3 && end_at(c, ROOT, HOSTILE, ROLE_SINK) != NULL; k++)
            forge(c, HOSTILE, ROOT, ROLE_SINK, MESSAGE_WANT, &m);
        CHECK_EQ(x->answers, 0);
        CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
        CHECK_EQ(COUNT_NODES(c, event_of(c, n, DATA) == 1), c->universe);
        check_others_well(c);
        cluster_free(c);
    }
}

/* It says that it can take everything at once, or what is not there: the source used to send all it
 * had in one step, which is more than a step has room for. */
static void test_wishes_without_measure(void) {
    for (uint32_t i = 0; i < 4; i++) {
        struct cluster *c = cluster_new(NODES, SHAPE_KARY, 2);
        c->config.prim.limits.heap_bytes = 8 << 20; /* 131072 chunks */
        CHECK(cluster_power(c, NODES));
        cluster_run(c, 3 * P);
        struct call *x = offer(c, 8 << 20);
        union message m = {.want = wish(c)};
        m.want.credit = i % 2 ? UINT32_MAX : 0x7fffffff;
        m.want.next = i < 2 ? 0 : UINT32_MAX - 1;
        forge(c, HOSTILE, ROOT, ROLE_SINK, MESSAGE_WANT, &m);
        CHECK(world_counts(c->w)->effects_max < 1000);
        check_others_well(c);
        CHECK_EQ(x->answers, 0);
        cluster_free(c);
    }
}

/* ---- the words and votes of others ---- */

/* Requests in the name of the root or of another node, new ones and such as are open: they used to
 * use up the other's numbers, so that its own next request was taken for a repetition. */
static void test_requests_in_the_name_of_others(void) {
    static const uint32_t names[] = {ROOT, FAR};
    for (uint32_t i = 0; i < 2; i++) {
        struct cluster *c = start();
        uint32_t name = names[i];
        world_pause(c->w, 5, world_now(c->w) + P / 2);
        struct call *x = cluster_ask(c, name, OTHERS, xfer(0, "its own", DATA));
        CHECK(WITHIN(c, P, x->asked));
        uint32_t slots = c->config.prim.limits.outstanding;
        struct op_id id = {name, 0, status_of(c, name).incarnation};
        struct operation o = operation(OPERATION_XFER);
        o.event = LOCAL;
        for (id.number = 0; id.number < (uint64_t)20 * slots; id.number += 3)
            request(c, id, "n[5]", o);
        CHECK_EQ(refused(c, REFUSAL_SENDER), 54);
        CHECK_EQ(x->answers, 0); /* 5 stands still */
        for (id.number = 0; id.number < (uint64_t)3 * slots; id.number++)
            say(c, MESSAGE_RECEIVED, &(union message){.received = {.id = id}});
        CHECK_EQ(refused(c, REFUSAL_SENDER), 54 + 3 * slots);
        CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
        for (uint32_t k = 0; k < 2 * slots; k++) {
            struct call *y = cluster_ask(c, name, OTHERS, xfer(0, "its own", DATA));
            CHECK_EQ(cluster_wait(c, y), OUTCOME_DONE);
        }
        CHECK_EQ(COUNT_NODES(c, event_of(c, n, LOCAL) > 0), 0);
        check_others_well(c);
        cluster_free(c);
    }
}

/* It attaches others: nodes elsewhere, of a life far ahead of theirs, or itself with everyone below
 * it. The root gave the other node up and never took it back. */
static void test_attaching_others(void) {
    struct cluster *c = start();
    struct nodeset far, all, nobody;
    set_of(c, &far, "n6");
    set_of(c, &all, "n[0-6]");
    set_of(c, &nobody, "");
    struct message_attach a = {.attempt = UINT64_MAX, .below = &far, .members = &nobody};
    union message m = {.attach = a};
    m.attach.node = FAR;
    m.attach.incarnation = UINT64_MAX;
    say(c, MESSAGE_ATTACH, &m);
    m.attach.member = true;
    m.attach.member_epoch = 1;
    m.attach.incarnation = status_of(c, FAR).incarnation;
    say(c, MESSAGE_ATTACH, &m);
    m.attach.node = HOSTILE;
    m.attach.incarnation = status_of(c, HOSTILE).incarnation;
    m.attach.below = &all;
    m.attach.attempt = ((uint64_t)1 << 40) + 1000;
    say(c, MESSAGE_ATTACH, &m);
    CHECK_EQ(refused(c, REFUSAL_SENDER), 3);
    say(c, MESSAGE_LOST, &(union message){.lost = {.set = &far, .node = FAR}});
    cluster_run(c, 10 * P);
    check_others_well(c);
    world_crash(c->w, FAR);
    cluster_run(c, 2 * P);
    world_boot(c->w, FAR, false);
    CHECK(WITHIN(c, 10 * P, c->up_count == c->universe && all_attached(c)));
    struct call *x = cluster_ask(c, FAR, OTHERS, xfer(0, "again", DATA));
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK_EQ(fenced_count(c), 0);
    free(far.storage);
    free(all.storage);
    free(nobody.storage);
    cluster_free(c);
}

/* It votes and acknowledges for all, among them a node that stands still: the operation was decided,
 * and told to be done, without that node. */
static void test_votes_in_the_name_of_others(void) {
    struct cluster *c = start();
    struct nodeset all, far;
    set_of(c, &all, NULL);
    set_of(c, &far, "n[4-7]");
    world_pause(c->w, FAR, world_now(c->w) + P / 2);
    struct call *x = cluster_ask(c, ROOT, NULL, xfer(0, "hello", DATA));
    CHECK(WITHIN(c, P, x->asked));
    union message m = {.ack = {.what = ACK_PREPARE, .number = next_order(c) - 1, .set = &all}};
    say(c, MESSAGE_ACK, &m);
    m.ack.set = &far;
    m.ack.no = true;
    say(c, MESSAGE_ACK, &m);
    m.ack.no = false;
    m.ack.set = &all;
    m.ack.what = ACK_DECIDE;
    say(c, MESSAGE_ACK, &m);
    m.ack.what = ACK_VIEW;
    m.ack.number = status_of(c, ROOT).view;
    say(c, MESSAGE_ACK, &m);
    CHECK(world_paused(c->w, FAR));
    const struct op *op = first_in_flight(c);
    CHECK(op != NULL && op->state == OP_PREPARING);
    CHECK_EQ(COUNT_NODES(c, heap_empty(c, n)), c->universe);
    CHECK_EQ(x->answers, 0);
    CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    CHECK(!world_paused(c->w, FAR));
    CHECK_EQ(COUNT_NODES(c, heap_holds(c, n, 0, "hello")), c->universe);
    check_others_well(c);
    free(all.storage);
    free(far.storage);
    cluster_free(c);
}

/* ---- gathers ---- */

/* A gather of all records that FAR, which stands still, keeps open. */
static struct call *begin_gather(struct cluster *c) {
    for (uint32_t n = 0; n < c->universe; n++)
        cluster_record(c, n, 0, "honest");
    cluster_run(c, 2 * c->poll_ns);
    world_pause(c->w, FAR, world_now(c->w) + P / 2);
    struct call *x = cluster_ask(c, ROOT, NULL, gather(0, 20 * P));
    CHECK(WITHIN(c, P, x->asked));
    return x;
}

/* The hostile node passes on what those below it say, and may lie about that; about nobody else. */
static void check_honest(struct cluster *c, const struct call *x) {
    CHECK(WITHIN(c, 20 * P, x->answers > 0));
    CHECK(nodeset_empty(&x->missing));
    uint32_t count = 0;
    struct reply r;
    for (size_t at = 0; reply_next(x->records, &at, &r);)
        count += r.node > 3 && bytes_equal(r.record, bytes_from_str("honest"));
    CHECK_EQ(count, c->universe - 4);
}

/* It answers for all, in words and by the set, and for gathers that there are not. */
static void test_records_in_the_name_of_others(void) {
    struct cluster *c = start();
    struct nodeset all, own;
    set_of(c, &all, NULL);
    set_of(c, &own, "n0");
    struct call *x = begin_gather(c);
    uint64_t number = prim_of(c, ROOT)->queries.queries[0].number;
    uint8_t lies[200];
    size_t len = 0;
    for (uint32_t n = 0; n < c->universe; n++) {
        struct reply r = {n == 3 ? 1000 : n, bytes_from_str("lie")};
        len += reply_store(room_of(lies + len, sizeof lies - len), &r);
    }
    union message m = {.records = {.number = number, .set = &all, .records = bytes_of(lies, len)}};
    say(c, MESSAGE_RECORDS, &m);
    m.records.set = &own; /* words of others behind a set that is its own */
    say(c, MESSAGE_RECORDS, &m);
    m.records.set = &all;
    m.records.number = number + 1;
    say(c, MESSAGE_RECORDS, &m);
    m.records.number = UINT64_MAX;
    say(c, MESSAGE_RECORDS, &m);
    CHECK_EQ(x->answers, 0); /* FAR stands still */
    check_honest(c, x);
    CHECK_EQ(refused(c, REFUSAL_BODY), 0);
    check_others_well(c);
    free(all.storage);
    free(own.storage);
    cluster_free(c);
}

/* Below 0, node 1 slips a word of its neighbour 3 in with its own, while 0 still combines. */
static void test_a_record_of_a_neighbour(void) {
    struct cluster *c = start();
    struct nodeset own;
    set_of(c, &own, "n1");
    uint8_t lie[16];
    size_t len = reply_store(room_of(lie, sizeof lie), &(struct reply){3, bytes_from_str("lie")});
    cluster_record(c, 3, 0, "honest");
    cluster_run(c, 2 * c->poll_ns);
    world_pause(c->w, 2, world_now(c->w) + P / 2);
    struct call *x = cluster_ask(c, ROOT, NULL, gather(0, 20 * P));
    CHECK(WITHIN(c, P, x->asked));
    cluster_run(c, P / 20);
    union message m = {.records = {.number = prim_of(c, ROOT)->queries.queries[0].number,
                                   .set = &own,
                                   .records = bytes_of(lie, len)}};
    forge(c, 1, 0, ROLE_CHILD, MESSAGE_RECORDS, &m);
    CHECK(WITHIN(c, 20 * P, x->answers > 0));
    struct reply r;
    size_t at = 0;
    CHECK(reply_next(x->records, &at, &r));
    CHECK(r.node == 3 && bytes_equal(r.record, bytes_from_str("honest")));
    CHECK_EQ(at, x->records.len);
    check_others_well(c);
    free(own.storage);
    cluster_free(c);
}

/* Records beyond the limit, and replies that are none: it loses its link, and comes back. */
static void check_bad_records(struct bytes records) {
    struct cluster *c = start();
    struct nodeset own;
    set_of(c, &own, "n0");
    struct call *x = begin_gather(c);
    uint64_t number = prim_of(c, ROOT)->queries.queries[0].number;
    uint8_t body[256];
    struct codec codec = {.encoding = true, .out = body, .len = sizeof body};
    codec_u64(&codec, &number);
    codec_set(&codec, &own);
    codec_bytes(&codec, &records, 1);
    ASSERT(!codec.failed);
    forge_bytes(c, HOSTILE, ROOT, ROLE_CHILD, MESSAGE_RECORDS, bytes_of(body, codec.at));
    CHECK_EQ(refused(c, REFUSAL_BODY), 1);
    check_honest(c, x);
    CHECK(WITHIN(c, 20 * P, all_attached(c)));
    check_others_well(c);
    free(own.storage);
    cluster_free(c);
}

static void test_records_beyond_the_limits(void) {
    uint8_t bytes[REPLY_HEAD_BYTES + TEXT_MAX + 1] = {0};
    store_le16(bytes + 4, TEXT_MAX + 1);
    check_bad_records(bytes_of(bytes, sizeof bytes));
    check_bad_records(bytes_of(bytes, sizeof bytes - 1));
    check_bad_records(bytes_of(bytes, 5));
}

/* An inner node attaches a node of its own subtree with the last of all lives and attempts. When it is
 * gone for good the other comes back: on its own link its own word counts. */
static void check_lockout(uint64_t incarnation) {
    struct cluster *c = cluster_start(7, SHAPE_KARY, 2);
    cluster_run(c, 3 * P);
    struct nodeset s, none;
    set_of(c, &s, "n3");
    set_of(c, &none, "");
    union message m = {.attach = {.node = 3,
                                  .incarnation = incarnation,
                                  .attempt = UINT64_MAX,
                                  .member = incarnation != UINT64_MAX,
                                  .member_epoch = 1,
                                  .below = &s,
                                  .members = &none}};
    forge(c, 0, 7, ROLE_CHILD, MESSAGE_ATTACH, &m);
    free(s.storage);
    free(none.storage);
    world_crash(c->w, 0);
    CHECK(WITHIN(c, 500 * P, c->up_count == 7 && status_of(c, 3).member));
    world_crash(c->w, 3);
    cluster_run(c, 5 * P);
    world_boot(c->w, 3, false);
    CHECK(WITHIN(c, 500 * P, c->up_count == 7 && status_of(c, 3).attached));
    cluster_free(c);
}

static void test_nobody_is_locked_out_by_a_forged_life(void) {
    check_lockout(UINT64_MAX);
}

static void test_nobody_is_locked_out_by_a_forged_attempt(void) {
    check_lockout((uint64_t)1 << 32);
}

int main(void) {
    TEST(test_a_compare_with_a_body);
    TEST(test_operations_beyond_the_limits);
    TEST(test_a_transfer_beyond_the_heap);
    TEST(test_wishes_in_the_name_of_others);
    TEST(test_wishes_without_measure);
    TEST(test_requests_in_the_name_of_others);
    TEST(test_attaching_others);
    TEST(test_votes_in_the_name_of_others);
    TEST(test_records_in_the_name_of_others);
    TEST(test_a_record_of_a_neighbour);
    TEST(test_records_beyond_the_limits);
    TEST(test_nobody_is_locked_out_by_a_forged_life);
    TEST(test_nobody_is_locked_out_by_a_forged_attempt);
    return tap_finish();
}

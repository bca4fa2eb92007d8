/* SPDX-License-Identifier: MIT */
/* What the primitives refuse: requests beyond the limits, and what peers must not say.
 *
 * A refusal is told or counted under its reason, costs at most the link it came over, and disturbs
 * nobody else: after each of them a transfer to all nodes succeeds and everyone is who it was. */
#include "cluster.h"
#include "wire/message.h"

/* ---- requests beyond the limits ---- */

enum { NODES = 17 };

static const char too_long[] = "0123456789012345678901234567890123456789012345678901234567890123+";

static struct primitive with_local(struct primitive r, uint32_t event) {
    r.local_event = event;
    return r;
}

static struct primitive bulk(uint32_t offset, uint64_t bytes) {
    struct primitive r = request_of(PRIMITIVE_BULK);
    r.heap_offset = offset;
    r.buffer = 1;
    r.buffer_bytes = bytes;
    return r;
}

/* Each is refused in the very step in which it is made. */
static void test_bad_requests_are_refused_at_once(void) {
    enum { HEAP = 1024, VARIABLES = CLUSTER_VARIABLES, EVENTS = CLUSTER_EVENTS };
    const struct primitive bad[] = {
        xfer(0, too_long, DATA),
        xfer(HEAP - 3, "four", DATA),
        xfer(HEAP + 1, "", DATA),
        xfer(UINT32_MAX, "wraps", DATA),
        xfer(0, "event", EVENTS),
        xfer(0, "event", NO_EVENT - 1),
        with_local(xfer(0, "event", DATA), EVENTS),
        compare(VARIABLES, RELATION_EQ, 0),
        compare(NO_VARIABLE, RELATION_EQ, 0),
        compare(0, RELATIONS, 0),
        then_write(compare(0, RELATION_EQ, 0), VARIABLES, 1),
        bulk(0, HEAP + 1),
        bulk(HEAP - 99, 100),
        bulk(UINT32_MAX, 100),
        bulk(8, UINT64_MAX),
    };
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct call *x = cluster_ask(c, i % 2 ? 12 : c->root, NULL, bad[i]);
        CHECK_EQ(cluster_wait(c, x), OUTCOME_REFUSED);
        if (!CHECK_EQ(x->answered_at, x->asked_at))
            printf("#   request %zu\n", i);
        CHECK_EQ(x->result.culprit, NO_NODE);
        CHECK_EQ(x->result.order, 0);
    }
    struct call *nobody = cluster_ask(c, 12, "", xfer(0, "nobody", DATA));
    CHECK_EQ(cluster_wait(c, nobody), OUTCOME_REFUSED);
    CHECK_EQ(nobody->answered_at, nobody->asked_at);
    struct call *unknown = cluster_ask(c, 12, NULL, standing(VARIABLES, RELATION_EQ, 0));
    CHECK_EQ(cluster_wait(c, unknown), OUTCOME_REFUSED);
    CHECK_EQ(COUNT_NODES(c, heap_empty(c, n)), c->universe);
    CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_SIGNAL] > 0), 0);
    cluster_free(c);
}

static void test_requests_at_the_limits_are_done(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    char longest[TEXT_MAX + 1];
    memcpy(longest, too_long, TEXT_MAX);
    longest[TEXT_MAX] = 0;
    struct call *good[] = {
        cluster_ask(c, 12, NULL, xfer(1024 - TEXT_MAX, longest, CLUSTER_EVENTS - 1)),
        cluster_ask(c, 12, NULL, xfer(1024, "", DATA)),
        cluster_ask(c, 12, NULL, with_local(compare(7, RELATION_EQ, 0), CLUSTER_EVENTS - 1)),
        cluster_ask(c, 12, NULL, then_write(compare(0, RELATION_EQ, 0), 7, 1)),
        cluster_bulk(c, 12, NULL, 0, 1024 - TEXT_MAX, 1),
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_EQ(cluster_wait(c, good[i]), OUTCOME_DONE);
    CHECK_EQ(COUNT_NODES(c, heap_holds(c, n, 1024 - TEXT_MAX, longest)), c->universe);
    cluster_free(c);
}

/* Nobody answers a strobe or a SET: a bad one just does nothing. */
static void test_bad_strobes_and_sets_do_nothing(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    cluster_ask(c, 12, NULL, strobe(CLUSTER_EVENTS, "channel"));
    cluster_ask(c, 12, NULL, strobe(1, too_long));
    cluster_ask(c, c->root, NULL, strobe(UINT32_MAX, "channel"));
    cluster_ask(c, c->root, "", strobe(1, "nobody"));
    cluster_set(c, 12, CLUSTER_VARIABLES, 9);
    cluster_set(c, 12, NO_VARIABLE, 9);
    cluster_run(c, P);
    for (uint32_t n = 0; n < c->universe; n++) {
        CHECK_EQ(c->listeners[n].count[INPUT_STROBE], 0);
        CHECK_EQ(c->listeners[n].count[INPUT_COMPLETION], 0);
        for (uint32_t v = 0; v < CLUSTER_VARIABLES; v++)
            CHECK_EQ(variable_of(c, n, v), 0);
    }
    cluster_ask(c, 12, NULL, strobe(1, "good"));
    cluster_run(c, P);
    CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_STROBE] == 1), c->universe);
    cluster_free(c);
}

static void test_more_requests_than_a_node_may_have(void) {
    for (uint32_t from = 16; from <= 17; from++) { /* a leaf, the root */
        struct cluster *c = cluster_new(NODES, SHAPE_KARY, 2);
        c->config.prim.limits.outstanding = 4;
        CHECK(cluster_power(c, NODES));
        for (uint32_t round = 0; round < 2; round++) {
            struct call *x[7];
            for (uint32_t i = 0; i < 7; i++)
                x[i] = cluster_ask(c, from, "n[0-16]", xfer(8 * i, "asked", DATA));
            for (uint32_t i = 0; i < 7; i++) {
                CHECK_EQ(cluster_wait(c, x[i]), i < 4 ? OUTCOME_DONE : OUTCOME_REFUSED);
                CHECK(i < 4 || x[i]->answered_at == x[i]->asked_at);
            }
        }
        CHECK_EQ(COUNT_NODES(c, event_of(c, n, DATA) == 8), NODES);
        cluster_free(c);
    }
}

/* Everyone asks at once and more than the root has room for: some are refused, none is lost. */
static void test_full_table_of_the_root(void) {
    struct cluster *c = cluster_new(NODES, SHAPE_KARY, 2);
    c->config.prim.limits.window = 2;
    c->config.prim.limits.queue = 3;
    c->config.prim.limits.standing = 1;
    CHECK(cluster_power(c, NODES));
    for (uint32_t i = 0; i < 4 * NODES; i++)
        cluster_ask(c, i % NODES, NULL, xfer(i, "crowd", DATA));
    uint32_t done = 0, refused = 0;
    for (uint32_t i = 0; i < c->call_count; i++) {
        enum outcome outcome = cluster_wait(c, &c->calls[i]);
        done += outcome == OUTCOME_DONE;
        refused += outcome == OUTCOME_REFUSED;
    }
    CHECK_EQ(done + refused, 4 * NODES);
    CHECK(refused > 0 && done >= 6);
    CHECK_EQ(COUNT_NODES(c, event_of(c, n, DATA) == done), c->universe);
    for (uint32_t n = 0; n < c->universe; n++) { /* and nothing is left behind */
        struct call *x = cluster_ask(c, n, NULL, xfer(0, "after", OTHER));
        CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
    }
    cluster_free(c);
}

static void test_more_standing_compares_than_fit(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct call *x[6];
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 6; i++)
            x[i] = cluster_ask(c, c->root, NULL, standing(0, RELATION_GE, round + 1));
        CHECK_EQ(cluster_wait(c, x[4]), OUTCOME_REFUSED);
        CHECK_EQ(cluster_wait(c, x[5]), OUTCOME_REFUSED);
        struct call *other = cluster_ask(c, 3, NULL, xfer(0, "others go on", DATA));
        CHECK_EQ(cluster_wait(c, other), OUTCOME_DONE);
        for (uint32_t i = 0; i < 4; i++)
            CHECK_EQ(x[i]->answers, 0);
        cluster_set_all(c, 0, round + 1);
        for (uint32_t i = 0; i < 4; i++)
            CHECK_EQ(cluster_wait(c, x[i]), OUTCOME_DONE);
    }
    cluster_free(c);
}

/* ---- what peers must not say ---- */

/* A chain: the root's only link is to node 0, the leaf's only one to the node before it. */
enum { LINE = 5, ROOT = LINE, LEAF = LINE - 1 };

static struct cluster *line(void) {
    struct cluster *c = cluster_start(LINE, SHAPE_CHAIN, 0);
    CHECK_EQ(world_links(c->w, ROOT), 1);
    CHECK_EQ(world_links(c->w, LEAF), 1);
    uint32_t waves = c->listeners[ROOT].count[INPUT_WAVE];
    CHECK(WITHIN(c, 2 * P, c->listeners[ROOT].count[INPUT_WAVE] > waves)); /* then it is quiet */
    return c;
}

static struct header header_from(uint32_t sender, uint16_t type) {
    return (struct header){.magic = HEADER_MAGIC,
                           .version = HEADER_VERSION,
                           .lane = LANE_CONTROL,
                           .type = type,
                           .sequence = 1,
                           .epoch = 1,
                           .node = sender,
                           .life = 1};
}

/* Link ends of all nodes, and the fewest there were since `lows` was reset. */
static void count_links(struct cluster *c, uint32_t node) {
    (void)node;
    uint64_t links = 0;
    for (uint32_t n = 0; n < c->universe; n++)
        links += world_links(c->w, n);
    if (links < c->seen[0])
        c->seen[0] = links;
}

/* Nobody has come to harm: all are attached members as before, and a transfer to all succeeds. */
static void check_well(struct cluster *c) {
    CHECK(WITHIN(c, 4 * P, COUNT_NODES(c, status_of(c, n).attached) == c->universe));
    CHECK_EQ(cluster_wait(c, cluster_ask(c, 2, NULL, xfer(8, "all is well", DATA))), OUTCOME_DONE);
    CHECK_EQ(COUNT_NODES(c, heap_holds(c, n, 8, "all is well")), c->universe);
    CHECK_EQ(COUNT_NODES(c, status_of(c, n).incarnation >> 32 == world_boots(c->w, n)),
             c->universe);
    CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_JOINED] == world_boots(c->w, n)),
             c->universe);
    CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_FENCED] > 0), 0);
}

/* The bytes arrive at a node: refused for this reason, once, at the price of this link. */
static void check_refused(struct cluster *c, uint32_t at, const uint8_t *bytes, size_t len,
                          enum refusal reason) {
    struct world_counts before = *world_counts(c->w);
    c->look = count_links;
    c->seen[0] = UINT64_MAX;
    count_links(c, 0);
    uint64_t links = c->seen[0];
    world_garbage(c->w, at, 0, bytes, len);
    cluster_run(c, P / 2);
    for (uint32_t r = 0; r < REFUSALS; r++)
        if (!CHECK_EQ(world_counts(c->w)->refused[r] - before.refused[r], r == reason))
            printf("#   refused as %s, not as %s\n", refusal_name((enum refusal)r),
                   refusal_name(reason));
    CHECK(c->seen[0] >= links - 2); /* a link has two ends */
    check_well(c);
}

static void check_frame(struct header h, uint32_t at, size_t len, enum refusal reason) {
    struct cluster *c = line();
    uint8_t frame[HEADER_BYTES + 4] = {0};
    header_encode(&h, frame);
    check_refused(c, at, frame, len, reason);
    cluster_free(c);
}

static void test_frames_that_are_none(void) {
    for (uint32_t at = LEAF; at <= ROOT; at++) {
        uint32_t peer = at == ROOT ? 0 : LEAF - 1;
        struct header good = header_from(peer, at == ROOT ? MESSAGE_TOCK : (uint16_t)MESSAGE_TICK);
        good.length = 4;
        struct header h = good;
        check_frame(h, at, HEADER_BYTES - 1, REFUSAL_TRUNCATED);
        h.magic ^= 1;
        check_frame(h, at, HEADER_BYTES + 4, REFUSAL_MAGIC);
        h = good, h.version++;
        check_frame(h, at, HEADER_BYTES + 4, REFUSAL_VERSION);
        h = good, h.type = MESSAGE_TYPES;
        check_frame(h, at, HEADER_BYTES + 4, REFUSAL_TYPE);
        h = good, h.lane = LANE_BULK;
        check_frame(h, at, HEADER_BYTES + 4, REFUSAL_LANE);
        h = good, h.length = UINT32_MAX;
        check_frame(h, at, HEADER_BYTES, REFUSAL_SIZE);
        h = good, h.node++;
        check_frame(h, at, HEADER_BYTES + 4, REFUSAL_SENDER);
        h = good, h.life++;
        check_frame(h, at, HEADER_BYTES + 4, REFUSAL_SENDER);
        h = good, h.sequence = 100000;
        check_frame(h, at, HEADER_BYTES + 4, REFUSAL_GAP);
        check_frame(good, at, HEADER_BYTES + 4, REFUSAL_DUPLICATE);
    }
}

static void test_messages_their_sender_may_not_send(void) {
    for (uint16_t type = MESSAGE_NONE + 1; type < MESSAGE_TYPES; type++) {
        const struct message_rule *rule = message_rule(type);
        if (!(rule->from & 1U << ROLE_CHILD)) { /* a DECIDE from a child, say */
            struct header h = header_from(0, type);
            h.lane = rule->lane;
            check_frame(h, ROOT, HEADER_BYTES, REFUSAL_ROLE);
        }
        if (!(rule->from & 1U << ROLE_PARENT)) {
            struct header h = header_from(LEAF - 1, type);
            h.lane = rule->lane;
            check_frame(h, LEAF, HEADER_BYTES, REFUSAL_ROLE);
        }
    }
}

/* Noise on every link of every node, one after the other. */
static void test_noise(void) {
    uint8_t noise[200];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)(i * i * 31 + 7);
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 3);
    for (uint32_t n = 0; n < c->universe; n++) {
        for (uint32_t pick = 0; pick < 3; pick++) {
            world_garbage(c->w, n, pick, noise, sizeof noise);
            cluster_run(c, P / 4);
        }
    }
    CHECK(world_counts(c->w)->refused[REFUSAL_MAGIC] >= 3 * c->universe);
    check_well(c);
    cluster_free(c);
}

/* A frame that passes the gate: behind what has come, but in place of the sender's next one. Those
 * with too low a number are dropped as duplicates, so the right number is found by counting up. */
static void inject(struct cluster *c, uint32_t at, struct header h, struct bytes body) {
    uint8_t frame[HEADER_BYTES + 256];
    ASSERT(body.len <= 256);
    const uint64_t *duplicates = &world_counts(c->w)->refused[REFUSAL_DUPLICATE];
    h.length = (uint32_t)body.len;
    if (body.len > 0)
        memcpy(frame + HEADER_BYTES, body.at, body.len);
    for (uint64_t before = *duplicates;; before++) {
        header_encode(&h, frame);
        world_garbage(c->w, at, 0, frame, HEADER_BYTES + body.len);
        cluster_run(c, 5 * NS_PER_US);
        if (*duplicates == before)
            return;
        h.sequence++;
    }
}

static void test_bodies_that_do_not_decode(void) {
    static const size_t lengths[] = {1, 7, 33, 61}; /* that no message has, of ones */
    uint8_t ones[64];
    memset(ones, 0xFF, sizeof ones);
    for (uint16_t type = MESSAGE_NONE + 1; type < MESSAGE_WANT; type++) {
        bool down = message_rule(type)->from & 1U << ROLE_PARENT;
        uint32_t at = down ? LEAF : ROOT;
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            struct cluster *c = line();
            inject(c, at, header_from(down ? LEAF - 1 : 0, type), bytes_of(ones, lengths[i]));
            if (!CHECK_EQ(world_counts(c->w)->refused[REFUSAL_BODY], 1))
                printf("#   %s of %zu bytes\n", message_rule(type)->name, lengths[i]);
            CHECK_EQ(status_of(c, at).refused[REFUSAL_BODY], 1);
            CHECK_EQ(world_links(c->w, at), 0);
            check_well(c);
            cluster_free(c);
        }
    }
}

static void test_messages_of_another_epoch(void) {
    for (uint32_t epoch = 1; epoch <= 3; epoch += 2) {
        for (uint32_t at = LEAF; at <= ROOT; at++) {
            struct cluster *c = line();
            world_crash(c->w, ROOT);
            world_boot(c->w, ROOT, true);
            CHECK(WITHIN(c, 20 * P, c->up_count == c->universe));
            cluster_run(c, 2 * P + P / 2);
            CHECK_EQ(status_of(c, at).epoch, 2);
            struct prim_status before = status_of(c, at);
            struct header h = header_from(at == ROOT ? 0 : LEAF - 1,
                                          at == ROOT ? MESSAGE_LOST : (uint16_t)MESSAGE_DECIDE);
            h.epoch = epoch;
            uint8_t body[256];
            struct nodeset everyone;
            set_of(c, &everyone, NULL);
            union message m = {.decide = {.order = 1, .commit = true, .set = &everyone}};
            if (at == ROOT)
                m.lost = (struct message_lost){.node = 0, .set = &everyone};
            long len = message_encode(h.type, &m, room_of(body, sizeof body));
            inject(c, at, h, bytes_of(body, (size_t)len));
            CHECK_EQ(status_of(c, at).refused[REFUSAL_EPOCH], before.refused[REFUSAL_EPOCH] + 1);
            CHECK_EQ(world_links(c->w, at), 1); /* dropped, no more */
            cluster_run(c, 2 * P);              /* the frame it stood for was a heartbeat */
            check_well(c);
            free(everyone.storage);
            cluster_free(c);
        }
    }
}

/* Well-formed, permitted, and about nothing that is: unasked answers, unknown numbers. */
static void test_messages_without_meaning(void) {
    static uint8_t words[8 * CLUSTER_VARIABLES];
    struct cluster *c = line();
    struct nodeset everyone, nobody;
    set_of(c, &everyone, NULL);
    set_of(c, &nobody, "");
    struct bytes variables = bytes_of(words, sizeof words);
    struct op_id stranger = {.node = 77, .number = 5, .incarnation = 99};
    struct op_id former = {.node = 0, .number = 1, .incarnation = 1};
    struct op_id mine = {.node = LEAF, .number = 40, .incarnation = (uint64_t)1 << 32};
    struct {
        uint32_t at;
        uint16_t type;
        union message m;
    } cases[] = {
        {ROOT, MESSAGE_ACK, {.ack = {ACK_PREPARE, true, 12345, &everyone}}},
        {ROOT, MESSAGE_ACK, {.ack = {ACK_DECIDE, false, 12345, &everyone}}},
        {ROOT, MESSAGE_ACK, {.ack = {ACK_VIEW, false, UINT64_MAX, &everyone}}},
        {ROOT, MESSAGE_ACK, {.ack = {ACK_ARM, false, 1, &nobody}}},
        {ROOT, MESSAGE_RECEIVED, {.received = {.id = stranger}}},
        {ROOT, MESSAGE_TOCK, {.tock = {.tick = UINT64_MAX, .nodes = 9, .complete = true}}},
        {ROOT, MESSAGE_DONATION, {.donation = {.node = 0, .variables = variables}}},
        {ROOT, MESSAGE_LOST, {.lost = {.set = &nobody, .node = 3}}},
        {ROOT, MESSAGE_REQUEST, {.request = {.id = stranger, .set = &everyone}}},
        {ROOT, MESSAGE_REQUEST, {.request = {.id = former, .epoch = 1, .set = &everyone}}},
        {ROOT, MESSAGE_ATTACH, {.attach = {.node = 77, .below = &nobody, .members = &nobody}}},
        {LEAF, MESSAGE_DECIDE, {.decide = {.order = 12345, .commit = true, .set = &everyone}}},
        {LEAF, MESSAGE_RESULT, {.result = {.id = mine, .outcome = OUTCOME_DONE}}},
        {LEAF, MESSAGE_RESULT, {.result = {.id = former, .outcome = OUTCOME_DONE}}},
        {LEAF, MESSAGE_FENCED, {.fenced = {.node = LEAF, .incarnation = 7}}},
        {LEAF, MESSAGE_FENCED, {.fenced = {.node = 77, .incarnation = 7}}},
        {LEAF,
         MESSAGE_ARM,
         {.arm = {.number = 3, .set = &everyone, .variable = CLUSTER_VARIABLES}}},
        {LEAF, MESSAGE_STROBE, {.strobe = {CLUSTER_EVENTS, 9, &everyone, variables}}},
        {LEAF, MESSAGE_ATTACHED, {.attached = {.set = &everyone}}},
        {LEAF, MESSAGE_VIEW, {.view = {.view = 99, .members = &nobody, .joined = &nobody}}},
        {LEAF, MESSAGE_DONATE, {.donate = {.node = 1, .incarnation = 7}}},
        {LEAF, MESSAGE_EPOCH, {.epoch = {.root = ROOT}}}, /* once more: it attaches once more */
    };
    cluster_free(c);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        c = line();
        uint8_t body[256];
        long len = message_encode(cases[i].type, &cases[i].m, room_of(body, sizeof body));
        ASSERT(len >= 0);
        inject(c, cases[i].at, header_from(cases[i].at == ROOT ? 0 : LEAF - 1, cases[i].type),
               bytes_of(body, (size_t)len));
        if (!CHECK_EQ(world_links(c->w, cases[i].at), 1))
            printf("#   case %zu\n", i);
        cluster_run(c, 2 * P);
        CHECK_EQ(c->listeners[LEAF].count[INPUT_STROBE], 0);
        CHECK_EQ(c->listeners[LEAF].count[INPUT_SIGNAL], 0);
        check_well(c);
        cluster_free(c);
    }
    free(everyone.storage);
    free(nobody.storage);
}

/* Three nodes directly below the root; the root's first link is node 0's. */
static struct cluster *siblings(void) {
    struct cluster *c = cluster_new(3, SHAPE_FLAT, 0);
    CHECK(cluster_power(c, 1));
    for (uint32_t n = 1; n < 3; n++) {
        world_boot(c->w, n, false);
        CHECK(WITHIN(c, 4 * P, c->up_count == n + 2));
    }
    return c;
}

/* Node 0 says something in the name of node 1; the root does not believe a word. */
static void test_a_child_speaks_for_nobody_else(void) {
    struct cluster *c = siblings();
    struct nodeset everyone, victim, nobody;
    set_of(c, &everyone, NULL);
    set_of(c, &victim, "n1");
    set_of(c, &nobody, "");
    uint64_t life = (uint64_t)1 << 32;
    struct {
        uint16_t type;
        union message m;
    } cases[] = {
        {MESSAGE_REQUEST,
         {.request = {.id = {1, 1000, life}, .epoch = 1, .timeout_ns = P, .set = &everyone}}},
        {MESSAGE_ATTACH,
         {.attach = {.node = 1,
                     .incarnation = life,
                     .attempt = UINT64_MAX,
                     .member = true,
                     .member_epoch = 1,
                     .below = &victim,
                     .members = &nobody}}},
        {MESSAGE_ATTACH,
         {.attach = {.node = 1,
                     .incarnation = UINT64_MAX,
                     .attempt = UINT64_MAX,
                     .below = &victim,
                     .members = &nobody}}},
        {MESSAGE_LOST, {.lost = {.set = &victim, .node = 1}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t body[256];
        long len = message_encode(cases[i].type, &cases[i].m, room_of(body, sizeof body));
        ASSERT(len >= 0);
        inject(c, c->root, header_from(0, cases[i].type), bytes_of(body, (size_t)len));
        cluster_run(c, 2 * P);
        CHECK_EQ(COUNT_NODES(c, event_of(c, n, DATA) == i), c->universe);
        struct call *x = cluster_ask(c, 1, NULL, xfer(8, "its own words", DATA));
        CHECK_EQ(cluster_wait(c, x), OUTCOME_DONE);
        if (!CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_JOINED] == 1), c->universe))
            printf("#   case %zu\n", i);
    }
    CHECK_EQ(COUNT_NODES(c, c->listeners[n].count[INPUT_FENCED] > 0), 0);
    free(everyone.storage);
    free(victim.storage);
    free(nobody.storage);
    cluster_free(c);
}

/* Nor does it take one node's yes for another's. */
static void test_a_child_votes_for_nobody_else(void) {
    struct cluster *c = siblings();
    struct call *first = cluster_ask(c, c->root, NULL, xfer(0, "first", DATA));
    CHECK_EQ(cluster_wait(c, first), OUTCOME_DONE);
    world_pause(c->w, 1, world_now(c->w) + 2 * P);
    struct primitive r = xfer(0, "second", DATA);
    r.timeout_ns = P;
    struct call *x = cluster_ask(c, c->root, NULL, r);
    CHECK(WITHIN(c, P, x->asked));
    cluster_run(c, P / 4);
    struct nodeset everyone;
    set_of(c, &everyone, NULL);
    union message m = {.ack = {ACK_PREPARE, false, first->result.order + 1, &everyone}};
    uint8_t body[256];
    long len = message_encode(MESSAGE_ACK, &m, room_of(body, sizeof body));
    inject(c, c->root, header_from(0, MESSAGE_ACK), bytes_of(body, (size_t)len));
    CHECK_EQ(cluster_wait(c, x), OUTCOME_FAILED);
    CHECK_EQ(x->result.order, first->result.order + 1);
    CHECK_EQ(x->result.culprit, 1);
    cluster_run(c, 4 * P);
    CHECK_EQ(COUNT_NODES(c, heap_holds(c, n, 0, "first")), c->universe);
    free(everyone.storage);
    cluster_free(c);
}

/* The answer to a request of a former life is none to one of this life. */
static void test_results_of_a_former_life(void) {
    struct cluster *c = line();
    struct primitive r = standing(0, RELATION_EQ, 1);
    struct call *x = cluster_ask(c, LEAF, NULL, r);
    cluster_run(c, P / 8);
    uint8_t body[256];
    for (uint32_t number = 0; number < 4; number++) {
        struct op_id id = {.node = LEAF, .number = number, .incarnation = 7};
        union message m = {.result = {.id = id, .outcome = OUTCOME_DONE, .order = 99}};
        long len = message_encode(MESSAGE_RESULT, &m, room_of(body, sizeof body));
        inject(c, LEAF, header_from(LEAF - 1, MESSAGE_RESULT), bytes_of(body, (size_t)len));
    }
    CHECK_EQ(x->answers, 0);
    CHECK_EQ(status_of(c, LEAF).refused[REFUSAL_LIFE], 4);
    CHECK_EQ(world_links(c->w, LEAF), 1);
    cluster_free(c);
}

/* Of strobes only the newest counts: one that was overtaken is not delivered any more. */
static void test_overtaken_strobes(void) {
    struct cluster *c = line();
    struct nodeset everyone;
    set_of(c, &everyone, NULL);
    cluster_ask(c, ROOT, NULL, strobe(1, "newest"));
    cluster_run(c, P / 4);
    const struct heard *h = heard_from(c, 0, LEAF, INPUT_STROBE);
    if (CHECK(h != NULL)) {
        union message m = {.strobe = {1, h->in.strobe.number - 1, &everyone, {0}}};
        uint8_t body[256];
        for (uint64_t number = 0; number < 2; number++) { /* an older one, the same once more */
            m.strobe.number += number;
            long len = message_encode(MESSAGE_STROBE, &m, room_of(body, sizeof body));
            inject(c, LEAF, header_from(LEAF - 1, MESSAGE_STROBE), bytes_of(body, (size_t)len));
        }
        CHECK_EQ(c->listeners[LEAF].count[INPUT_STROBE], 1);
        m.strobe.number++;
        long len = message_encode(MESSAGE_STROBE, &m, room_of(body, sizeof body));
        inject(c, LEAF, header_from(LEAF - 1, MESSAGE_STROBE), bytes_of(body, (size_t)len));
        CHECK_EQ(c->listeners[LEAF].count[INPUT_STROBE], 2);
    }
    free(everyone.storage);
    cluster_free(c);
}

int main(void) {
    TEST(test_bad_requests_are_refused_at_once);
    TEST(test_requests_at_the_limits_are_done);
    TEST(test_bad_strobes_and_sets_do_nothing);
    TEST(test_more_requests_than_a_node_may_have);
    TEST(test_full_table_of_the_root);
    TEST(test_more_standing_compares_than_fit);
    TEST(test_frames_that_are_none);
    TEST(test_messages_their_sender_may_not_send);
    TEST(test_noise);
    TEST(test_bodies_that_do_not_decode);
    TEST(test_messages_of_another_epoch);
    TEST(test_messages_without_meaning);
    TEST(test_a_child_speaks_for_nobody_else);
    TEST(test_a_child_votes_for_nobody_else);
    TEST(test_results_of_a_former_life);
    TEST(test_overtaken_strobes);
    return tap_finish();
}

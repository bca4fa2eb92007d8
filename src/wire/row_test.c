/* SPDX-License-Identifier: MIT */
/* Rows survive a round trip, one behind the other; what is cut or garbled is refused. */
#include "wire/row.h"

#include <errno.h>
#include <string.h>

#include "base/random.h"
#include "tap.h"

enum { ROOM = 2048, ROWS = 3 };

static struct job_row job(uint32_t number) {
    return (struct job_row){.job = number,
                            .run = run_of(number, 1),
                            .state = STATE_RUNNING,
                            .kind = JOB_BATCH,
                            .flags = JOB_REQUEUE,
                            .procs = 16,
                            .nodes = 4,
                            .ppn = 4,
                            .priority = -3,
                            .array = 9,
                            .submitted_ns = 5,
                            .begin_ns = 8,
                            .started_ns = 6,
                            .limit_ns = UINT64_MAX,
                            .expected_ns = 77,
                            .reservation = bytes_from_str("r1"),
                            .name = bytes_from_str("sleep"),
                            .node_list = bytes_from_str("n[0-3]"),
                            .why = bytes_from_str(""),
                            .measured = true,
                            .usage = {1, 2, 3, 4, 5, 6, 7, 8},
                            .measured_ns = 88,
                            .measured_nodes = 3,
                            .peak_where = bytes_from_str("n1"),
                            .node_where = bytes_from_str("n22")};
}

static const uint8_t jobs[8] = {1, 0, 0, 0, 2, 0, 0, 0};

static struct node_row node(uint32_t number) {
    return (struct node_row){.node = number,
                             .state = NODE_DRAINED,
                             .pes = 4,
                             .used = 2,
                             .since_ns = 99,
                             .name = bytes_from_str("n7"),
                             .reason = bytes_from_str("its fan"),
                             .jobs = bytes_of(jobs, sizeof jobs),
                             .traits = bytes_from_str("MEM=2GB"),
                             .seen_ns = 11,
                             .load_x100 = 312,
                             .memory_bytes = 13,
                             .memory_used = 12,
                             .owner = NODE_OWNER_ACTIVE};
}

static const struct cluster_row cluster = {.epoch = 3,
                                           .nodes = 64,
                                           .up = 63,
                                           .pes = 256,
                                           .used = 16,
                                           .queued = 5,
                                           .running = 4,
                                           .started_ns = 1234};

static struct policy_row policy(void) {
    return (struct policy_row){.chosen = 1,
                               .sliced = 1,
                               .slots = 4,
                               .rows = 2,
                               .quantum_ns = 50,
                               .samples = 7,
                               .skew_ns = 1,
                               .skew99_ns = 2,
                               .reach_ns = 3,
                               .reach99_ns = 4,
                               .missed = 5,
                               .unprompt = 6,
                               .unwhole = 8,
                               .name = bytes_from_str("gang"),
                               .words = bytes_from_str("shares time"),
                               .fault = bytes_from_str("was wrong")};
}

static struct reservation_row reservation(void) {
    return (struct reservation_row){.open = 1,
                                    .nodes = 3,
                                    .waiting = 4,
                                    .running = 5,
                                    .from_ns = 6,
                                    .to_ns = 7,
                                    .name = bytes_from_str("repair"),
                                    .node_list = bytes_from_str("n[0-2]")};
}

static struct peer_row peer(uint32_t number) {
    return (struct peer_row){.place = number,
                             .job = 2,
                             .rank = 3,
                             .number = 4,
                             .node = 5,
                             .host = 6,
                             .reach = {.token = {7, 8}, .door = 9, .ip = {10, 11}, .port = 12},
                             .name = bytes_from_str("worker"),
                             .class_name = bytes_from_str("large")};
}

enum { KINDS = 6 };

/* All kinds alike: `kind` is 0 for jobs, 1 for nodes, 2 for the cluster, 3 for policies, 4 for reservations, 5 for peers. */
static long encode(int kind, uint32_t number, struct room out) {
    struct job_row j = job(number);
    struct node_row n = node(number);
    if (kind == 0)
        return job_row_encode(&j, out);
    struct policy_row p = policy();
    if (kind == 3)
        return policy_row_encode(&p, out);
    struct reservation_row r = reservation();
    if (kind == 4)
        return reservation_row_encode(&r, out);
    struct peer_row e = peer(number);
    if (kind == 5)
        return peer_row_encode(&e, out);
    return kind == 1 ? node_row_encode(&n, out) : cluster_row_encode(&cluster, out);
}

static int next(int kind, struct bytes rows, size_t *at) {
    struct job_row j;
    struct node_row n;
    struct cluster_row c;
    if (kind == 0)
        return job_row_next(rows, at, &j);
    struct policy_row p;
    if (kind == 3)
        return policy_row_next(rows, at, &p);
    struct reservation_row r;
    if (kind == 4)
        return reservation_row_next(rows, at, &r);
    struct peer_row e;
    if (kind == 5)
        return peer_row_next(rows, at, &e);
    return kind == 1 ? node_row_next(rows, at, &n) : cluster_row_next(rows, at, &c);
}

static size_t encode_some(int kind, uint8_t *out) {
    size_t len = 0;
    for (uint32_t i = 0; i < ROWS; i++) {
        long one = encode(kind, i, room_of(out + len, ROOM - len));
        CHECK(one > 4);
        len += one > 0 ? (size_t)one : 0;
    }
    return len;
}

static void test_round_trip(void) {
    uint8_t bytes[ROOM];
    size_t at = 0, len = encode_some(0, bytes);
    struct job_row j;
    for (uint32_t i = 0; i < ROWS; i++) {
        CHECK_EQ(job_row_next(bytes_of(bytes, len), &at, &j), 1);
        CHECK(j.job == i && j.run == run_of(i, 1) && j.state == STATE_RUNNING);
        CHECK(j.kind == JOB_BATCH && j.flags == JOB_REQUEUE && j.priority == -3 && j.array == 9);
        CHECK(j.procs == 16 && j.nodes == 4 && j.ppn == 4 && j.limit_ns == UINT64_MAX);
        CHECK(j.expected_ns == 77 && j.reservation.len == 2);
        CHECK(j.submitted_ns == 5 && j.started_ns == 6 && j.ended_ns == 0 && j.begin_ns == 8);
        CHECK(j.measured && j.measured_ns == 88 && j.measured_nodes == 3);
        CHECK(usage_same(&j.usage, &(struct usage){1, 2, 3, 4, 5, 6, 7, 8}));
        CHECK(j.peak_where.len == 2 && j.node_where.len == 3);
        CHECK(j.name.len == 5 && j.node_list.len == 6 && j.why.len == 0);
    }
    CHECK_EQ(job_row_next(bytes_of(bytes, len), &at, &j), 0);
    struct node_row n;
    len = encode_some(1, bytes);
    at = 0;
    CHECK_EQ(node_row_next(bytes_of(bytes, len), &at, &n), 1);
    CHECK_EQ(node_row_next(bytes_of(bytes, len), &at, &n), 1);
    CHECK(n.node == 1 && n.state == NODE_DRAINED && n.pes == 4 && n.used == 2 && n.since_ns == 99);
    CHECK(n.reason.len == 7 && n.jobs.len == 8 && memcmp(n.jobs.at, jobs, 8) == 0);
    CHECK(n.seen_ns == 11 && n.load_x100 == 312 && n.memory_bytes == 13 && n.memory_used == 12);
    struct cluster_row c;
    len = encode_some(2, bytes);
    at = 0;
    CHECK_EQ(cluster_row_next(bytes_of(bytes, len), &at, &c), 1);
    CHECK(c.epoch == 3 && c.nodes == 64 && c.up == 63 && c.pes == 256 && c.used == 16);
    CHECK(c.queued == 5 && c.running == 4 && c.started_ns == 1234);
    struct policy_row p;
    len = encode_some(3, bytes);
    at = 0;
    CHECK_EQ(policy_row_next(bytes_of(bytes, len), &at, &p), 1);
    CHECK(p.chosen && p.sliced && p.slots == 4 && p.rows == 2 && p.quantum_ns == 50);
    CHECK(p.samples == 7 && p.skew_ns == 1 && p.skew99_ns == 2 && p.reach_ns == 3);
    CHECK(p.reach99_ns == 4 && p.missed == 5 && p.unprompt == 6 && p.unwhole == 8);
    CHECK(p.name.len == 4 && p.words.len == 11 && p.fault.len == 9);
    struct reservation_row r;
    len = encode_some(4, bytes);
    at = 0;
    CHECK_EQ(reservation_row_next(bytes_of(bytes, len), &at, &r), 1);
    CHECK(r.open && r.nodes == 3 && r.waiting == 4 && r.running == 5 && r.from_ns == 6);
    CHECK(r.to_ns == 7 && r.name.len == 6 && r.node_list.len == 6);
}

/* Cut between rows there are fewer of them; cut anywhere else that is seen, and it ends. */
static void test_a_peer_comes_back(void) {
    uint8_t bytes[ROOM];
    size_t at = 0;
    struct peer_row back, e = peer(1);
    long len = peer_row_encode(&e, room_of(bytes, sizeof bytes));
    CHECK(len > 0 && peer_row_next(bytes_of(bytes, (size_t)len), &at, &back) == 1);
    CHECK(back.place == 1 && back.job == 2 && back.rank == 3 && back.number == 4 &&
          back.node == 5 && back.host == 6);
    CHECK(back.reach.token[0] == 7 && back.reach.token[1] == 8 && back.reach.door == 9 &&
          back.reach.ip[0] == 10 && back.reach.ip[1] == 11 && back.reach.port == 12);
    CHECK(bytes_equal(back.name, e.name) && bytes_equal(back.class_name, e.class_name));
}

static void test_truncation(void) {
    uint8_t bytes[ROOM];
    for (int kind = 0; kind < KINDS; kind++) {
        size_t len = encode_some(kind, bytes);
        for (size_t cut = 0; cut <= len; cut++) {
            size_t at = 0;
            int status = 1;
            while (status == 1)
                status = next(kind, bytes_of(bytes, cut), &at);
            CHECK_EQ(status, cut % (len / ROWS) == 0 ? 0 : -EBADMSG);
            CHECK(at <= cut);
        }
        for (size_t room = 0; room < len / ROWS; room++)
            CHECK_EQ(encode(kind, 0, room_of(bytes, room)), -ENOBUFS);
    }
}

static void test_a_row_is_exactly_as_long_as_it_says(void) {
    uint8_t bytes[ROOM] = {0};
    for (int kind = 0; kind < KINDS; kind++) {
        long len = encode(kind, 1, room_of(bytes, sizeof bytes));
        uint32_t inner = load_le32(bytes);
        CHECK_EQ(inner, len - 4);
        for (uint32_t said = 0; said < inner + 9; said++) {
            size_t at = 0;
            store_le32(bytes, said);
            CHECK_EQ(next(kind, bytes_of(bytes, sizeof bytes), &at), said == inner ? 1 : -EBADMSG);
        }
        size_t at = 0;
        store_le32(bytes, UINT32_MAX);
        CHECK_EQ(next(kind, bytes_of(bytes, sizeof bytes), &at), -EBADMSG);
    }
}

static void test_garbage_never_hurts(void) {
    uint8_t bytes[ROOM];
    struct random r;
    random_init(&r, 5);
    for (int round = 0; round < 30000; round++) {
        int kind = round % KINDS;
        size_t len = random_below(&r, sizeof bytes);
        if (round % 2 == 0) {
            len = encode_some(kind, bytes);
            bytes[random_below(&r, len)] = (uint8_t)random_below(&r, 256);
        } else {
            random_bytes(&r, bytes, len);
        }
        size_t at = 0;
        int status = 1;
        for (int rows = 0; rows < ROOM && status == 1; rows++)
            status = next(kind, bytes_of(bytes, len), &at);
        CHECK(status == 0 || status == -EBADMSG);
        CHECK(at <= len);
    }
}

static void test_names(void) {
    CHECK(strcmp(node_state_name(NODE_UP), "up") == 0);
    CHECK(strcmp(node_state_name(NODE_STATES), "?") == 0);
}

int main(void) {
    TEST(test_round_trip);
    TEST(test_a_peer_comes_back);
    TEST(test_truncation);
    TEST(test_a_row_is_exactly_as_long_as_it_says);
    TEST(test_garbage_never_hurts);
    TEST(test_names);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Tests of shared processors: who runs when, what a turn costs, and that a cluster works on them. */
#include "sim/measure.h"
#include "sim/puppet.h"
#include "tap.h"

#define US NS_PER_US

enum { UP_TYPE = MESSAGE_ACK, DOWN_TYPE = MESSAGE_TICK, SEAT = 4 };

/* Each cost has digits of its own, so a sum says what it is made of. */
enum { IDLE = 100000, WAKE = 10000, SLEEP = 1000, RECEIVE = 100, SEND = 20, POLL = 7, STEP = 1 };

static struct link_model machine_of(uint64_t cores) {
    return (struct link_model){.cores = cores,
                               .connect_ns = 50 * US,
                               .core_idle_ns = IDLE,
                               .cpu_wake_ns = WAKE,
                               .cpu_poll_ns = POLL,
                               .cpu_sleep_ns = SLEEP,
                               .cpu_receive_ns = RECEIVE,
                               .cpu_send_ns = SEND,
                               .cpu_step_ns = STEP};
}

/* Nodes 0 to 3 below the seat, which then talks to all of them. */
#define FAN                                                      \
    {.at = US, .node = 0, .kind = ACT_OPEN, .peer = SEAT},       \
        {.at = US, .node = 1, .kind = ACT_OPEN, .peer = SEAT},   \
        {.at = US, .node = 2, .kind = ACT_OPEN, .peer = SEAT}, { \
        .at = US, .node = 3, .kind = ACT_OPEN, .peer = SEAT      \
    }

#define BEGIN (10 * NS_PER_MS)

static uint64_t heard_at(const struct stage *s, uint32_t node, uint32_t nth) {
    return stage_heard(s, node, INPUT_MESSAGE, nth)->in.now;
}

static const struct act spread[] = {
    FAN,
    {.at = BEGIN, .node = SEAT, .kind = ACT_SPREAD, .type = DOWN_TYPE, .text = "x"},
};

static void test_one_core_serialises(void) {
    struct stage *s = STAGE(machine_of(1), spread);
    world_run_until(s->w, 2 * BEGIN);
    /* the seat keeps the processor until it has sent everything and sleeps */
    uint64_t at = BEGIN + IDLE + WAKE + STEP + 4 * SEND + SLEEP + WAKE;
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQ(heard_at(s, i, 0), at);
        at += RECEIVE + STEP + SLEEP + WAKE;
    }
    stage_free(s);
}

static void test_two_cores_halve(void) {
    struct stage *s = STAGE(machine_of(2), spread);
    world_run_until(s->w, 2 * BEGIN);
    uint64_t sent = BEGIN + IDLE + WAKE + STEP;
    uint64_t turn = RECEIVE + STEP + SLEEP + WAKE;
    uint64_t own = sent + 4 * SEND + SLEEP + WAKE; /* on the processor that was the seat's */
    CHECK_EQ(heard_at(s, 0, 0), sent + SEND + IDLE + WAKE);
    CHECK_EQ(heard_at(s, 1, 0), own);
    CHECK_EQ(heard_at(s, 2, 0), own + turn);
    CHECK_EQ(heard_at(s, 3, 0), own + 2 * turn);
    stage_free(s);
}

static void test_no_more_cores_than_needed(void) {
    struct stage *s = STAGE(machine_of(8), spread);
    world_run_until(s->w, 2 * BEGIN);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_EQ(heard_at(s, i, 0), BEGIN + IDLE + WAKE + STEP + (i + 1) * SEND + IDLE + WAKE);
    stage_free(s);
}

/* Everybody has run before the seat has its next turn: it reads four links and wakes once. */
static void test_one_turn_for_all(void) {
    static const struct act acts[] = {
        FAN,
        {.at = BEGIN, .node = 0, .kind = ACT_SEND, .peer = SEAT, .type = UP_TYPE, .text = "a"},
        {.at = BEGIN, .node = 0, .kind = ACT_SEND, .peer = SEAT, .type = UP_TYPE, .text = "b"},
        {.at = BEGIN, .node = 1, .kind = ACT_SEND, .peer = SEAT, .type = UP_TYPE, .text = "c"},
        {.at = BEGIN + US, .node = 2, .kind = ACT_SEND, .peer = 3, .type = UP_TYPE, .text = "-"},
        {.at = BEGIN + US, .node = SEAT, .kind = ACT_ALARM, .number = 3 * BEGIN},
    };
    struct stage *s = STAGE(machine_of(1), acts);
    world_run_until(s->w, 2 * BEGIN);
    /* in the queue: 0, 1, 2, the seat; a and b leave node 0 with one system call */
    uint64_t at = BEGIN + IDLE + WAKE + 2 * STEP + SEND + SLEEP;
    at += WAKE + STEP + SEND + SLEEP;
    at += WAKE + STEP + SLEEP;
    at += WAKE;
    for (uint32_t i = 0; i < 3; i++)
        CHECK_EQ(heard_at(s, SEAT, i), at);
    CHECK_STR(stage_heard(s, SEAT, INPUT_MESSAGE, 0)->text, "a");
    CHECK_STR(stage_heard(s, SEAT, INPUT_MESSAGE, 1)->text, "b");
    CHECK_STR(stage_heard(s, SEAT, INPUT_MESSAGE, 2)->text, "c");
    stage_free(s);
}

/* What arrives while a process is busy costs it another look, not another sleep. */
static void test_next_turn(void) {
    static const struct act acts[] = {
        FAN,
        {.at = BEGIN, .node = 0, .kind = ACT_SEND, .peer = SEAT, .type = UP_TYPE, .text = "a"},
        {.at = BEGIN + IDLE + WAKE + RECEIVE / 2,
         .node = 1,
         .kind = ACT_SEND,
         .peer = SEAT,
         .type = UP_TYPE,
         .text = "b"},
    };
    struct link_model m = machine_of(8);
    struct stage *s = STAGE(m, acts);
    world_run_until(s->w, 2 * BEGIN);
    uint64_t first = BEGIN + IDLE + WAKE + STEP + SEND + IDLE + WAKE;
    CHECK_EQ(heard_at(s, SEAT, 0), first);
    CHECK_EQ(heard_at(s, SEAT, 1), first + RECEIVE + STEP + POLL); /* not SLEEP + IDLE + WAKE */
    stage_free(s);
}

/* 2 KiB at 512 ns a KiB, out and in. */
static void test_bytes(void) {
    static const struct act acts[] = {
        FAN,
        {BEGIN, 0, ACT_SEND, SEAT, UP_TYPE, 2 * KIB - HEADER_BYTES, "a"},
        {BEGIN, SEAT, ACT_ALARM, 0, 0, BEGIN + 300 * US, NULL},
    };
    struct link_model m = machine_of(1);
    m.cpu_kib_ns = 512;
    struct stage *s = STAGE(m, acts);
    world_run_until(s->w, 2 * BEGIN);
    uint64_t at =
        BEGIN + IDLE + WAKE + STEP + SEND + 1024 + SLEEP; /* node 0, then the seat's act */
    CHECK_EQ(heard_at(s, SEAT, 0), at + WAKE);
    CHECK_EQ(world_counts(s->w)->messages, 1);
    stage_free(s);
}

static void test_crash_frees_the_core(void) {
    struct stage *s = STAGE(machine_of(1), spread);
    uint64_t first = BEGIN + IDLE + WAKE + STEP + 4 * SEND + SLEEP + WAKE;
    world_run_until(s->w, first - 1);
    world_crash(s->w, 0); /* it has the processor; the seat will hear, after the others */
    world_run_until(s->w, 2 * BEGIN);
    CHECK_EQ(stage_count(s, 0, INPUT_MESSAGE), 0);
    CHECK_EQ(heard_at(s, 1, 0), first - 1 + WAKE);
    CHECK_EQ(stage_count(s, 3, INPUT_MESSAGE), 1);
    CHECK_EQ(stage_count(s, SEAT, INPUT_LINK_DOWN), 1);
    stage_free(s);
}

static void test_pause_frees_the_core(void) {
    struct stage *s = STAGE(machine_of(1), spread);
    uint64_t first = BEGIN + IDLE + WAKE + STEP + 4 * SEND + SLEEP + WAKE;
    world_run_until(s->w, first - 1);
    world_pause(s->w, 0, 2 * BEGIN);
    world_run_until(s->w, 3 * BEGIN);
    CHECK_EQ(heard_at(s, 0, 0), 2 * BEGIN + IDLE + WAKE);
    CHECK_EQ(heard_at(s, 1, 0), first + WAKE);
    stage_free(s);
}

/* ---- the primitives on shared processors ---- */

static uint64_t compare_write_ns(uint64_t cores, uint32_t nodes) {
    struct driver_task t = {.request = {.kind = PRIMITIVE_COMPARE,
                                        .timeout_ns = 1000 * NS_PER_S,
                                        .local_event = NO_EVENT,
                                        .write_variable = 1},
                            .runs = 9};
    struct measure_config config = {.tree = {.nodes = nodes, .shape = SHAPE_KARY, .arity = 8},
                                    .link = machine_of(cores),
                                    .seed = 1,
                                    .tasks = &t,
                                    .task_count = 1};
    config.link.core_idle_ns = 0; /* hardly ever happens to one, often to many */
    struct measure m;
    if (!CHECK_EQ(measure_run(&config, &m), 0))
        return 0;
    CHECK_EQ(m.tasks[0].done, t.runs);
    uint64_t ns = measure_median(&m.tasks[0]);
    measure_fini(&m);
    return ns;
}

static void test_cluster(void) {
    uint64_t one = compare_write_ns(1, 64);
    uint64_t two = compare_write_ns(2, 64);
    uint64_t many = compare_write_ns(65, 64);
    CHECK(two * 10 > one * 5 && two * 10 < one * 6); /* the work is the same, two share it */
    CHECK(many < two);
    CHECK_EQ(compare_write_ns(65, 64), many);
    CHECK_EQ(compare_write_ns(1000, 64), many);
    CHECK(compare_write_ns(2, 16) * 2 < two);
}

int main(void) {
    TEST(test_one_core_serialises);
    TEST(test_two_cores_halve);
    TEST(test_no_more_cores_than_needed);
    TEST(test_one_turn_for_all);
    TEST(test_next_turn);
    TEST(test_bytes);
    TEST(test_crash_frees_the_core);
    TEST(test_pause_frees_the_core);
    TEST(test_cluster);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Tests of predictions: what is put in by hand is found again from the figures it leads to. */
#include "sim/predictor.h"

#include <errno.h>

#include "base/units.h"
#include "tap.h"

enum { SEND = 1700, RECEIVE = 1600, POLL = 300, EMPTY = 310, HOP = 5200, CROSS = 6500 };

static struct predictor predictor_of(uint64_t cores, uint64_t few, uint64_t many) {
    return (struct predictor){.model = {.cores = cores,
                                        .connect_ns = 2 * HOP,
                                        .durable_ns = 50 * NS_PER_US,
                                        .core_idle_ns = CROSS - HOP,
                                        .cpu_poll_ns = POLL,
                                        .cpu_sleep_ns = EMPTY,
                                        .cpu_receive_ns = RECEIVE,
                                        .cpu_send_ns = SEND},
                              .wake_few_ns = few,
                              .wake_many_ns = many};
}

/* What a machine would be gauged at that is as the predictor says. */
static struct gauge gauge_of(const struct predictor *p, uint64_t wake_alone) {
    struct gauge g = {.cpus = 2,
                      .send_ns = SEND,
                      .receive_ns = RECEIVE,
                      .poll_ns = POLL,
                      .empty_ns = EMPTY,
                      .hop_ns = HOP,
                      .cross_ns = CROSS};
    struct predictor one = predictor_of(1, wake_alone, wake_alone);
    CHECK_EQ(predictor_fanout(&one, GAUGE_FAN_ONE, &g.fan_one_ns), 0);
    CHECK_EQ(predictor_fanout(p, GAUGE_FEW, &g.fan_few_ns), 0);
    CHECK_EQ(predictor_fanout(p, GAUGE_MANY, &g.fan_many_ns), 0);
    g.fan_one_4k_ns = g.fan_one_ns + 2ULL * GAUGE_FAN_ONE * 100 * (4096 - 64) / 1024;
    return g;
}

static bool near(uint64_t a, uint64_t b, uint64_t within) {
    return (a > b ? a - b : b - a) <= within;
}

static struct driver_task compare_task(uint32_t write_variable) {
    return (struct driver_task){.request = {.kind = PRIMITIVE_COMPARE,
                                            .timeout_ns = 1000 * NS_PER_S,
                                            .local_event = NO_EVENT,
                                            .write_variable = write_variable},
                                .runs = 1};
}

static void test_init(void) {
    struct predictor known = predictor_of(2, 13000, 15000), p;
    struct gauge g = gauge_of(&known, 11000);
    CHECK_EQ(predictor_init(&p, &g), 0);
    CHECK_EQ(p.model.cores, 2);
    CHECK(near(p.wake_few_ns, 13000, 500)); /* the last to answer decides, so steps are coarse */
    CHECK(near(p.wake_many_ns, 15000, 500));
    CHECK(near(p.model.cpu_kib_ns, 100, 1));
    CHECK_EQ(p.model.cpu_step_ns, 0);
    struct driver_task t = compare_task(NO_VARIABLE);
    struct tree tree = {.nodes = 16, .shape = SHAPE_KARY, .arity = 8};
    uint64_t expected = 0, found = 0;
    CHECK_EQ(predictor_latency(&known, &tree, &t, &expected), 0);
    CHECK_EQ(predictor_latency(&p, &tree, &t, &found), 0);
    CHECK(near(found, expected, expected / 20));
}

/* Others need one of the two processors. */
static void test_busy_machine(void) {
    struct predictor known = predictor_of(1, 11000, 12000), p;
    struct gauge g = gauge_of(&known, 11000);
    CHECK_EQ(predictor_init(&p, &g), 0);
    CHECK_EQ(p.model.cores, 1);
    CHECK(near(p.wake_many_ns, 12000, 500));
}

static void test_missing_figures(void) {
    struct predictor known = predictor_of(2, 13000, 15000), p;
    struct gauge g = gauge_of(&known, 11000), broken = g;
    broken.cpus = 0;
    CHECK_EQ(predictor_init(&p, &broken), -EINVAL);
    broken = g;
    broken.fan_many_ns = 0;
    CHECK_EQ(predictor_init(&p, &broken), -EINVAL);
    CHECK_EQ(predictor_fit(&known, &(struct tree){.nodes = 4, .arity = 8}, NULL, 0), -EINVAL);
}

static void test_model(void) {
    struct predictor p = predictor_of(2, 10000, 14000);
    CHECK_EQ(predictor_model(&p, 1).cpu_wake_ns, 10000);
    CHECK_EQ(predictor_model(&p, 4).cpu_wake_ns, 10000);
    CHECK_EQ(predictor_model(&p, 8).cpu_wake_ns, 11000);
    CHECK_EQ(predictor_model(&p, 12).cpu_wake_ns, 11500);
    CHECK_EQ(predictor_model(&p, 16).cpu_wake_ns, 12000);
    CHECK_EQ(predictor_model(&p, 64).cpu_wake_ns, 14000);
    CHECK_EQ(predictor_model(&p, 1000).cpu_wake_ns, 14000);
    CHECK_EQ(predictor_model(&p, 1000).cpu_send_ns, SEND);
}

/* Fitted to 8 nodes, right for 64. */
static void check_fit(const struct predictor *real, struct predictor p) {
    struct predictor_point points[] = {{.task = compare_task(NO_VARIABLE)},
                                       {.task = compare_task(1)}};
    struct tree tree = {.nodes = 8, .shape = SHAPE_KARY, .arity = 8};
    for (int i = 0; i < 2; i++)
        CHECK_EQ(predictor_latency(real, &tree, &points[i].task, &points[i].measured_ns), 0);
    CHECK_EQ(predictor_fit(&p, &tree, points, 2), 0);
    tree.nodes = 64;
    for (int i = 0; i < 2; i++) {
        uint64_t expected = 0, found = 0;
        CHECK_EQ(predictor_latency(real, &tree, &points[i].task, &expected), 0);
        CHECK_EQ(predictor_latency(&p, &tree, &points[i].task, &found), 0);
        CHECK(near(found, expected, expected / 50));
    }
}

static void test_fit_step(void) {
    struct predictor real = predictor_of(2, 13000, 13000);
    real.model.cpu_step_ns = 2500;
    check_fit(&real, predictor_of(2, 13000, 13000));
}

/* The gauge was taken while the machine was slow. */
static void test_fit_scale(void) {
    struct predictor real = predictor_of(2, 13000, 13000), slow = real;
    struct link_model *m = &slow.model;
    slow.wake_few_ns = slow.wake_many_ns = 26000;
    m->core_idle_ns *= 2;
    m->cpu_poll_ns *= 2;
    m->cpu_sleep_ns *= 2;
    m->cpu_receive_ns *= 2;
    m->cpu_send_ns *= 2;
    check_fit(&real, slow);
}

static void test_fit_growth(void) {
    struct predictor real = predictor_of(2, 12000, 20000), p = predictor_of(2, 12000, 14000);
    struct predictor_point point = {.task = compare_task(1)};
    struct tree tree = {.nodes = 32, .shape = SHAPE_KARY, .arity = 8};
    CHECK_EQ(predictor_latency(&real, &tree, &point.task, &point.measured_ns), 0);
    CHECK_EQ(predictor_fit_growth(&p, &tree, &point, 1), 0);
    CHECK(near(p.wake_many_ns, 20000, 500));
    CHECK_EQ(p.wake_few_ns, 12000);
    CHECK_EQ(predictor_fit_growth(&p, &tree, &point, 0), -EINVAL);
}

int main(void) {
    TEST(test_init);
    TEST(test_busy_machine);
    TEST(test_missing_figures);
    TEST(test_model);
    TEST(test_fit_step);
    TEST(test_fit_scale);
    TEST(test_fit_growth);
    return tap_finish();
}

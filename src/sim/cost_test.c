/* SPDX-License-Identifier: MIT */
/* Tests of the cost model: what it predicts is what the real protocol takes in simulation. */
#include "sim/cost.h"

#include "base/units.h"
#include "sim/calibrate.h"
#include "sim/measure.h"
#include "sim/network.h"
#include "tap.h"

static struct driver_task task_of(enum cost_kind kind, uint64_t bytes) {
    static const uint8_t body[4096];
    struct driver_task t = {.request = {.kind = PRIMITIVE_XFER,
                                        .timeout_ns = 1000 * NS_PER_S,
                                        .remote_event = 0,
                                        .local_event = NO_EVENT,
                                        .write_variable = NO_VARIABLE},
                            .runs = 1};
    t.request.body = bytes_of(body, bytes);
    if (kind == COST_COMPARE || kind == COST_WRITE)
        t.request.kind = PRIMITIVE_COMPARE;
    if (kind == COST_WRITE)
        t.request.write_variable = 1;
    t.wave = kind == COST_WAVE;
    return t;
}

static bool within(uint64_t a, uint64_t b, uint64_t percent) {
    uint64_t away = a > b ? a - b : b - a;
    return away * 100 <= b * percent;
}

/* Simulates under the links and compares with the calibrated model. */
static void check_prediction(const struct cost *calibrated, uint32_t nodes, uint64_t percent) {
    static const struct {
        enum cost_kind kind;
        uint64_t bytes;
    } cases[] = {
        {COST_XFER, 0}, {COST_XFER, 4096}, {COST_COMPARE, 0}, {COST_WRITE, 0}, {COST_WAVE, 0}};
    enum { CASES = sizeof cases / sizeof *cases };
    struct driver_task tasks[CASES];
    struct cost c = *calibrated;
    c.tree.nodes = nodes;
    for (int i = 0; i < CASES; i++)
        tasks[i] = task_of(cases[i].kind, cases[i].bytes);
    for (int i = 0; c.link.jitter_ns > 0 && i < CASES; i++)
        tasks[i].runs = 9;
    struct measure_config config = {
        .tree = c.tree, .link = c.link, .seed = 2, .tasks = tasks, .task_count = CASES};
    struct measure m;
    if (!CHECK_EQ(measure_run(&config, &m), 0))
        return;
    for (int i = 0; i < CASES; i++) {
        uint64_t predicted = cost_ns(&c, cases[i].kind, cases[i].bytes, nodes);
        uint64_t measured = measure_median(&m.tasks[i]);
        CHECK_EQ(m.tasks[i].done, m.tasks[i].runs);
        if (!CHECK(within(predicted, measured, percent)))
            printf("# %s %u nodes, %s: predicted %llu ns, simulated %llu\n",
                   shape_name(c.tree.shape), nodes, cost_name(cases[i].kind),
                   (unsigned long long)predicted, (unsigned long long)measured);
    }
    measure_fini(&m);
}

static void check_shape(enum shape shape, uint32_t arity, const char *network, uint64_t jitter_ns,
                        const uint32_t *sizes) {
    struct tree tree = {.shape = shape, .arity = arity, .nodes = 16};
    struct link_model link = network_find(network)->link;
    struct calibration calibration;
    struct cost c;
    link.jitter_ns = jitter_ns;
    cost_init(&c, &tree, &link);
    if (!CHECK_EQ(cost_calibrate(&c, 1, &calibration), 0))
        return;
    for (int kind = 0; kind < COST_BULK; kind++)
        CHECK(calibration.residual_permille[kind] <= (jitter_ns > 0 ? 80 : 5));
    CHECK(calibration.steps > 0);
    for (; *sizes > 0; sizes++)
        check_prediction(&c, *sizes, 10);
}

static const uint32_t large[] = {1024, 4096, 0};
static const uint32_t medium[] = {100, 512, 0};

static void test_kary(void) {
    check_shape(SHAPE_KARY, 8, "ten-gigabit", 0, large);
    check_shape(SHAPE_KARY, 3, "qsnet-like", 0, medium);
}

static void test_binomial(void) {
    check_shape(SHAPE_BINOMIAL, 1, "ten-gigabit", 0, large);
}

static void test_chain(void) {
    check_shape(SHAPE_CHAIN, 1, "infiniband", 0, medium);
}

static void test_flat(void) {
    check_shape(SHAPE_FLAT, 1, "gigabit", 0, large);
}

/* What the arithmetic does not know of, the fit has to make up for. */
static void test_jitter(void) {
    check_shape(SHAPE_KARY, 8, "ten-gigabit", 5 * NS_PER_US, medium);
    check_shape(SHAPE_BINOMIAL, 1, "ten-gigabit", 5 * NS_PER_US, medium);
}

/* An operation on some neighbouring nodes of a larger tree. */
static void test_part(void) {
    enum { NODES = 256, FIRST = 64, COUNT = 24 };
    uint64_t storage[8];
    struct nodeset set;
    struct driver_task tasks[] = {task_of(COST_XFER, 0), task_of(COST_COMPARE, 0)};
    struct tree tree = {.shape = SHAPE_KARY, .arity = 8, .nodes = NODES};
    struct cost c;
    cost_init(&c, &tree, &network_at(0)->link);
    nodeset_init(&set, NODES + 1, storage);
    nodeset_add_range(&set, FIRST, FIRST + COUNT - 1);
    tasks[0].request.set = tasks[1].request.set = &set;
    struct measure_config config = {
        .tree = tree, .link = c.link, .seed = 1, .tasks = tasks, .task_count = 2};
    struct measure m;
    if (!CHECK_EQ(measure_run(&config, &m), 0))
        return;
    CHECK(within(cost_ns(&c, COST_XFER, 0, COUNT), measure_median(&m.tasks[0]), 25));
    CHECK(within(cost_ns(&c, COST_COMPARE, 0, COUNT), measure_median(&m.tasks[1]), 25));
    CHECK(m.tasks[0].messages < 4 * (COUNT + 10)); /* the rest of the tree hears nothing */
    measure_fini(&m);
}

static void test_sanity(void) {
    struct tree tree = {.shape = SHAPE_KARY, .arity = 8, .nodes = 1000};
    struct cost c;
    cost_init(&c, &tree, &network_at(0)->link);
    CHECK_EQ(cost_level(&c, 1000), 0); /* the root */
    CHECK_EQ(cost_level(&c, 0), 1);
    CHECK_EQ(cost_floor_ns(&c, COST_COMPARE), 2 * tree_depth(&tree) * c.link.latency_ns);
    for (int kind = 0; kind < COST_KINDS; kind++) {
        CHECK(cost_ns(&c, kind, 64, 1000) > cost_floor_ns(&c, kind));
        CHECK(cost_apply_ns(&c, kind, 1000) < cost_ns(&c, kind, 64, 1000));
    }
    CHECK(cost_ns(&c, COST_XFER, 4096, 1000) > cost_ns(&c, COST_XFER, 0, 1000));
    CHECK(cost_ns(&c, COST_XFER, 0, 1000) > cost_ns(&c, COST_XFER, 0, 10));
    CHECK(cost_ns(&c, COST_BULK, 2 * MIB, 100) > cost_ns(&c, COST_BULK, MIB, 100));
    CHECK(cost_gap_ns(&c, COST_XFER, 0, 1000) < cost_ns(&c, COST_XFER, 0, 1000));
    CHECK_EQ(cost_gather_ns(&c, 0, 1000), cost_ns(&c, COST_COMPARE, 0, 1000));
    CHECK(cost_gather_ns(&c, 70, 1000) > cost_gather_ns(&c, 70, 100));
    uint64_t rate = c.link.bytes_per_s ? c.link.bytes_per_s : 1;
    CHECK(cost_gather_ns(&c, 70, 1000) - cost_gather_ns(&c, 0, 1000) >= 70000 * NS_PER_S / rate);
}

int main(void) {
    TEST(test_sanity);
    TEST(test_part);
    TEST(test_kary);
    TEST(test_binomial);
    TEST(test_chain);
    TEST(test_flat);
    TEST(test_jitter);
    return tap_finish();
}

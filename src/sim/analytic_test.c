/* SPDX-License-Identifier: MIT */
/* Tests of the analytic model: what the papers print, and what no formula may break. */
#include "sim/analytic.h"

#include "base/units.h"
#include "tap.h"

#define IMAGE_BYTES (12 * MIB) /* of the paper's figures */

static uint64_t nearest(uint64_t value, uint64_t unit) {
    return (value + unit / 2) / unit;
}

static uint64_t launch_ns(const struct analytic_network *n, uint32_t nodes) {
    return analytic_launch(n, nodes, IMAGE_BYTES, 0).launch_ns;
}

/* The same network with hosts that are never the bottleneck. */
static struct analytic_network ideal(const struct analytic_network *n) {
    struct analytic_network other = *n;
    other.host_bytes_per_s = ANALYTIC_NO_LIMIT;
    return other;
}

/* ---- the STORM paper ---- */

static void test_table_3(void) {
    static const uint32_t printed[6][9] = {{320, 320, 320, 315, 291, 271, 253, 238, 224},
                                           {320, 319, 295, 274, 256, 240, 226, 213, 202},
                                           {298, 277, 258, 242, 228, 215, 204, 194, 184},
                                           {261, 244, 230, 217, 206, 195, 186, 177, 170},
                                           {232, 219, 207, 197, 187, 178, 171, 163, 157},
                                           {209, 198, 188, 180, 172, 164, 158, 152, 146}};
    for (uint32_t row = 0, nodes = 4; row < 6; row++, nodes *= 4) {
        uint32_t switches = analytic_switches(nodes);
        CHECK_EQ(switches, 2 * row + 1);
        for (uint32_t i = 0; i < 9; i++) {
            uint64_t cable_mm = (uint64_t)(i + 1) * 10 * 1000;
            CHECK_EQ(nearest(analytic_qsnet_rate(cable_mm, switches), MIB), printed[row][i]);
        }
    }
}

static void test_equations(void) {
    CHECK_EQ(analytic_diameter_mm(2), 2000);
    CHECK_EQ(analytic_diameter_mm(8192), 128000);
    CHECK_EQ(analytic_diameter_mm(16384), 181019); /* 181.0193 m */
    CHECK_EQ(analytic_diameter_mm(ANALYTIC_NODES_MAX), 1414213);
    CHECK_EQ(analytic_switches(1), 1);
    CHECK_EQ(analytic_switches(2), 1);
    CHECK_EQ(analytic_switches(5), 2);
    CHECK_EQ(analytic_switches(32), 4);
    CHECK_EQ(analytic_switches(64), 5);
    CHECK_EQ(analytic_switches(65), 6);
    CHECK_EQ(analytic_switches(16384), 13);
}

static void test_figure_8(void) {
    const struct analytic_network *es40 = analytic_at(0);
    struct analytic_network fast = ideal(es40);
    CHECK_EQ(es40->exec_ns + es40->timeslice_ns, 18500 * NS_PER_US);
    CHECK_EQ(nearest(launch_ns(es40, 1), NS_PER_MS), 110);
    CHECK_EQ(nearest(launch_ns(es40, 64), NS_PER_MS), 110); /* as measured */
    CHECK_EQ(nearest(launch_ns(es40, 16384), NS_PER_MS), 135);
    CHECK_EQ(nearest(launch_ns(&fast, 1), NS_PER_MS), 56);
    CHECK_EQ(nearest(launch_ns(&fast, 16384), NS_PER_MS), 135);
    for (uint32_t nodes = 1; nodes <= 4096; nodes *= 2)
        CHECK(launch_ns(&fast, nodes) < launch_ns(es40, nodes));
    for (uint32_t nodes = 8192; nodes <= 1 << 19; nodes *= 2)
        CHECK_EQ(launch_ns(&fast, nodes), launch_ns(es40, nodes));
}

static void test_parts_of_qsnet(void) {
    struct analytic_launch l = analytic_launch(analytic_at(0), 64, IMAGE_BYTES, 0);
    CHECK_EQ(l.way, ANALYTIC_HARDWARE);
    CHECK(l.host_bound);
    CHECK_EQ(l.rate_bytes_per_s, 131 * MIB);
    CHECK_EQ(nearest(l.transfer_ns, NS_PER_MS), 92); /* the paper: 92 of its 96 ms */
    CHECK_EQ(l.command_ns, 0);
    CHECK(!analytic_launch(analytic_at(0), 8192, IMAGE_BYTES, 0).host_bound);
}

/* ---- other networks ---- */

/* By hand: 192 chunks of 64 KiB, 57.429 us to send one. */
static void test_trees(void) {
    const struct analytic_network *n = analytic_find("10gbe");
    const uint64_t send_ns = 57429, latency_ns = 20000;
    struct analytic_launch l = analytic_launch(n, 64, IMAGE_BYTES, 1);
    CHECK_EQ(l.way, ANALYTIC_TREE);
    CHECK_EQ(l.levels, 64);
    CHECK_EQ(l.transfer_ns, 191 * send_ns + 64 * (send_ns + latency_ns));
    l = analytic_launch(n, 64, IMAGE_BYTES, 4);
    CHECK_EQ(l.levels, 3);
    CHECK_EQ(l.transfer_ns, 191 * 4 * send_ns + 3 * (4 * send_ns + latency_ns));
    CHECK_EQ(l.command_ns, 2 * 2 * 60000);
    CHECK_EQ(l.launch_ns, l.transfer_ns + l.command_ns + NS_PER_MS);
    l = analytic_launch(n, 64, IMAGE_BYTES, 0);
    CHECK_EQ(l.way, ANALYTIC_PAIR);
    CHECK_EQ(l.levels, 6);
    CHECK_EQ(l.transfer_ns, 191 * send_ns + 6 * (2 * send_ns + latency_ns));
}

static void test_small_images(void) {
    const struct analytic_network *n = analytic_find("1gbe");
    CHECK_EQ(analytic_launch(n, 1, 1, 1).transfer_ns, 8 + n->message_ns + n->latency_ns);
    /* Chunks are cut evenly: one byte more does not cost a whole chunk. */
    uint64_t one = analytic_launch(n, 4, 64 * KIB, 1).transfer_ns;
    uint64_t two = analytic_launch(n, 4, 64 * KIB + 1, 1).transfer_ns;
    CHECK(two < one);
    struct analytic_network fast = ideal(n);
    fast.link_bytes_per_s = UINT64_MAX;
    fast.message_ns = 0;
    CHECK_EQ(analytic_launch(&fast, 1, 1, 1).transfer_ns, fast.latency_ns);
}

static void test_best(void) {
    const struct analytic_network *n;
    for (uint32_t i = 1; (n = analytic_at(i)) != NULL; i++)
        for (uint32_t nodes = 1; nodes <= 1 << 14; nodes *= 4) {
            struct analytic_launch best = analytic_launch(n, nodes, IMAGE_BYTES, 0);
            CHECK(best.rate_bytes_per_s <= n->link_bytes_per_s);
            for (uint32_t arity = 1; arity <= 32; arity++)
                CHECK(best.launch_ns <= analytic_launch(n, nodes, IMAGE_BYTES, arity).launch_ns);
        }
}

static void test_hosts(void) {
    const struct analytic_network *n = analytic_find("ib-ndr");
    struct analytic_network fast = ideal(n);
    struct analytic_launch slow = analytic_launch(n, 1024, GIB, 0);
    CHECK(slow.host_bound);
    CHECK(slow.transfer_ns > GIB * NS_PER_S / n->host_bytes_per_s);
    CHECK(analytic_launch(&fast, 1024, GIB, 0).transfer_ns < slow.transfer_ns);
    CHECK(!analytic_launch(&fast, 1024, GIB, 0).host_bound);
}

/* ---- all networks ---- */

static void test_more_takes_longer(void) {
    const struct analytic_network *n;
    for (uint32_t i = 0; (n = analytic_at(i)) != NULL; i++) {
        struct analytic_network fast = ideal(n);
        for (uint32_t nodes = 1; nodes < 20000; nodes++) {
            CHECK(launch_ns(n, nodes) <= launch_ns(n, nodes + 1));
            CHECK(launch_ns(&fast, nodes) <= launch_ns(&fast, nodes + 1));
            CHECK(launch_ns(&fast, nodes) <= launch_ns(n, nodes));
        }
        for (uint64_t bytes = 64 * KIB; bytes < ANALYTIC_IMAGE_MAX_BYTES; bytes *= 2)
            CHECK(analytic_launch(n, 64, bytes, 0).launch_ns <
                  analytic_launch(n, 64, 2 * bytes, 0).launch_ns);
    }
}

static void test_names(void) {
    const struct analytic_network *n;
    uint32_t count = 0;
    for (; (n = analytic_at(count)) != NULL; count++)
        CHECK(analytic_find(n->name) == n);
    CHECK_EQ(count, 7);
    CHECK(analytic_find("token-ring") == NULL);
}

/* ---- the launcher paper ---- */

static void test_launcher(void) {
    const uint64_t ms = NS_PER_MS;
    CHECK_EQ(analytic_binomial_ns(100 * ms, 64), 600 * ms);
    CHECK_EQ(analytic_binomial_ns(100 * ms, 1), 0);
    CHECK_EQ(analytic_kary_ns(100 * ms, 2, 64), 1200 * ms);
    CHECK_EQ(analytic_kary_ns(100 * ms, 4, 64), 1200 * ms);
    CHECK_EQ(analytic_kary_ns(100 * ms, 8, 64), 1600 * ms);
    CHECK_EQ(analytic_kary_ns(100 * ms, 1, 64), 6400 * ms);
    CHECK_EQ(nearest(analytic_kary_ns(100 * ms, 3, 27), NS_PER_US), 900 * 1000);
    CHECK_EQ(nearest(analytic_kary_ns(100 * ms, 3, 64), NS_PER_US), 1135674);
    CHECK_EQ(nearest(analytic_binomial_ns(100 * ms, 100), NS_PER_US), 664386);
    for (uint32_t nodes = 1; nodes < 5000; nodes++)
        for (uint32_t arity = 1; arity <= 5; arity++) {
            uint64_t here = analytic_kary_ns(ms, arity, nodes);
            CHECK(here < analytic_kary_ns(ms, arity, nodes + 1));
            CHECK(analytic_binomial_ns(ms, nodes) <= here);
        }
    CHECK(analytic_kary_ns(ANALYTIC_LAMBDA_MAX_NS, ANALYTIC_ARITY_MAX, ANALYTIC_NODES_MAX) >
          2040 * ANALYTIC_LAMBDA_MAX_NS);
}

int main(void) {
    TEST(test_table_3);
    TEST(test_equations);
    TEST(test_figure_8);
    TEST(test_parts_of_qsnet);
    TEST(test_trees);
    TEST(test_small_images);
    TEST(test_best);
    TEST(test_hosts);
    TEST(test_more_takes_longer);
    TEST(test_names);
    TEST(test_launcher);
    return tap_finish();
}

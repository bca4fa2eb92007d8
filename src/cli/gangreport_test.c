/* SPDX-License-Identifier: MIT */
/* Tests of what is told of benched gangs. */
#include "cli/gangreport.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "tap.h"

static struct gangrow row(uint64_t quantum_us, enum gangkernel k, int64_t slower) {
    return (struct gangrow){.experiment = EXPERIMENT_QUANTUM,
                            .kernel = k,
                            .nodes = 1,
                            .pes = 2,
                            .jobs = 2,
                            .runs = 3,
                            .quantum_ns = quantum_us * NS_PER_US,
                            .alone_ns = 10 * NS_PER_S,
                            .turns_ns =
                                10 * NS_PER_S + (uint64_t)(slower > 0 ? slower : 0) * 100000,
                            .slower = slower};
}

static void test_what_a_switch_costs(void) {
    struct gangrow rows[] = {row(500, KERNEL_COMPUTE, 4000), row(1000, KERNEL_COMPUTE, 2000),
                             row(2000, KERNEL_COMPUTE, -100), row(50000, KERNEL_COMPUTE, 9000),
                             row(1000, KERNEL_CACHE, 5000)};
    /* 4 % of 500 us, 2 % of 1 ms, none; longer turns do not count. The middle one. */
    CHECK_EQ(gangreport_switch_cost(rows, 5, KERNEL_COMPUTE), 19230);
    CHECK_EQ(gangreport_switch_cost(rows, 5, KERNEL_CACHE), 47619);
    CHECK_EQ(gangreport_switch_cost(rows, 5, KERNEL_PAIR), 0);
}

/* 20 us of 1 ms, and the work takes 3 % longer. */
static void test_parts(void) {
    struct gangrow r = row(1000, KERNEL_CACHE, 9000);
    r.away_ns = 20 * NS_PER_US;
    r.cpu_more = 3000;
    CHECK_EQ(gangreport_parts(&r), 5102);
    CHECK_EQ(gangreport_switch_cost(&r, 1, KERNEL_CACHE),
             48543); /* not what else the machine did */
    r.away_ns = 2 * NS_PER_MS;
    CHECK(gangreport_parts(&r) > 100000);
}

static void test_the_smallest(void) {
    struct gangrow rows[] = {row(2000, KERNEL_COMPUTE, 1000), row(500, KERNEL_COMPUTE, 1900),
                             row(1000, KERNEL_COMPUTE, 2100), row(50000, KERNEL_COMPUTE, 10),
                             row(1000, KERNEL_CACHE, 5000)};
    CHECK_EQ(gangreport_smallest(rows, 5, KERNEL_COMPUTE)->quantum_ns,
             2 * NS_PER_MS); /* by luck: 500 us */
    CHECK(gangreport_smallest(rows, 5, KERNEL_CACHE) == NULL);
    CHECK(gangreport_smallest(rows, 5, KERNEL_WAVE) == NULL);
    rows[2].slower = 2000;
    CHECK_EQ(gangreport_smallest(rows, 5, KERNEL_COMPUTE)->quantum_ns, 500 * NS_PER_US);
}

static char *text_of(void (*show)(const struct gangrow *, uint32_t, FILE *),
                     const struct gangrow *rows, uint32_t count) {
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    show(rows, count, out);
    fclose(out);
    return text;
}

static void test_tables(void) {
    struct gangrow rows[] = {row(1000, KERNEL_COMPUTE, 1500), row(1000, KERNEL_CACHE, 5000)};
    char *text = text_of(gangreport_table, rows, 2);
    CHECK(strstr(text, "+1.50 %") != NULL && strstr(text, "+5.00 %") != NULL);
    CHECK(strstr(text, "SCore-D") != NULL);
    CHECK(strstr(text, "here, compute") != NULL && strstr(text, "here, pair") == NULL);
    CHECK(strstr(text, "storm sim --switch-cost 14778ns") != NULL);
    free(text);
    rows[0].experiment = EXPERIMENT_MPL;
    text = text_of(gangreport_table, rows, 1);
    CHECK(strstr(text, "SCore-D") == NULL && strstr(text, "multiprogramming") != NULL);
    free(text);
}

static void test_floors(void) {
    struct gangrow rows[] = {row(1000, KERNEL_COMPUTE, 1500), row(500, KERNEL_COMPUTE, 1500)};
    rows[0].floor_median_ns = 27300;
    rows[0].floor_99_ns = 350 * NS_PER_US;
    rows[0].floor_slower = -1250;
    char *text = text_of(gangreport_table, rows, 2);
    CHECK(strstr(text,
                 "\nbare switching at 1 ms, compute, 1 node: 27.3 us, 99 % 350 us, -1.25 % (the "
                 "same two writes, nothing else)\n\n") != NULL);
    CHECK(strstr(text, "bare switching at 500 us") == NULL);
    free(text);
    text = text_of(gangreport_json, rows, 1);
    CHECK(strstr(text, "\"floor_switch_ms\":0.027300,\"floor_switch_99_ms\":0.350000,"
                       "\"floor_slower_percent\":-1.250") != NULL);
    free(text);
    text = text_of(gangreport_json, rows + 1, 1);
    CHECK(strstr(text, "floor") == NULL);
    free(text);
}

static void test_json(void) {
    struct gangrow rows[] = {row(500, KERNEL_PAIR, -1500)};
    char *text = text_of(gangreport_json, rows, 1);
    CHECK(strstr(text, "\"experiment\":\"quantum\",\"kernel\":\"pair\"") != NULL);
    CHECK(strstr(text, "\"slower_percent\":-1.500") != NULL);
    CHECK(strstr(text, "\"experiment\":\"smallest\",\"kernel\":\"pair\",\"quantum_us\":500") !=
          NULL);
    CHECK(strstr(text, "plain_ms") == NULL);
    free(text);
}

static void test_nothing_to_plot(void) {
    struct gangrow r = row(500, KERNEL_PAIR, 0);
    r.experiment = EXPERIMENT_MPL;
    CHECK_EQ(gangreport_plot(&r, 1, "/nonexistent/plot.svg"), -ENODATA);
    r.experiment = EXPERIMENT_QUANTUM;
    CHECK_EQ(gangreport_plot(&r, 1, "/nonexistent/plot.svg"), -ENOENT);
}

int main(void) {
    TEST(test_what_a_switch_costs);
    TEST(test_parts);
    TEST(test_the_smallest);
    TEST(test_tables);
    TEST(test_floors);
    TEST(test_json);
    TEST(test_nothing_to_plot);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Tests of how far apart nodes switch. */
#include "rm/skew.h"

#include "tap.h"

static void answer(struct skew *s, uint32_t node, uint64_t number, uint64_t after, uint32_t took) {
    struct message_turned m = {.number = number,
                               .means = GANG_BY_CGROUP,
                               .prompt = true,
                               .sent_ns = 1000 * number,
                               .at_ns = 1000 * number + after,
                               .took_ns = took};
    skew_heard(s, node, &m);
}

static void test_answers_to_one_strobe(void) {
    struct skew s;
    struct skew_sum sum;
    skew_init(&s);
    skew_percentile(&s, 50, &sum);
    CHECK_EQ(sum.samples, 0);
    answer(&s, 0, 10, 30, 5);
    answer(&s, 1, 10, 90, 4);
    answer(&s, 2, 10, 50, 9);
    answer(&s, 3, 9, 5000, 1); /* late */
    CHECK(s.now.nodes == 3 && s.now.first_ns == 30 && s.now.last_ns == 90);
    CHECK(s.now.slowest == 1 && s.now.took_ns == 9 && s.count == 0);
    answer(&s, 0, 11, 10, 1);
    answer(&s, 0, 12, 10, 1);
    skew_percentile(&s, 100, &sum);
    CHECK(sum.samples == 2 && sum.skew_ns == 60 && sum.reach_ns == 90);
    skew_percentile(&s, 0, &sum);
    CHECK(sum.skew_ns == 0 && sum.reach_ns == 10);
}

static void test_the_last_ones_count(void) {
    struct skew s;
    struct skew_sum sum;
    skew_init(&s);
    for (uint64_t i = 1; i <= 3 * SKEW_KEPT; i++)
        answer(&s, 0, i, i, 1);
    skew_percentile(&s, 0, &sum);
    CHECK_EQ(sum.samples, SKEW_KEPT);
    CHECK_EQ(sum.reach_ns, 2 * SKEW_KEPT);
}

static void test_who_cannot(void) {
    struct skew s;
    skew_init(&s);
    CHECK(s.unprompt == NO_NODE && s.unwhole == NO_NODE);
    skew_heard(&s, 7, &(struct message_turned){.number = 1, .means = GANG_BY_DESCENT, .missed = 3});
    CHECK(s.unprompt == 7 && s.unwhole == 7 && s.missed == 3);
}

int main(void) {
    TEST(test_answers_to_one_strobe);
    TEST(test_the_last_ones_count);
    TEST(test_who_cannot);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* When hosts are asked for, when they are given back, and when workers that end are given up. */
#include "wodi/hire.h"

#include "tap.h"

#define S ((uint64_t)1000000000)

static struct hire usual(uint32_t here, uint32_t coming) {
    return (struct hire){
        .least = 1, .most = 10, .rest_ns = HIRE_REST_NS, .here = here, .coming = coming};
}

static void test_grows_at_once(void) {
    struct hire h = usual(0, 0);
    CHECK_EQ(hire_look(&h, 0, S).ask, 1); /* the least, though nothing is wanted */
    h.coming = 1;
    struct hire_advice a = hire_look(&h, 4, S);
    CHECK(a.ask == 3 && a.back == 0 && !a.cancel && a.again == 0);
    h.coming = 4;
    CHECK_EQ(hire_look(&h, 4, S).ask, 0);
    CHECK_EQ(hire_look(&h, 99, S).ask, 6); /* the most */
    h.here = 2;
    h.coming = 0; /* some were lost */
    CHECK_EQ(hire_look(&h, 4, S).ask, 2);
}

static void test_shrinks_with_patience(void) {
    struct hire h = usual(8, 0);
    struct hire_advice a = hire_look(&h, 3, S);
    CHECK(a.back == 0 && a.again == S + HIRE_REST_NS);
    CHECK_EQ(hire_look(&h, 5, 2 * S).back, 0);
    CHECK_EQ(hire_look(&h, 2, 3 * S).back, 0);
    a = hire_look(&h, 2, S + HIRE_REST_NS);
    CHECK(a.back == 3 && a.ask == 0 && !a.cancel); /* five were of use meanwhile */
    h.here = 5;
    a = hire_look(&h, 2, 7 * S);
    CHECK(a.back == 0 && a.again == 7 * S + HIRE_REST_NS);
    CHECK_EQ(hire_look(&h, 2, 12 * S).back, 3);
}

static void test_one_cycle_that_is_short(void) {
    struct hire h = usual(8, 0);
    CHECK_EQ(hire_look(&h, 1, S).back, 0);
    CHECK_EQ(hire_look(&h, 8, 2 * S).back, 0); /* all are needed again */
    CHECK_EQ(hire_look(&h, 1, 3 * S).back, 0);
    CHECK_EQ(hire_look(&h, 1, S + HIRE_REST_NS).back, 0);
    CHECK_EQ(hire_look(&h, 1, 3 * S + HIRE_REST_NS).back, 7);
    CHECK_EQ(hire_look(&h, 0, 9 * S).back, 0);
    h.here = 1;
    CHECK_EQ(hire_look(&h, 0, 100 * S).back, 0); /* the least stays */
}

static void test_what_has_not_come(void) {
    struct hire h = usual(2, 6);
    CHECK(!hire_look(&h, 4, S).cancel);
    struct hire_advice a = hire_look(&h, 4, S + HIRE_REST_NS);
    CHECK(a.cancel && a.ask == 2 && a.back == 0);
    h = usual(5, 1);
    hire_look(&h, 2, S);
    a = hire_look(&h, 2, S + HIRE_REST_NS);
    CHECK(a.cancel && a.ask == 0 && a.back == 3);
}

/* Hosts that go by themselves while others are about to be given back. */
static void test_lost_meanwhile(void) {
    struct hire h = usual(8, 0);
    hire_look(&h, 6, S);
    hire_look(&h, 3, 2 * S);
    h.here = 5;
    struct hire_advice a = hire_look(&h, 3, S + HIRE_REST_NS);
    CHECK(a.back == 0 && a.again > S + HIRE_REST_NS);
    CHECK_EQ(hire_look(&h, 3, a.again).back, 0);
    CHECK_EQ(hire_look(&h, 3, a.again + HIRE_REST_NS).back, 2);
}

static void test_workers_that_end(void) {
    struct hire h = usual(2, 0);
    uint32_t a = 0, b = 0;
    CHECK_EQ(hire_ended(&h, &a, 20 * S, 0), HIRE_AGAIN);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(hire_ended(&h, &b, HIRE_EARLY_NS, 0), HIRE_AGAIN);
    CHECK_EQ(hire_ended(&h, &a, S, 0), HIRE_AGAIN);
    CHECK_EQ(hire_ended(&h, &a, S, 0), HIRE_AGAIN);
    CHECK_EQ(hire_ended(&h, &a, S, 0), HIRE_BACK);
    CHECK_EQ(hire_ended(&h, &b, S, 0), HIRE_AGAIN);
    CHECK_EQ(hire_ended(&h, &b, S, 0), HIRE_AGAIN);
    CHECK_EQ(hire_ended(&h, &b, S, 0), HIRE_HOPELESS);
}

/* Where others work only that host is bad. */
static void test_one_bad_host(void) {
    struct hire h = usual(2, 0);
    uint64_t results = 1;
    for (int i = 0; i < 50; i++) {
        uint32_t bad = 0;
        CHECK_EQ(hire_ended(&h, &bad, 1, results++), HIRE_AGAIN);
        CHECK_EQ(hire_ended(&h, &bad, 1, results++), HIRE_AGAIN);
        CHECK_EQ(hire_ended(&h, &bad, 1, results++), HIRE_BACK);
    }
}

int main(void) {
    TEST(test_grows_at_once);
    TEST(test_shrinks_with_patience);
    TEST(test_one_cycle_that_is_short);
    TEST(test_what_has_not_come);
    TEST(test_lost_meanwhile);
    TEST(test_workers_that_end);
    TEST(test_one_bad_host);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* A long stream through a remote queue: 100,000 messages, 16 slots, 64 nodes, one of them slow. Apart
 * from queue_test because it is too long for emulated processors. */
#include "queue_stage.h"

static void test_many_messages_and_one_slow_node(void) {
    struct stage *s = stage_start(64, 100000, QUEUE_WAIT_MIXED);
    s->pace_ns[37] = 200 * NS_PER_US;
    s->batch = 5;
    CHECK(stage_power(s));
    finished(s);
    check_all_but(s, NO_NODE);
    const struct queue_master_result *r = &s->results[0];
    CHECK(r->finished_ns - r->started_ns < 100000 * 55 * NS_PER_US);
    CHECK(s->changes >= 64 * 100000u);
    CHECK(r->transfers < 100000 / 6);
    CHECK_EQ(r->repeated, 0);
    CHECK(stage_result(s, 37, 0)->sets < 100000 / 3); /* one for each batch */
    CHECK(stage_result(s, 0, 0)->empty > 3000);
    stage_free(s);
}

int main(void) {
    TEST(test_many_messages_and_one_slow_node);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Remote queues on simulated clusters: nothing is lost, doubled, out of order or overwritten, however
 * slow a node is and whoever dies. The argument "measure" prints the figures of decision 12. */
#include "queue_stage.h"

static void test_many_messages_and_one_slow_node(void) {
    struct stage *s = stage_new(64);
    s->config.messages = 100000;
    s->pace_ns[37] = 100 * NS_PER_US;
    s->batch = 4;
    CHECK(stage_power(s));
    CHECK(WITHIN(s->c, 10000 * P, stage_finished(s)));
    stage_sound(s);
    for (uint32_t n = 0; n < 64; n++)
        stage_all(s, n);
    printf(
        "# transfers %llu compares %llu standing %llu virtual %llu ms\n",
        (unsigned long long)s->results[0].transfers, (unsigned long long)s->results[0].compares,
        (unsigned long long)s->results[0].standing,
        (unsigned long long)((s->results[0].finished_ns - s->results[0].started_ns) / NS_PER_MS));
    stage_free(s);
}

/* ---- the figures of decision 12 ---- */

static void measure(uint32_t nodes, enum queue_wait wait, uint64_t pace_ns) {
    struct stage *s = stage_new(nodes);
    s->c->look = NULL;
    s->config.messages = nodes > 500 ? 400 : 4000;
    s->config.queue.wait = wait;
    s->pace_ns[nodes / 2] = pace_ns;
    s->batch = 1;
    CHECK(stage_power(s));
    CHECK(WITHIN(s->c, 2000 * P, s->results[0].started));
    uint64_t before = world_counts(s->c->w)->messages;
    CHECK(WITHIN(s->c, 200000 * P, stage_finished(s)));
    const struct queue_master_result *r = &s->results[0];
    uint64_t n = s->config.messages;
    printf("| %u | %llu | %s | %.1f | %.2f | %.3f | %.3f |\n", nodes,
           (unsigned long long)(pace_ns / 1000), queue_wait_name(wait),
           (double)(r->finished_ns - r->started_ns) / 1000 / (double)n,
           (double)(world_counts(s->c->w)->messages - before) / (double)n / nodes,
           (double)r->compares / (double)n, (double)r->standing / (double)n);
    fflush(stdout);
    stage_free(s);
}

static void measure_all(void) {
    static const uint32_t sizes[] = {8, 64};
    static const uint64_t paces[] = {0, 50, 200, 2000};
    printf("| nodes | slow node, us a message | wait | us a message | messages a message and node "
           "| compares | standing |\n|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof paces / sizeof *paces; k++)
            for (enum queue_wait wait = 0; wait < QUEUE_WAITS; wait++)
                measure(sizes[i], wait, paces[k] * NS_PER_US);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "measure") == 0) {
        measure_all();
        return 0;
    }
    TEST(test_many_messages_and_one_slow_node);
    return tap_finish();
}

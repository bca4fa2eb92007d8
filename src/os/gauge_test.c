/* SPDX-License-Identifier: MIT */
/* Tests of the gauge: what must hold on any machine. */
#include "os/gauge.h"

#include "tap.h"

static void test_orders(void) {
    for (int t = 0; t < TRANSPORTS; t++) {
        struct gauge g;
        if (!CHECK_EQ(gauge_take((enum transport)t, &g), 0))
            return;
        printf("# %s, %u processors: send %llu, receive %llu, poll %llu, %llu; hop %llu, across "
               "%llu; fan-out on one %llu, of 4 KiB %llu, to few %llu, to many %llu ns\n",
               transport_name(g.transport), g.cpus, (unsigned long long)g.send_ns,
               (unsigned long long)g.receive_ns, (unsigned long long)g.poll_ns,
               (unsigned long long)g.empty_ns, (unsigned long long)g.hop_ns,
               (unsigned long long)g.cross_ns, (unsigned long long)g.fan_one_ns,
               (unsigned long long)g.fan_one_4k_ns, (unsigned long long)g.fan_few_ns,
               (unsigned long long)g.fan_many_ns);
        CHECK(g.cpus > 0);
        CHECK(g.send_ns > 0 && g.receive_ns > 0 && g.poll_ns > 0 && g.empty_ns > 0);
        CHECK(g.hop_ns > 0 && g.fan_few_ns > 0 && g.fan_many_ns > g.fan_few_ns);
        CHECK(g.fan_one_ns > g.hop_ns);
    }
}

int main(void) {
    TEST(test_orders);
    return tap_finish();
}

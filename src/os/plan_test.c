/* SPDX-License-Identifier: MIT */
/* Tests of what all daemons of a cluster agree on. */
#include "os/plan.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/units.h"
#include "tap.h"

static void test_tree_texts(void) {
    static const char *const good[] = {"k-ary:8", "k-ary:1", "binomial", "chain", "flat"};
    static const char *const bad[] = {"",
                                      "star",
                                      "k-ary:",
                                      "k-ary:0",
                                      "k-ary:8x",
                                      "k-ary:x",
                                      "flat:3",
                                      "k-ary:99999999999999999999",
                                      "averylongshapename"};
    struct tree t;
    char text[32];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK(plan_tree(good[i], &t));
        plan_tree_text(&t, text);
        CHECK_STR(text, good[i]);
    }
    CHECK(plan_tree("kary", &t) && t.shape == SHAPE_KARY && t.arity == 8);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!plan_tree(bad[i], &t));
}

/* The primitives accept them: that they fit into messages is asserted there. */
static void test_limits(void) {
    struct tree t;
    for (uint32_t nodes = 1; nodes <= PLAN_NODES_MAX; nodes *= 2) {
        CHECK(plan_tree("k-ary:8", &t));
        struct prim_config c = plan_prim(nodes, t, NS_PER_S);
        CHECK_EQ(c.tree.nodes, nodes);
        CHECK_EQ(limits_universe(&c.limits), nodes + 1);
        CHECK(prim_bytes(&c, true) > prim_bytes(&c, false));
    }
}

static void test_addresses(void) {
    char text[ADDRESS_TEXT_MAX];
    struct in_addr host;
    inet_pton(AF_INET, "127.70.1.2", &host);
    struct address a = plan_address(7, TRANSPORT_TCP, host);
    address_format(&a, text, sizeof text);
    CHECK_STR(text, "tcp:127.70.1.2:20007");
    a = plan_address(7, TRANSPORT_UNIX, host);
    address_format(&a, text, sizeof text);
    CHECK_STR(text, "unix:n7.sock");
    a = plan_launcher(7);
    address_format(&a, text, sizeof text);
    CHECK_STR(text, "seqpacket:p7.sock");
    CHECK_EQ(ntohl(plan_draw_host().s_addr) >> 24, 127);
}

int main(void) {
    TEST(test_tree_texts);
    TEST(test_limits);
    TEST(test_addresses);
    return tap_finish();
}

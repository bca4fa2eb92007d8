/* SPDX-License-Identifier: MIT */
/* What a host is told: it reads what was written, and knows whether that is new to it. */
#include "client/berthing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

static struct berthing sample(void) {
    struct berthing b = {.self = 3,
                         .called = "d",
                         .listen = "ib0",
                         .confine = "auto",
                         .system_cores = 2,
                         .boots = 160,
                         .stay = true,
                         .anew = true,
                         .hosts = bytes_from_str("0 a\n3 d\n"),
                         .key = bytes_from_str("node 1 2 3\n")};
    struct cluster *c = &b.cluster;
    *c = (struct cluster){.name = "local",
                          .prefix = "n",
                          .tree = "flat",
                          .version = "0.1",
                          .guarantee = "none",
                          .node_folder = "/tmp/storm-7/local",
                          .nodes = 20,
                          .pes = 2,
                          .root = 20,
                          .links = TRANSPORT_TCP,
                          .key = {1, 2},
                          .port_first = 20000,
                          .port_last = 20999};
    CHECK_EQ(address_parse(&c->manager, "tcp:[fd00::1]:20000"), 0);
    return b;
}

static bool equal(struct bytes a, const char *text) {
    return a.len == strlen(text) && memcmp(a.at, text, a.len) == 0;
}

static void test_round(void) {
    struct berthing b = sample(), back;
    struct cluster_trouble t;
    char address[ADDRESS_TEXT_MAX], folder[BERTHING_PATH_MAX];
    char *text = berthing_text(&b);
    CHECK(text != NULL);
    CHECK_EQ(berthing_parse(&back, text, &t), 0);
    CHECK_EQ(back.self, 3);
    CHECK_EQ(back.boots, 160);
    CHECK(back.stay && back.anew && !back.end);
    CHECK_STR(back.called, "d");
    CHECK_STR(back.listen, "ib0");
    CHECK_STR(back.confine, "auto");
    CHECK_EQ(back.system_cores, 2);
    CHECK_EQ(back.cluster.nodes, 20);
    CHECK_EQ(back.cluster.port_last, 20999);
    address_format(&back.cluster.manager, address, sizeof address);
    CHECK_STR(address, "tcp:[fd00::1]:20000");
    CHECK(equal(back.hosts, "0 a\n3 d\n"));
    CHECK(equal(back.key, "node 1 2 3\n"));
    berthing_folder(&back, folder);
    CHECK_STR(folder, "/tmp/storm-7/local/3");
    free(text);
}

static void test_same(void) {
    struct berthing b = sample();
    char *first = berthing_text(&b);
    b.boots++;
    b.helped = true;
    b.anew = false;
    b.hosts = bytes_from_str("0 a\n3 d\n4 e\n");
    char *later = berthing_text(&b);
    b.cluster.key[0]++;
    char *other = berthing_text(&b);
    CHECK(berthing_same(first, later));
    CHECK(!berthing_same(first, other));
    CHECK(!berthing_same(first, ""));
    free(first);
    free(later);
    free(other);
}

static void test_bad(void) {
    static const char *const wrong[][2] = {
        {"self 3", "self 20"},        {"self 3", "self x"},
        {"stay yes", "stay perhaps"}, {"boots 160", "boots 99999999999"},
        {"-- key", "-- kee"},         {"nodes 20", "nodes 0"},
        {"ports 20000", "ports 0"}};
    struct berthing b = sample(), back;
    struct cluster_trouble t;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *text = berthing_text(&b), changed[8192];
        char *at = strstr(text, wrong[i][0]);
        CHECK(at != NULL);
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - text), text, wrong[i][1],
                 at + strlen(wrong[i][0]));
        CHECK_EQ(berthing_parse(&back, changed, &t), -EBADMSG);
        CHECK(t.words[0] != '\0');
        free(text);
    }
    CHECK_EQ(berthing_parse(&back, "", &t), -EBADMSG);
}

int main(void) {
    TEST(test_round);
    TEST(test_same);
    TEST(test_bad);
    return tap_finish();
}

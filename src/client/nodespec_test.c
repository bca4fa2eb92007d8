/* SPDX-License-Identifier: MIT */
/* The node file: what it says is taken, what it says wrongly is pointed at. */
#include "client/nodespec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "client/hostsfile.h"
#include "tap.h"

static const struct cluster cluster = {.name = "test", .nodes = 100, .prefix = "n"};
static struct cluster_trouble trouble;

static struct nodespec good(const char *text) {
    struct nodespec n;
    CHECK_EQ(nodespec_parse(&cluster, text, &n, &trouble), 0);
    return n;
}

static void check_wrong(const char *text, const char *words) {
    struct nodespec n;
    CHECK_EQ(nodespec_parse(&cluster, text, &n, &trouble), -EBADMSG);
    CHECK_STR(trouble.words, words);
    nodespec_free(&n);
}

static void test_switches(void) {
    struct nodespec n = good("# who hangs where\n\n"
                             "n[0-32]\tswitch=s1   # the first\n"
                             "  n[33-65],n70 switch=rack-2.b\r\n"
                             "n66\n"
                             "n70 switch=rack-2.b");
    CHECK_EQ(n.switch_count, 2);
    CHECK_STR(nodespec_switch(&n, 0), "s1");
    CHECK_STR(nodespec_switch(&n, 32), "s1");
    CHECK_STR(nodespec_switch(&n, 33), "rack-2.b");
    CHECK_STR(nodespec_switch(&n, 70), "rack-2.b");
    CHECK(nodespec_switch(&n, 66) == NULL && nodespec_switch(&n, 99) == NULL);
    CHECK(nodespec_switch(&n, 100) == NULL);
    CHECK(n.switches[0] == 1 && n.switches[33] == 2 && n.switches[66] == 0);
    nodespec_free(&n);
    CHECK(nodespec_switch(&n, 0) == NULL);
}

static void test_hosts(void) {
    struct hosts hosts;
    struct nodespec n;
    int error = 0;
    CHECK_EQ(hosts_parse(&hosts, 100, "0 h0\n1 h1\n50 gate\n", &trouble), 0);
    struct cluster named = cluster;
    named.hosts = hosts_roster(&hosts, "n", &error, NULL);
    CHECK_EQ(nodespec_parse(&named, "h[0-1] switch=a\ngate switch=b\n", &n, &trouble), 0);
    CHECK_STR(nodespec_switch(&n, 1), "a");
    CHECK_STR(nodespec_switch(&n, 50), "b");
    nodespec_free(&n);
    CHECK_EQ(nodespec_parse(&named, "n0 switch=a\n", &n, &trouble), -EBADMSG);
    CHECK_STR(trouble.words, "line 1: \"n0\": there is no such node");
    nodespec_free(&n);
    CHECK_EQ(nodespec_parse(&named, "h0 switch=a\nh0 switch=b\n", &n, &trouble), -EBADMSG);
    CHECK_STR(trouble.words, "line 2: \"switch=b\": h0 hangs on a already");
    nodespec_free(&n);
    cluster_free(&named);
    hosts_free(&hosts);
}

static void test_empty(void) {
    struct nodespec n = good("");
    CHECK_EQ(n.switch_count, 0);
    nodespec_free(&n);
    n = good("\n\n   \n#");
    CHECK(nodespec_switch(&n, 5) == NULL);
    nodespec_free(&n);
}

static void test_many(void) {
    static char text[100 * 32];
    size_t len = 0;
    for (int i = 0; i < 100; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "n%d switch=s%d\n", i, i);
    struct nodespec n = good(text);
    CHECK_EQ(n.switch_count, 100);
    CHECK_STR(nodespec_switch(&n, 99), "s99");
    nodespec_free(&n);
}

static void test_mistakes(void) {
    check_wrong("n0 switch=a\nn100 switch=b", "line 2: \"n100\": there is no such node");
    check_wrong("\n\nn[0-3 switch=b", "line 3: \"n[0-3\": unclosed bracket at \"\"");
    check_wrong("n0 swich=a", "line 1: \"swich\": there is no such key; switch is one");
    check_wrong("n0 s1", "line 1: \"s1\": write KEY=VALUE, such as switch=s1");
    check_wrong("n0 switch=", "line 1: \"switch=\": its name is of up to 31 letters, digits, -, _ "
                              "and .");
    check_wrong("n0 switch=a/b", "line 1: \"switch=a/b\": its name is of up to 31 letters, digits, "
                                 "-, _ and .");
    check_wrong("n[0-9] switch=a\nn[9-10] switch=b", "line 2: \"switch=b\": n9 hangs on a already");
    check_wrong("m0 switch=a", "line 1: \"m0\": there is no such node");
}

static void test_file(void) {
    char path[] = "/tmp/storm-nodespec.XXXXXX";
    struct nodespec n;
    int fd = mkstemp(path);
    CHECK_EQ(write(fd, "n1 switch=x\0", 12), 12);
    CHECK_EQ(nodespec_load(&cluster, path, &n, &trouble), -EBADMSG);
    nodespec_free(&n);
    CHECK_EQ(ftruncate(fd, 11), 0);
    CHECK_EQ(nodespec_load(&cluster, path, &n, &trouble), 0);
    CHECK_STR(nodespec_switch(&n, 1), "x");
    nodespec_free(&n);
    close(fd);
    unlink(path);
    CHECK_EQ(nodespec_load(&cluster, path, &n, &trouble), -ENOENT);
    nodespec_free(&n);
}

/* Whatever stands there: it is taken or refused in words. */
static void test_noise(void) {
    static const char letters[] = "n0123456789[]-, \t\n=switch#ab\xff";
    struct random r;
    random_init(&r, 1);
    for (int i = 0; i < 20000; i++) {
        char text[64];
        size_t len = random_below(&r, sizeof text);
        for (size_t k = 0; k < len; k++)
            text[k] = letters[random_below(&r, sizeof letters - 1)];
        text[len] = '\0';
        struct nodespec n;
        int status = nodespec_parse(&cluster, text, &n, &trouble);
        CHECK(status == 0 || (status == -EBADMSG && strncmp(trouble.words, "line ", 5) == 0));
        nodespec_free(&n);
    }
}

int main(void) {
    TEST(test_switches);
    TEST(test_hosts);
    TEST(test_empty);
    TEST(test_many);
    TEST(test_mistakes);
    TEST(test_file);
    TEST(test_noise);
    return tap_finish();
}

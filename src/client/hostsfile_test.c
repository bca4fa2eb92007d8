/* SPDX-License-Identifier: MIT */
/* The file of hosts: what it says is taken, what it says wrongly is pointed at, and it is replaced as a whole. */
#include "client/hostsfile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

enum { CAPACITY = 16 };

static struct cluster_trouble trouble;

static struct hosts good(const char *text) {
    struct hosts h;
    CHECK_EQ(hosts_parse(&h, CAPACITY, text, &trouble), 0);
    return h;
}

static void check_wrong(const char *text, const char *words) {
    struct hosts h;
    CHECK_EQ(hosts_parse(&h, CAPACITY, text, &trouble), -EBADMSG);
    CHECK_STR(trouble.words, words);
    hosts_free(&h);
}

static void test_parse(void) {
    uint32_t node = 0;
    struct hosts h = good("# who is there\n\n0 h0\n  7\tgate.example.org switch=s1 \r\n3 h3");
    CHECK(h.count == 3 && h.capacity == CAPACITY);
    CHECK_STR(h.at[0].name, "h0");
    CHECK_STR(h.at[0].on_switch, "");
    CHECK_STR(h.at[7].name, "gate.example.org");
    CHECK_STR(h.at[7].on_switch, "s1");
    CHECK_STR(h.at[1].name, "");
    CHECK(hosts_find(&h, "h3", &node) && node == 3);
    CHECK(!hosts_find(&h, "", &node) && !hosts_find(&h, "h1", &node));
    CHECK_EQ(hosts_vacant(&h), 1);
    hosts_free(&h);
    h = good("");
    CHECK_EQ(h.count, 0);
    hosts_free(&h);
}

static void test_wrong(void) {
    check_wrong("0 h0\nh1\n", "line 2: NUMBER NAME expected");
    check_wrong("0 h0\n1\n", "line 2: NUMBER NAME expected");
    check_wrong("0x h0\n", "line 1: NUMBER NAME expected");
    check_wrong("0 h0 switch=s more", "line 1: NUMBER NAME expected");
    check_wrong("#\n16 h0\n", "line 2: 16: the highest number is 15");
    check_wrong("99999999999999999999 h0\n", "line 1: NUMBER NAME expected");
    check_wrong("0 h0\n0 h1\n", "line 2: h1: line 1 has given 0 to another");
    check_wrong("0 h0\n1 h1\n4 h0\n", "line 3: h0 has another number, too");
    check_wrong("0 h[0-3]\n", "line 1: \"h[0-3]\" is no name of a host");
    check_wrong("0 -h\n", "line 1: \"-h\" is no name of a host");
    check_wrong("0 a,b\n", "line 1: \"a,b\" is no name of a host");
    check_wrong("0 h0 rack=1\n", "line 1: \"rack=1\": there is no such key; switch=NAME is one");
    check_wrong("0 h0 switch=\n",
                "line 1: \"switch=\": its name is of up to 31 letters, digits, -, _ and .");
    char longer[200] = "0 ";
    memset(longer + 2, 'x', ROSTER_NAME_MAX);
    struct hosts h;
    CHECK_EQ(hosts_parse(&h, CAPACITY, longer, &trouble), -EBADMSG);
    hosts_free(&h);
}

static void test_change(void) {
    struct hosts h;
    CHECK_EQ(hosts_init(&h, 2), 0);
    CHECK_EQ(hosts_add(&h, 1, "b", "s"), 0);
    CHECK_EQ(hosts_add(&h, 1, "c", NULL), -EBUSY);
    CHECK_EQ(hosts_add(&h, 2, "c", NULL), -ERANGE);
    CHECK_EQ(hosts_add(&h, 0, "c d", NULL), -EINVAL);
    CHECK_EQ(hosts_add(&h, 0, "", NULL), -EINVAL);
    CHECK_EQ(hosts_add(&h, 0, "a", "no switch"), -EINVAL);
    CHECK_EQ(hosts_add(&h, 0, "a", NULL), 0);
    CHECK(h.count == 2 && hosts_vacant(&h) == 2);
    hosts_remove(&h, 1);
    hosts_remove(&h, 1);
    hosts_remove(&h, 7);
    CHECK(h.count == 1 && hosts_vacant(&h) == 1);
    hosts_free(&h);
    hosts_free(&h);
}

static void test_told(void) {
    struct hosts h = good("2 x\n5 yy\n");
    struct hosts_told told;
    int error = 0;
    CHECK_EQ(hosts_tell(&h, &told), 0);
    CHECK(nodeset_count(&told.taken) == 2 && nodeset_has(&told.taken, 5));
    CHECK(bytes_equal(told.names, bytes_of("x\0yy", 5)));
    free(told.memory);
    struct roster *r = hosts_roster(&h, "n", &error, NULL);
    uint32_t node = 0;
    CHECK(r != NULL && roster_count(r) == 2 && roster_find(r, "yy", &node) && node == 5);
    free(r);
    hosts_free(&h);
    h = good("");
    CHECK_EQ(hosts_tell(&h, &told), 0);
    CHECK(nodeset_empty(&told.taken) && told.names.len == 0);
    free(told.memory);
    hosts_free(&h);
}

static void test_switches(void) {
    struct cluster c = {.name = "test", .nodes = CAPACITY, .prefix = "n"};
    struct hosts h = good("2 x switch=a\n5 y switch=b\n6 z\n");
    struct nodespec spec = {0};
    CHECK_EQ(hosts_switches(&h, &spec), 0);
    CHECK_STR(nodespec_switch(&spec, 2), "a");
    CHECK_STR(nodespec_switch(&spec, 5), "b");
    CHECK(nodespec_switch(&spec, 6) == NULL && spec.switch_count == 2);
    nodespec_free(&spec);
    CHECK_EQ(nodespec_parse(&c, "n[5-6] switch=c\n", &spec, &trouble), 0);
    CHECK_EQ(hosts_switches(&h, &spec), 0);
    CHECK_STR(nodespec_switch(&spec, 2), "a");
    CHECK_STR(nodespec_switch(&spec, 5), "c"); /* as the file has it */
    nodespec_free(&spec);
    hosts_free(&h);
}

static void test_file(void) {
    char folder[] = "/tmp/storm-hosts-XXXXXX", path[64];
    struct stat before, after;
    struct hosts got, h = good("3 h3 switch=s1\n0 h0\n");
    if (!CHECK(mkdtemp(folder) != NULL))
        return;
    CHECK_EQ(hosts_path(folder, path, sizeof path), 0);
    CHECK_EQ(hosts_path(folder, path, 8), -ENAMETOOLONG);
    CHECK_EQ(hosts_path(folder, path, sizeof path), 0);
    CHECK_EQ(hosts_read(&got, CAPACITY, path, &trouble), -ENOENT);
    hosts_free(&got);
    CHECK_EQ(hosts_write(&h, path), 0);
    CHECK(stat(path, &before) == 0 && (before.st_mode & 0777) == 0600);
    CHECK_EQ(before.st_size, strlen("0 h0\n3 h3 switch=s1\n")); /* sorted */
    CHECK_EQ(hosts_read(&got, CAPACITY, path, &trouble), 0);
    CHECK_EQ(got.count, 2);
    CHECK_STR(got.at[3].name, "h3");
    CHECK_STR(got.at[3].on_switch, "s1");
    hosts_free(&got);
    CHECK_EQ(hosts_add(&h, 9, "h0", NULL), 0);
    CHECK_EQ(hosts_write(&h, path), -EEXIST); /* and the file is as it was */
    CHECK(stat(path, &after) == 0 && after.st_ino == before.st_ino);
    hosts_remove(&h, 9);
    CHECK_EQ(hosts_write(&h, path), 0); /* another, in its place */
    CHECK_EQ(hosts_read(&got, 2, path, &trouble), -EBADMSG);
    CHECK_STR(trouble.words, "line 2: 3: the highest number is 1");
    hosts_free(&got);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(rmdir(folder), 0); /* nothing else was left there */
    CHECK_EQ(hosts_write(&h, path), -ENOENT);
    hosts_free(&h);
}

int main(void) {
    TEST(test_parse);
    TEST(test_wrong);
    TEST(test_change);
    TEST(test_told);
    TEST(test_switches);
    TEST(test_file);
    return tap_finish();
}

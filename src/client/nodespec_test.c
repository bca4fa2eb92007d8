/* SPDX-License-Identifier: MIT */
/* The node file: what it says is taken, what it says wrongly is pointed at. */
#include "client/nodespec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "client/hostsfile.h"
#include "sched/need.h"
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
    check_wrong("n0 swich=a", "line 1: \"swich\": there is no such key; did you mean switch?");
    check_wrong("n0 s1", "line 1: \"s1\": write KEY=VALUE, such as switch=s1");
    check_wrong("n0 switch=", "line 1: \"switch=\": its name is of up to 31 letters, digits, -, _ "
                              "and .");
    check_wrong("n0 switch=a/b", "line 1: \"switch=a/b\": its name is of up to 31 letters, digits, "
                                 "-, _ and .");
    check_wrong("n[0-9] switch=a\nn[9-10] switch=b", "line 2: \"switch=b\": n9 hangs on a already");
    check_wrong("m0 switch=a", "line 1: \"m0\": there is no such node");
}

/* ---- owners ---- */

static void test_owners(void) {
    struct nodespec_told told;
    struct nodespec n = good(
        "n[0-3] owner=keyboard\nn3 owner=keyboard switch=s\nn5 switch=t, owner=load>0.8:5m+/run/desk\n");
    CHECK_EQ(n.owner_count, 2);
    CHECK_EQ(nodespec_tell(&n, &told), 0);
    CHECK_EQ(told.in.owners.len, (size_t)4 * n.nodes);
    CHECK_EQ(load_le32(told.in.owners.at), 1);
    CHECK_EQ(load_le32(told.in.owners.at + 12), 1);
    CHECK_EQ(load_le32(told.in.owners.at + 16), 0);
    CHECK_EQ(load_le32(told.in.owners.at + 20), 2);
    static const char texts[] = "keyboard\0load>0.8:5m+/run/desk";
    CHECK(bytes_equal(told.in.owner_texts, bytes_of(texts, sizeof texts)));
    free(told.memory);
    nodespec_free(&n);
    n = good("n0 switch=s\n");
    CHECK_EQ(nodespec_tell(&n, &told), 0);
    CHECK_EQ(told.in.owner_texts.len, 0);
    free(told.memory);
    nodespec_free(&n);
}

static void test_mistakes_of_owners(void) {
    static const struct {
        const char *text;
        uint32_t line, column, length;
        const char *words;
    } cases[] = {
        {"n0 owner=keybord", 1, 9, 7, "did you mean keyboard?"},
        {"\nn0 switch=s owner=load+desk", 2, 23, 4, "does not tell of an owner"},
        {"n0 owner=keyboard:soon", 1, 18, 4, "no time"},
        {"n0 owner=", 1, 9, 1, "does not tell of an owner"},
        {"n0 owner=load\nn[0-1] owner=keyboard", 2, 13, 8, "n0 has owner=load already"},
        {"n0 ovner=load", 1, 3, 5, "did you mean owner?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct nodespec n;
        struct nodespec_mistake m;
        CHECK_EQ(nodespec_read(&cluster, NULL, cases[i].text, &n, &m), -EBADMSG);
        CHECK_EQ(m.at.line, cases[i].line);
        CHECK_EQ(m.at.column, cases[i].column);
        CHECK_EQ(m.at.length, cases[i].length);
        CHECK(strstr(m.at.words, cases[i].words) != NULL);
        nodespec_free(&n);
    }
}

/* ---- attributes: figure 4 of the Cplant paper ---- */

static const char attribs[] = "CPU  =, >=, <=  500MHZ 1GHZ 2GHZ\n"
                              "MEM  =, >=, <=  256MB 512MB 2GB\n"
                              "NIC  =          FAST   SLOW\n";

static const char printed[] = "0    4  CPU=500MHZ, MEM=512MB, NIC=SLOW\n"
                              "1    4  CPU=1GHZ,   MEM=512MB, NIC=SLOW\n"
                              "2    4  CPU=2GHZ,   MEM=1GB,   NIC=FAST\n"
                              "10   2  CPU=2GHZ,   MEM=2GB,   NIC=FAST\n";

static const char mended[] = "0    4  CPU=500MHZ, MEM=512MB, NIC=SLOW\n"
                             "1    4  CPU=1GHZ,   MEM=512MB, NIC=SLOW\n"
                             "2    4  CPU=2GHZ,   MEM=2GB,   NIC=FAST\n"
                             "10   2  CPU=2GHZ,   MEM=2GB,   NIC=FAST\n";

static void check_mistake(const char *text, const char *words) {
    struct nodespec n;
    struct nodespec_mistake m;
    char out[400];
    CHECK_EQ(nodespec_read(&cluster, attribs, text, &n, &m), -EBADMSG);
    CHECK(!m.in_attribs);
    mistake_format(&m.at, "cplant-nodespec", out, sizeof out);
    CHECK_STR(out, words);
    nodespec_free(&n);
}

/* The table that the manager has of it. */
static struct traits table_of(const struct nodespec *n) {
    struct traits t;
    traits_init(&t, n->nodes, 32, malloc(traits_bytes(n->nodes, 32)));
    CHECK_EQ(traits_take(&t, bytes_of(n->traits, n->traits_len)), 0);
    return t;
}

static const char *selected(const struct traits *t, const char *text) {
    static char list[256];
    struct nodeset set;
    struct need need;
    struct mistake m;
    void *storage = malloc(nodeset_bytes(t->nodes));
    nodeset_init(&set, t->nodes, storage);
    if (need_compile(&need, t, text, &m) < 0) {
        mistake_format(&m, "-na", list, sizeof list);
    } else {
        need_select(&need, t, &set);
        nodeset_format(&set, "", list, sizeof list);
    }
    free(storage);
    return list;
}

static void test_paper(void) {
    struct nodespec n;
    struct nodespec_mistake m;
    char out[600];
    CHECK_EQ(nodespec_read(&cluster, attribs, printed, &n, &m), -EBADMSG);
    mistake_show(&m.at, "cplant-nodespec", printed, out, sizeof out);
    CHECK_STR(out, "cplant-nodespec:3:25: MEM has no value \"1GB\"; it has 256MB, 512MB, 2GB; did "
                   "you mean 2GB?\n"
                   "  2    4  CPU=2GHZ,   MEM=1GB,   NIC=FAST\n"
                   "                          ^~~");
    nodespec_free(&n);
    CHECK_EQ(nodespec_read(&cluster, attribs, mended, &n, &m), 0);
    struct traits t = table_of(&n);
    CHECK_STR(selected(&t, "MEM=512MB, NI=SLOW"),
              "-na:12: there is no attribute \"NI\"; did you mean NIC?");
    CHECK_STR(selected(&t, "MEM=512MB, NIC=SLOW"), "[0-1]");
    CHECK_STR(selected(&t, "MEM>=512MB"), "[0-2,10]");
    CHECK_STR(selected(&t, "CPU=500MHZ, MEM=256MB, NIC=FAST"), "[3-9,11-99]");
    CHECK_EQ(nodespec_width(&n, 0), 4);
    CHECK_EQ(nodespec_width(&n, 10), 2);
    CHECK_EQ(nodespec_width(&n, 3), 1); /* as the paper has it */
    CHECK_EQ(nodespec_width(&n, 100), 0);
    free(t.values);
    nodespec_free(&n);
}

static void test_widths(void) {
    struct nodespec n = good("n[0-3] 4 switch=s1\nn[2-5] 4\nn6 switch=s1\n");
    CHECK(nodespec_width(&n, 0) == 4 && nodespec_width(&n, 5) == 4);
    CHECK(nodespec_width(&n, 6) == 0 && nodespec_width(&n, 7) == 0);
    CHECK_STR(nodespec_switch(&n, 0), "s1");
    nodespec_free(&n);
    struct nodespec_mistake m;
    CHECK_EQ(nodespec_read(&cluster, attribs, "n0 switch=a\nn1 2\n", &n, &m), 0);
    CHECK(nodespec_width(&n, 0) == 0 && nodespec_width(&n, 1) == 2 && nodespec_width(&n, 2) == 1);
    nodespec_free(&n);
    CHECK_EQ(nodespec_read(&cluster, attribs, "n0 switch=a\n", &n, &m), 0);
    CHECK(nodespec_width(&n, 0) == 0 && nodespec_width(&n, 2) == 0); /* nobody speaks of widths */
    nodespec_free(&n);
}

static void test_labels_and_roles(void) {
    struct nodespec n = good("[0-3] label=big, labels=new+old  role=service\n"
                             "n3,n7 LABEL=big dedicated=no # and this\n"
                             "9 Role=Administration");
    struct traits t = table_of(&n);
    CHECK_STR(selected(&t, "labels=big"), "[0-3,7]");
    CHECK_STR(selected(&t, "labels=old && role=service"), "[0-3]");
    CHECK_STR(selected(&t, "!dedicated"), "[3,7]");
    CHECK_STR(selected(&t, "role=administration"), "9");
    free(t.values);
    nodespec_free(&n);
}

static void test_numbers_of_hosts(void) {
    struct hosts hosts;
    struct nodespec n;
    int error = 0;
    CHECK_EQ(hosts_parse(&hosts, 100, "0 h0\n1 h1\n50 7\n", &trouble), 0);
    struct cluster named = cluster;
    named.hosts = hosts_roster(&hosts, "n", &error, NULL);
    CHECK_EQ(nodespec_parse(&named, "[0-1] switch=a\n7 switch=b\n", &n, &trouble), 0);
    CHECK_STR(nodespec_switch(&n, 1), "a");
    CHECK_STR(nodespec_switch(&n, 50), "b"); /* a name comes before a number */
    nodespec_free(&n);
    CHECK_EQ(nodespec_parse(&named, "[1-2] switch=a\n", &n, &trouble), -EBADMSG);
    CHECK_STR(trouble.words, "line 1: \"2\": there is no such node");
    nodespec_free(&n);
    cluster_free(&named);
    hosts_free(&hosts);
}

static void test_attribute_mistakes(void) {
    check_mistake("0 CPU=1GHZ MEM=2GB NI=SLOW",
                  "cplant-nodespec:1:20: \"NI\": there is no such key; did you mean NIC?");
    check_mistake("# two lines\n  n[0-3] CPU=1GHZ MEM=2GB\n",
                  "cplant-nodespec:2:3: n0: NIC is missing; who says one attribute of a node says "
                  "all");
    check_mistake("n[0-3] CPU=1GHZ MEM=2GB NIC=SLOW\nn3 NIC=FAST",
                  "cplant-nodespec:2:8: \"FAST\": n3 has NIC=SLOW already");
    check_mistake("n0 MEMORY=2GB",
                  "cplant-nodespec:1:4: MEMORY is found out by the nodes themselves");
    check_mistake("n0 4\n0 5", "cplant-nodespec:2:3: \"5\": n0 has 4 processors already");
    check_mistake("n0 0",
                  "cplant-nodespec:1:4: \"0\": a node has at least one processor, and at most "
                  "1073741824");
    check_mistake("n0 role=servant",
                  "cplant-nodespec:1:9: ROLE has no value \"servant\"; it has compute, service, "
                  "administration; did you mean service?");
    check_mistake("n0 dedicated=perhaps",
                  "cplant-nodespec:1:14: DEDICATED wants TRUE or FALSE, not \"perhaps\"");
    check_mistake("n0 label=", "cplant-nodespec:1:10: \"\" cannot be a label: up to 31 letters, "
                               "digits, . _ - / : @ %");
    check_mistake("n0 labels=a+#",
                  "cplant-nodespec:1:13: \"#\" cannot be a label: up to 31 letters, "
                  "digits, . _ - / : @ %");
    check_mistake("n0 colour=red",
                  "cplant-nodespec:1:4: \"colour\": there is no such key; switch, "
                  "label, role, dedicated, owner are, and names of the attribute file");
    check_mistake("200 switch=a", "cplant-nodespec:1:1: \"200\": there is no such node");
    struct nodespec n;
    struct nodespec_mistake m;
    CHECK_EQ(nodespec_read(&cluster, "CPU 1GHZ", "", &n, &m), -EBADMSG);
    CHECK(m.in_attribs && m.at.line == 1 && m.at.column == 4);
    nodespec_free(&n);
}

static void test_file(void) {
    char path[] = "/tmp/storm-nodespec.XXXXXX", why[NODESPEC_WHY_MAX];
    struct nodespec n;
    int fd = mkstemp(path);
    CHECK_EQ(write(fd, "n1 switch=x\0", 12), 12);
    CHECK_EQ(nodespec_load(&cluster, NULL, path, &n, why), -EBADMSG);
    nodespec_free(&n);
    CHECK_EQ(ftruncate(fd, 11), 0);
    CHECK_EQ(nodespec_load(&cluster, NULL, path, &n, why), 0);
    CHECK_STR(nodespec_switch(&n, 1), "x");
    nodespec_free(&n);
    close(fd);
    unlink(path);
    CHECK_EQ(nodespec_load(&cluster, NULL, path, &n, why), -ENOENT);
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

/* The same with words of every kind: what is wrong is somewhere in the text. */
static void test_noise_of_words(void) {
    static const char *const words[] = {"n0",       "[0-3]",   " ",         "\n",   ",",
                                        "CPU=1GHZ", "MEM=",    "2GB",       "NIC=", "FAST",
                                        "switch=s", "label=a", "+b",        "4",    "role",
                                        "=",        "#",       "dedicated", "=no",  "MEM=512MB",
                                        " "};
    struct random r;
    unsigned taken = 0;
    random_init(&r, 2);
    for (int i = 0; i < 20000; i++) {
        char text[256];
        struct text t;
        text_init(&t, text, sizeof text);
        for (uint64_t k = random_below(&r, 20); k > 0; k--) {
            text_str(&t, words[random_below(&r, sizeof words / sizeof words[0])]);
            text_str(&t, random_chance(&r, 1, 2) ? " " : "");
        }
        struct nodespec n;
        struct nodespec_mistake m;
        int status = nodespec_read(&cluster, attribs, text, &n, &m);
        taken += status == 0;
        CHECK(status == 0 || (status == -EBADMSG && m.at.line > 0 && m.at.words[0] != '\0' &&
                              m.at.column <= strlen(text)));
        nodespec_free(&n);
    }
    CHECK(taken > 0 && taken < 20000);
}

int main(void) {
    TEST(test_switches);
    TEST(test_hosts);
    TEST(test_empty);
    TEST(test_many);
    TEST(test_mistakes);
    TEST(test_owners);
    TEST(test_mistakes_of_owners);
    TEST(test_paper);
    TEST(test_widths);
    TEST(test_labels_and_roles);
    TEST(test_numbers_of_hosts);
    TEST(test_attribute_mistakes);
    TEST(test_file);
    TEST(test_noise);
    TEST(test_noise_of_words);
    return tap_finish();
}

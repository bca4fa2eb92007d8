/* SPDX-License-Identifier: MIT */
/* Tests of the cluster file, its folder, and names of nodes. */
#include "client/cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

static struct cluster example(void) {
    struct cluster c = {.name = "local",
                        .nodes = 64,
                        .pes = 2,
                        .prefix = "n",
                        .tree = "kary:8",
                        .links = TRANSPORT_UNIX,
                        .key = {0x0123456789abcdef, 0xfedcba9876543210},
                        .root = 0,
                        .version = "0.1.0",
                        .started_ns = 1700000000000000000,
                        .watcher = 4711,
                        .guarantee = "cgroup of its own",
                        .orphan_ns = 2000000000,
                        .fabric = "ofi:verbs;ofi_rxm",
                        .hook = "/usr/local/bin/repair it"};
    CHECK_EQ(address_parse(&c.manager, "unix:/tmp/x/manager"), 0);
    return c;
}

static void check_same(const struct cluster *a, const struct cluster *b) {
    CHECK_STR(a->name, b->name);
    CHECK_EQ(a->nodes, b->nodes);
    CHECK_EQ(a->pes, b->pes);
    CHECK_STR(a->prefix, b->prefix);
    CHECK_STR(a->tree, b->tree);
    CHECK_EQ(a->links, b->links);
    CHECK(a->key[0] == b->key[0] && a->key[1] == b->key[1]);
    CHECK_STR(a->manager.local.sun_path, b->manager.local.sun_path);
    CHECK_EQ(a->started_ns, b->started_ns);
    CHECK_EQ(a->watcher, b->watcher);
    CHECK_STR(a->version, b->version);
    CHECK_STR(a->guarantee, b->guarantee);
    CHECK_EQ(a->orphan_ns, b->orphan_ns);
    CHECK_STR(a->hook, b->hook);
    CHECK_STR(a->fabric, b->fabric);
}

static void test_file(void) {
    char folder[] = "/tmp/storm-cluster-XXXXXX", path[64];
    struct cluster_trouble t;
    struct cluster c = example(), got;
    if (!CHECK(mkdtemp(folder) != NULL))
        return;
    CHECK_EQ(cluster_load(&got, folder, &t), -ENOENT);
    CHECK_EQ(cluster_save(&c, folder), 0);
    c.nodes = 65;
    CHECK_EQ(cluster_save(&c, folder), 0); /* replaces */
    CHECK_EQ(cluster_load(&got, folder, &t), 0);
    check_same(&got, &c);
    struct stat s;
    snprintf(path, sizeof path, "%s/cluster", folder);
    CHECK(stat(path, &s) == 0 && (s.st_mode & 0777) == 0600);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(rmdir(folder), 0); /* and nothing else was there */
    CHECK_EQ(cluster_save(&c, folder), -ENOENT);
}

static const char good[] =
    "name a\nnodes 4\nkey 00000000000000010000000000000002\nmanager unix:/s\n";

static void test_parse(void) {
    struct cluster_trouble t;
    struct cluster c;
    char text[512];
    CHECK_EQ(cluster_parse(&c, good, &t), 0);
    CHECK(c.nodes == 4 && c.pes == 1 && c.key[1] == 2);
    CHECK_STR(c.prefix, "n");
    snprintf(text, sizeof text, "# words\n\nlater than us\n%s", good);
    CHECK_EQ(cluster_parse(&c, text, &t), 0);
    static const struct {
        const char *more, *words;
    } wrong[] = {
        {"nodes 4\n", "line 5: nodes is there twice"},
        {"hook repair\n", "line 5: \"repair\" will not do for hook"},
        {"pes 0\n", "line 5: \"0\" will not do for pes"},
        {"pes\n", "line 5: \"key value\" expected"},
        {"links carrier\n", "line 5: \"carrier\" will not do for links"},
        {"root 5\n", "there is no node 5 to be the root"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(text, sizeof text, "%s%s", good, wrong[i].more);
        CHECK_EQ(cluster_parse(&c, text, &t), -EBADMSG);
        CHECK_STR(t.words, wrong[i].words);
    }
    CHECK_EQ(cluster_parse(&c, "name a\nnodes 4\n", &t), -EBADMSG);
    CHECK_STR(t.words, "line 3: no line tells the key");
    CHECK_EQ(cluster_parse(&c, "", &t), -EBADMSG);
    CHECK_EQ(cluster_parse(&c, "key 12\n", &t), -EBADMSG);
    CHECK_EQ(cluster_parse(&c, "key 0000000000000001000000000000000G\n", &t), -EBADMSG);
}

static void test_folder(void) {
    char out[CLUSTER_PATH_MAX], small[8];
    setenv("STORM_HOME", "/a/b", 1);
    CHECK_EQ(cluster_folder("local", out, sizeof out), 0);
    CHECK_STR(out, "/a/b/local");
    CHECK_EQ(cluster_folder("local", small, sizeof small), -ENAMETOOLONG);
    CHECK_EQ(cluster_folder("../x", out, sizeof out), -EINVAL);
    CHECK_EQ(cluster_folder("..", out, sizeof out), -EINVAL);
    CHECK_EQ(cluster_folder("", out, sizeof out), -EINVAL);
    CHECK_EQ(cluster_folder("a/b", out, sizeof out), -EINVAL);
    unsetenv("STORM_HOME");
    setenv("HOME", "/h", 1);
    CHECK_EQ(cluster_folder("x.1", out, sizeof out), 0);
    CHECK_STR(out, "/h/.storm/x.1");
    unsetenv("STORM_CLUSTER");
    CHECK_STR(cluster_pick(NULL), "local");
    setenv("STORM_CLUSTER", "big", 1);
    CHECK_STR(cluster_pick(NULL), "big");
    CHECK_STR(cluster_pick("small"), "small");
}

static void test_nodes(void) {
    uint64_t storage[16];
    struct nodeset set;
    struct cluster_trouble t;
    struct cluster c = example();
    char name[CLUSTER_NODE_NAME_MAX];
    CHECK(nodeset_bytes(c.nodes) <= sizeof storage);
    nodeset_init(&set, c.nodes, storage);
    CHECK_EQ(cluster_nodes(&c, "n[0-3,63],n7", &set, &t), 0);
    CHECK(nodeset_count(&set) == 6 && nodeset_has(&set, 63) && nodeset_has(&set, 7));
    CHECK_EQ(cluster_nodes(&c, "n[60-64]", &set, &t), -ENOENT);
    CHECK_STR(t.words, "n64");
    static const char *const unknown[] = {"m3", "n", "n03", "n1x", "n99999999999999"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        CHECK_EQ(cluster_nodes(&c, unknown[i], &set, &t), -ENOENT);
        CHECK_STR(t.words, unknown[i]);
    }
    CHECK_EQ(cluster_nodes(&c, "n[3-1]", &set, &t), -EINVAL);
    CHECK_STR(t.words, "range runs backwards at \"1]\"");
    cluster_node_name(&c, 12, name, sizeof name);
    CHECK_STR(name, "n12");
}

int main(void) {
    TEST(test_file);
    TEST(test_parse);
    TEST(test_folder);
    TEST(test_nodes);
    return tap_finish();
}

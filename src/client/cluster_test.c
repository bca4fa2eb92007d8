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
                        .vacate_ns = 3000000000,
                        .hosts_each = 7,
                        .hosts_all = 70,
                        .fabric = "ofi:verbs;ofi_rxm",
                        .hook = "/usr/local/bin/repair it",
                        .sealed = true,
                        .port_first = 20000,
                        .port_last = 20999,
                        .node_folder = "/scratch/storm of mine"};
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
    CHECK_EQ(a->vacate_ns, b->vacate_ns);
    CHECK(a->hosts_each == b->hosts_each && a->hosts_all == b->hosts_all);
    CHECK_STR(a->hook, b->hook);
    CHECK_STR(a->fabric, b->fabric);
    CHECK_EQ(a->sealed, b->sealed);
    CHECK(a->port_first == b->port_first && a->port_last == b->port_last);
    CHECK_STR(a->node_folder, b->node_folder);
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
    CHECK(!c.sealed && c.port_first == 0 && c.port_last == 0 && c.hosts == NULL);
    CHECK_STR(c.node_folder, "");
    snprintf(text, sizeof text, "%ssealed no\nports 1-65535\nfolder /x\n", good);
    CHECK_EQ(cluster_parse(&c, text, &t), 0);
    CHECK(!c.sealed && c.port_first == 1 && c.port_last == 65535);
    snprintf(text, sizeof text, "# words\n\nlater than us\n%s", good);
    CHECK_EQ(cluster_parse(&c, text, &t), 0);
    static const struct {
        const char *more, *words;
    } wrong[] = {
        {"nodes 4\n", "line 5: nodes is there twice"},
        {"hook repair\n", "line 5: \"repair\" will not do for hook"},
        {"pes 0\n", "line 5: \"0\" will not do for pes"},
        {"sealed maybe\n", "line 5: \"maybe\" will not do for sealed"},
        {"ports 7\n", "line 5: \"7\" will not do for ports"},
        {"ports 9-7\n", "line 5: \"9-7\" will not do for ports"},
        {"ports 0-7\n", "line 5: \"0-7\" will not do for ports"},
        {"ports 1-65536\n", "line 5: \"1-65536\" will not do for ports"},
        {"folder x\n", "line 5: \"x\" will not do for folder"},
        {"pes\n", "line 5: \"key value\" expected"},
        {"links carrier\n", "line 5: \"carrier\" will not do for links"},
        {"root 5\n", "there is no node 5 to be the root"},
        {"format 2\n", "it was written by a newer STORM"},
        {"format 0\n", "line 5: \"0\" will not do for format"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(text, sizeof text, "%s%s", good, wrong[i].more);
        CHECK_EQ(cluster_parse(&c, text, &t), -EBADMSG);
        CHECK_STR(t.words, wrong[i].words);
    }
    CHECK_EQ(cluster_parse(&c, "format 2\nnodes many\n", &t), -EBADMSG);
    CHECK_STR(t.words, "it was written by a newer STORM"); /* whatever else it says */
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

static void write_hosts(const char *folder, const char *text) {
    char path[64];
    snprintf(path, sizeof path, "%s/hosts", folder);
    FILE *f = fopen(path, "w");
    CHECK(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void check_names(const struct cluster *c) {
    uint64_t storage[16];
    struct nodeset set;
    struct cluster_trouble t;
    char name[CLUSTER_NODE_NAME_MAX], list[64];
    nodeset_init(&set, c->nodes, storage);
    CHECK_EQ(cluster_count(c), 4);
    cluster_all(c, &set);
    CHECK_EQ(cluster_format_nodes(c, &set, list, sizeof list), strlen("h[0-2],gate"));
    CHECK_STR(list, "h[0-2],gate");
    CHECK_EQ(cluster_nodes(c, "h[1-2],gate", &set, &t), 0);
    CHECK(nodeset_count(&set) == 3 && nodeset_has(&set, 9));
    CHECK_EQ(cluster_nodes(c, "n1", &set, &t), -ENOENT);
    CHECK_STR(t.words, "n1");
    cluster_node_name(c, 9, name, sizeof name);
    CHECK_STR(name, "gate");
    cluster_node_name(c, 5, name, sizeof name);
    CHECK_STR(name, "n5"); /* nobody's */
}

static void test_hosts(void) {
    char folder[] = "/tmp/storm-cluster-XXXXXX", path[64];
    struct cluster_trouble t;
    struct cluster c = example(), got;
    if (!CHECK(mkdtemp(folder) != NULL))
        return;
    CHECK_EQ(cluster_count(&c), 64);
    CHECK_EQ(cluster_save(&c, folder), 0);
    write_hosts(folder, "0 h0\n1 h1\n2 h2\n9 gate switch=s\n");
    CHECK_EQ(cluster_load(&got, folder, &t), 0);
    check_same(&got, &c);
    check_names(&got);
    write_hosts(folder, "0 h0\n64 h1\n");
    CHECK_EQ(cluster_load_hosts(&got, folder, &t), -EBADMSG);
    CHECK_STR(t.words, "hosts: line 2: 64: the highest number is 63");
    check_names(&got); /* as before */
    CHECK_EQ(cluster_load(&c, folder, &t), -EBADMSG);
    write_hosts(folder, "");
    CHECK_EQ(cluster_load_hosts(&got, folder, &t), 0);
    CHECK_EQ(cluster_count(&got), 0);
    snprintf(path, sizeof path, "%s/hosts", folder);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(cluster_load_hosts(&got, folder, &t), 0);
    CHECK_EQ(cluster_count(&got), 64);
    cluster_free(&got);
    cluster_free(&got);
    snprintf(path, sizeof path, "%s/cluster", folder);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(rmdir(folder), 0);
}

int main(void) {
    TEST(test_file);
    TEST(test_parse);
    TEST(test_folder);
    TEST(test_nodes);
    TEST(test_hosts);
    return tap_finish();
}

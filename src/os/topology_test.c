/* SPDX-License-Identifier: MIT */
/* Tests of places to bind processes to. */
#include "os/topology.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/files.h"
#include "tap.h"

static const char two_sockets[] = "core 0,4\ncore 1,5\ncore 2,6\ncore 3,7\nsocket 0-1,4-5\n"
                                  "socket 2-3,6-7\nnuma 0-7\n";

static struct cpuset set_of(uint32_t first, uint32_t last) {
    struct cpuset s = {0};
    for (uint32_t i = first; i <= last; i++)
        cpuset_add(&s, i);
    return s;
}

static const char *place(const struct topology *t, enum topology_level level, struct cpuset may,
                         uint32_t index) {
    static char text[64];
    struct cpuset set = {0};
    uint32_t number = 99;
    uint32_t places = topology_place(t, level, &may, index, &set, &number);
    char list[32];
    cpuset_format(&set, list, sizeof list);
    snprintf(text, sizeof text, "%u: %u (%s)", places, number, list);
    return text;
}

static void test_places(void) {
    struct topology t = {0};
    CHECK_EQ(topology_parse(&t, two_sockets), 0);
    CHECK_STR(place(&t, TOPOLOGY_CORE, set_of(0, 7), 0), "4: 0 (0,4)");
    CHECK_STR(place(&t, TOPOLOGY_CORE, set_of(0, 7), 3), "4: 3 (3,7)");
    CHECK_STR(place(&t, TOPOLOGY_CORE, set_of(0, 7), 5), "4: 1 (1,5)"); /* in turn */
    CHECK_STR(place(&t, TOPOLOGY_SOCKET, set_of(0, 7), 1), "2: 1 (2-3,6-7)");
    CHECK_STR(place(&t, TOPOLOGY_NUMA, set_of(0, 7), 7), "1: 0 (0-7)");
    CHECK_STR(place(&t, TOPOLOGY_CORE, set_of(2, 3), 1), "2: 3 (3)"); /* what may not be used */
    CHECK_STR(place(&t, TOPOLOGY_SOCKET, set_of(5, 5), 4), "1: 0 (5)");
    CHECK_STR(place(&t, TOPOLOGY_CORE, set_of(8, 9), 0), "0: 99 ()");
    topology_fini(&t);
}

static void test_spared(void) {
    struct topology t = {0};
    struct cpuset s = set_of(0, 7);
    char text[32];
    CHECK_EQ(topology_parse(&t, two_sockets), 0);
    topology_spare(&t, 1, &s);
    cpuset_format(&s, text, sizeof text);
    CHECK_STR(text, "1-3,5-7");
    topology_spare(&t, 4, &s); /* nothing would be left */
    cpuset_format(&s, text, sizeof text);
    CHECK_STR(text, "1-3,5-7");
    topology_fini(&t);
}

static void put(const char *folder, const char *name, const char *text) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *at = path + strlen(folder) + 1; (at = strchr(at, '/')) != NULL; *at++ = '/') {
        *at = '\0';
        mkdir(path, 0755);
    }
    FILE *f = fopen(path, "we");
    CHECK(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Without hwloc: two cores of two processors, of which one is offline. */
static void test_files(void) {
    struct topology t = {0};
    char folder[] = "/tmp/storm-topology-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    CHECK_EQ(topology_read(&t, folder), -ENOENT);
    put(folder, "cpu/online", "0-2\n");
    CHECK_EQ(topology_read(&t, folder), 0); /* nothing is told of them */
    CHECK_STR(place(&t, TOPOLOGY_CORE, set_of(0, 7), 2), "3: 2 (2)");
    CHECK_STR(place(&t, TOPOLOGY_SOCKET, set_of(0, 7), 2), "1: 0 (0-2)");
    CHECK_STR(place(&t, TOPOLOGY_NUMA, set_of(0, 7), 2), "1: 0 (0-2)");
    topology_fini(&t);
    put(folder, "cpu/cpu0/topology/thread_siblings_list", "0,2\n");
    put(folder, "cpu/cpu2/topology/thread_siblings_list", "0,2\n");
    put(folder, "cpu/cpu1/topology/thread_siblings_list", "1\n");
    put(folder, "cpu/cpu0/topology/core_siblings_list", "0,2\n");
    put(folder, "cpu/cpu1/topology/core_siblings_list", "1\n");
    put(folder, "node/has_cpu", "0,3\n");
    put(folder, "node/node0/cpulist", "0,2\n");
    put(folder, "node/node3/cpulist", "1\n");
    CHECK_EQ(topology_read(&t, folder), 0);
    CHECK_STR(place(&t, TOPOLOGY_CORE, set_of(0, 7), 2), "2: 0 (0,2)");
    CHECK_STR(place(&t, TOPOLOGY_CORE, set_of(0, 7), 1), "2: 1 (1)");
    CHECK_STR(place(&t, TOPOLOGY_SOCKET, set_of(0, 7), 1), "2: 1 (1)");
    CHECK_STR(place(&t, TOPOLOGY_NUMA, set_of(0, 7), 0), "2: 0 (0,2)");
    topology_fini(&t);
    int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    files_remove(fd, folder + 5);
    close(fd);
}

static void test_garbage(void) {
    static const char *const texts[] = {"",           "core \n",         "core 1-\n", "core 1",
                                        "core 3-1\n", "core 99999\n",    "word 1\n",  "socket 0\n",
                                        "core 1,\n",  "core 1\nnuma x\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct topology t = {0};
        CHECK_EQ(topology_parse(&t, texts[i]), -EINVAL);
        CHECK_EQ(t.count[TOPOLOGY_CORE], 0);
    }
}

int main(void) {
    TEST(test_places);
    TEST(test_spared);
    TEST(test_files);
    TEST(test_garbage);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Tests of the floor: every process is started and reaped, and failures are told. */
#include "os/floor.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

static bool no_children(void) {
    return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

/* The kernel counts page faults of reaped children: each has some. */
static long faults(void) {
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return u.ru_minflt;
}

static void test_all_run(void) {
    uint64_t ns = 0;
    for (uint32_t threads = 0; threads <= 3; threads++)
        for (uint32_t at_once = 0; at_once <= 5; at_once += 5) {
            struct floor_config c = {
                .program = "/bin/true", .processes = 13, .threads = threads, .at_once = at_once};
            long before = faults();
            CHECK_EQ(floor_run(&c, &ns), 0);
            CHECK(ns > 0);
            CHECK(faults() - before >= 13);
            CHECK(no_children());
        }
}

static void test_edges(void) {
    uint64_t ns = 77;
    struct floor_config none = {.program = "/bin/true"};
    CHECK_EQ(floor_run(&none, &ns), 0);
    struct floor_config one = {.program = "/bin/true", .processes = 1, .threads = 3, .at_once = 1};
    CHECK_EQ(floor_run(&one, &ns), 0);
    struct floor_config threads = {.program = "/bin/true", .processes = 1, .threads = 17};
    CHECK_EQ(floor_run(&threads, &ns), -EINVAL);
    CHECK(no_children());
}

static void test_failures(void) {
    uint64_t ns = 77;
    struct floor_config absent = {.program = "/no/such/program", .processes = 5};
    CHECK_EQ(floor_run(&absent, &ns), -ENOENT);
    struct floor_config wrong = {.program = "/bin/false", .processes = 5, .at_once = 2};
    CHECK_EQ(floor_run(&wrong, &ns), -EPROTO);
    CHECK_EQ(ns, 77);
    CHECK(no_children());
}

static void test_files(void) {
    char folder[] = "/tmp/storm-floor.XXXXXX";
    uint64_t ns = 77;
    CHECK(mkdtemp(folder) != NULL);
    struct floor_files c = {
        .folder = folder, .contents = bytes_from_str("#!/bin/true\n"), .files = 9};
    for (c.threads = 0; c.threads <= 3; c.threads++)
        for (int execute = 0; execute <= 1; execute++) {
            long before = faults();
            c.execute = execute != 0;
            CHECK_EQ(floor_write(&c, &ns), 0);
            CHECK(!execute || faults() - before >= 9);
        }
    ns = 77;
    c.contents = bytes_from_str("#!/bin/false\n");
    CHECK_EQ(floor_write(&c, &ns), -EPROTO);
    c.contents = bytes_from_str("#!/no/such/program\n");
    CHECK_EQ(floor_write(&c, &ns), -ENOENT);
    struct floor_files many = {.folder = folder, .threads = FLOOR_THREADS_MAX + 1};
    CHECK_EQ(floor_write(&many, &ns), -EINVAL);
    CHECK_EQ(ns, 77);
    CHECK(no_children());
    CHECK_EQ(rmdir(folder), 0);
    CHECK_EQ(floor_write(&c, &ns), -ENOENT);
}

int main(void) {
    TEST(test_all_run);
    TEST(test_edges);
    TEST(test_failures);
    TEST(test_files);
    return tap_finish();
}

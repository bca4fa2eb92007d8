/* SPDX-License-Identifier: MIT */
/* Tests of the floor: every process is started and reaped, and failures are told. */
#include "os/floor.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

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

int main(void) {
    TEST(test_all_run);
    TEST(test_edges);
    TEST(test_failures);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Tests of the bare fan-out: it counts, it cleans up, it says what went wrong. */
#include "os/fanout.h"

#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

static uint32_t open_descriptors(void) {
    uint32_t count = 0;
    DIR *d = opendir("/proc/self/fd");
    if (d == NULL)
        return 0;
    while (readdir(d) != NULL)
        count++;
    closedir(d);
    return count;
}

static bool no_children(void) {
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
}

static void test_all_transports(void) {
    uint32_t before = open_descriptors();
    for (int t = 0; t < TRANSPORTS; t++)
        for (uint32_t nodes = 1; nodes <= 16; nodes *= 4) {
            struct fanout_config c = {.transport = (enum transport)t, .nodes = nodes, .rounds = 20};
            struct fanout_result r = {0};
            CHECK_EQ(fanout_run(&c, &r), 0);
            CHECK(r.min_ns > 0 && r.min_ns <= r.median_ns);
            CHECK(no_children());
        }
    CHECK_EQ(open_descriptors(), before);
}

static void test_large_messages(void) {
    struct fanout_config c = {
        .nodes = 2, .rounds = 5, .message_bytes = FANOUT_BYTES_MAX, .answer_bytes = 5000};
    struct fanout_result r;
    for (int t = 0; t < TRANSPORTS; t++) {
        c.transport = (enum transport)t;
        CHECK_EQ(fanout_run(&c, &r), 0);
    }
    CHECK(no_children());
}

static void test_refusals(void) {
    struct fanout_result r;
    CHECK_EQ(fanout_run(&(struct fanout_config){.nodes = 0, .rounds = 1}, &r), -EINVAL);
    CHECK_EQ(fanout_run(&(struct fanout_config){.nodes = 1, .rounds = 0}, &r), -EINVAL);
    CHECK_EQ(fanout_run(&(struct fanout_config){.nodes = FANOUT_NODES_MAX + 1, .rounds = 1}, &r),
             -EINVAL);
    CHECK_EQ(
        fanout_run(
            &(struct fanout_config){.nodes = 1, .rounds = 1, .message_bytes = FANOUT_BYTES_MAX + 1},
            &r),
        -EINVAL);
}

/* Half way through starting processes there are no descriptors left. */
static void test_no_descriptors(void) {
    struct rlimit old;
    uint32_t before = open_descriptors();
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
    struct rlimit low = {.rlim_cur = before + 10, .rlim_max = old.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    struct fanout_result r;
    for (int t = 0; t < TRANSPORTS; t++) {
        struct fanout_config c = {.transport = (enum transport)t, .nodes = 64, .rounds = 1};
        CHECK_EQ(fanout_run(&c, &r), -EMFILE);
        CHECK(no_children());
    }
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
    CHECK_EQ(open_descriptors(), before);
}

int main(void) {
    TEST(test_all_transports);
    TEST(test_large_messages);
    TEST(test_refusals);
    TEST(test_no_descriptors);
    return tap_finish();
}

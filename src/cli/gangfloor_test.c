/* SPDX-License-Identifier: MIT */
/* Tests of bare switching: that it switches where it can, and leaves nothing wherever it is. */
#include "cli/gangfloor.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "os/grounds.h"
#include "tap.h"

enum { GANGS = GANGFLOOR_GANGS, SWITCHES = 1024, TOO_MANY = 65 };
enum { LOOK_MS = 5, LOOKS = 2000 };

static struct gangnotes gangs[GANGS];

static void begin(uint32_t processes) {
    for (int g = 0; g < GANGS; g++) {
        char path[64];
        snprintf(path, sizeof path, "/dev/shm/storm-gangfloor-%d-%d", (int)getpid(), g);
        CHECK_EQ(gangnotes_make(&gangs[g], path, processes), 0);
    }
}

static void finish(void) {
    for (int g = 0; g < GANGS; g++)
        gangnotes_fini(&gangs[g]);
}

static int run(uint32_t nodes, uint64_t quantum_ns, uint64_t duration_ns) {
    struct gangfloor_plan plan = {.kernel = KERNEL_CACHE,
                                  .nodes = nodes,
                                  .quantum_ns = quantum_ns,
                                  .duration_ns = duration_ns};
    int64_t slower = INT64_MIN;
    int r = gangfloor_run(gangs, &plan, &slower);
    CHECK((r == 0) == (slower != INT64_MIN));
    return r;
}

static bool is_gone(pid_t who) {
    char mount[PATH_MAX], path[PATH_MAX + 64];
    if (grounds_mount(mount) < 0)
        return true;
    snprintf(path, sizeof path, "%s/storm-floor-%d", mount, (int)who);
    return access(path, F_OK) < 0;
}

static void test_too_many(void) {
    begin(TOO_MANY);
    CHECK_EQ(run(1, NS_PER_MS, NS_PER_MS), -EOPNOTSUPP);
    finish();
    begin(1);
    CHECK_EQ(run(0, NS_PER_MS, NS_PER_MS), -EOPNOTSUPP);
    CHECK_EQ(run(2, NS_PER_MS, NS_PER_MS), -EOPNOTSUPP);
    finish();
}

/* Not everybody may, and not everywhere. */
static void check_switches(uint32_t nodes) {
    uint64_t ns[SWITCHES];
    begin(nodes);
    int r = run(nodes, 5 * NS_PER_MS, 500 * NS_PER_MS);
    uint32_t n = gangnotes_switches(&gangs[0], &gangs[1], 5 * NS_PER_MS / 2, ns, SWITCHES);
    CHECK(r < 0 ? n == 0 : n > 0);
    CHECK(is_gone(getpid()));
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
    finish();
}

static void test_switches(void) {
    check_switches(1);
}

/* Each by itself, and both at once. */
static void test_two_nodes(void) {
    check_switches(2);
}

/* Whoever runs it is killed: its groups go, and so do the processes in them. */
static void test_killed(void) {
    volatile struct gangwork *last;
    bool gone = false, ended = false;
    int status;
    begin(1);
    last = gangnotes_of(&gangs[GANGS - 1], 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(run(1, 5 * NS_PER_MS, 60 * NS_PER_S) < 0);
    for (int i = 0; i < LOOKS && !ended && last->gaps < 3; i++) {
        poll(NULL, 0, LOOK_MS);
        ended = waitpid(pid, &status, WNOHANG) == pid;
    }
    CHECK(ended || last->gaps >= 3);
    if (!ended) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    for (int i = 0; i < LOOKS && !gone; i++) {
        gone = is_gone(pid);
        poll(NULL, 0, LOOK_MS);
    }
    CHECK(gone);
    finish();
}

int main(void) {
    TEST(test_too_many);
    TEST(test_switches);
    TEST(test_two_nodes);
    TEST(test_killed);
    return tap_finish();
}

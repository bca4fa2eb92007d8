/* SPDX-License-Identifier: MIT */
/* Tests of the cluster's place among the control groups; skipped where there is none for us. */
#include "os/grounds.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

/* A process in a group of a job, below the node's. */
static pid_t start_in(const struct grounds *g, uint32_t node) {
    char place[PATH_MAX], group[PATH_MAX + 8], path[PATH_MAX + 32];
    int ready[2];
    char byte;
    grounds_node_path(g, node, place);
    snprintf(group, sizeof group, "%s/job", place);
    mkdir(group, 0755);
    snprintf(path, sizeof path, "%s/cgroup.procs", group);
    if (pipe(ready) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        FILE *f = fopen(path, "w");
        if (f != NULL && fputs("0", f) >= 0 && fclose(f) == 0 && write(ready[1], "y", 1) == 1)
            pause();
        _exit(1);
    }
    close(ready[1]);
    if (read(ready[0], &byte, 1) != 1)
        pid = -1;
    close(ready[0]);
    return pid;
}

static bool killed(pid_t pid) {
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void test_life(void) {
    struct grounds g;
    char name[64];
    snprintf(name, sizeof name, "storm-test-%d", (int)getpid());
    CHECK_EQ(grounds_make(&g, name), 0);
    CHECK_EQ(grounds_make_node(&g, 0), 0);
    CHECK_EQ(grounds_make_node(&g, 1), 0);
    CHECK_EQ(grounds_make_node(&g, 1), 0); /* one that has its place keeps it */
    pid_t first = start_in(&g, 0), second = start_in(&g, 1);
    CHECK(first > 0 && second > 0);
    grounds_kill_node(&g, 0);
    CHECK(killed(first));
    CHECK_EQ(waitpid(second, NULL, WNOHANG), 0); /* not harmed */
    CHECK_EQ(grounds_remove(g.path), 0);
    CHECK(access(g.path, F_OK) < 0);
    CHECK(killed(second));
}

static void test_never_there(void) {
    CHECK_EQ(grounds_remove("/nowhere/at/all"), 0);
}

int main(void) {
    struct grounds g;
    char name[64];
    snprintf(name, sizeof name, "storm-try-%d", (int)getpid());
    int r = grounds_make(&g, name);
    if (r == 0)
        r = grounds_remove(g.path);
    if (r == 0)
        TEST(test_life);
    else
        SKIP("test_life", "no control groups for this user");
    TEST(test_never_there);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Tests of the claim: held while any process that shares it lives, free afterwards. */
#include "os/claim.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

struct scratch {
    char folder[32];
};

static struct scratch scratch_new(void) {
    struct scratch s = {"/tmp/storm-claim-XXXXXX"};
    CHECK(mkdtemp(s.folder) != NULL);
    return s;
}

static void scratch_free(const struct scratch *s) {
    claim_remove(s->folder);
    rmdir(s->folder);
}

static void test_taken_once(void) {
    struct scratch s = scratch_new();
    struct claim_holder who = {1, 1};
    CHECK_EQ(claim_look(s.folder, &who), 0);
    int fd = claim_take(s.folder);
    CHECK(fd >= 0);
    CHECK_EQ(claim_take(s.folder), -EBUSY);
    CHECK_EQ(claim_look(s.folder, &who), 1);
    close(fd);
    CHECK_EQ(claim_look(s.folder, &who), 0);
    scratch_free(&s);
}

static void test_holder(void) {
    struct scratch s = scratch_new();
    struct claim_holder who = {1, 1};
    int fd = claim_take(s.folder);
    CHECK_EQ(claim_look(s.folder, &who), 1);
    CHECK_EQ(who.sweeper, 0); /* it has not said who it is */
    CHECK_EQ(claim_tell(fd, &(struct claim_holder){.sweeper = 41, .watcher = 42}), 0);
    CHECK_EQ(claim_look(s.folder, &who), 1);
    CHECK_EQ(who.sweeper, 41);
    CHECK_EQ(who.watcher, 42);
    close(fd);
    fd = claim_take(s.folder);
    CHECK_EQ(claim_look(s.folder, &who), 1);
    CHECK_EQ(who.sweeper, 0); /* the next is not taken for the last */
    close(fd);
    scratch_free(&s);
}

static void test_removed(void) {
    struct scratch s = scratch_new();
    struct claim_holder who;
    int first = claim_take(s.folder);
    claim_remove(s.folder);
    int second = claim_take(s.folder);
    CHECK(second >= 0);
    close(first);
    CHECK_EQ(claim_look(s.folder, &who), 1);
    close(second);
    scratch_free(&s);
}

static void test_child_holds_it(void) {
    struct scratch s = scratch_new();
    struct claim_holder who;
    int fd = claim_take(s.folder);
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    close(fd);
    CHECK_EQ(claim_look(s.folder, &who), 1);
    kill(pid, SIGKILL);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    CHECK_EQ(claim_look(s.folder, &who), 0);
    scratch_free(&s);
}

int main(void) {
    TEST(test_taken_once);
    TEST(test_holder);
    TEST(test_removed);
    TEST(test_child_holds_it);
    return tap_finish();
}

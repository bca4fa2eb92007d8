/* SPDX-License-Identifier: MIT */
/* Tests of what is taken away when a cluster has ended, and what is left alone. */
#include "os/remains.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/address.h"
#include "tap.h"

struct scratch {
    char folder[32];
};

static struct scratch scratch_new(void) {
    struct scratch s = {"/tmp/storm-remains-XXXXXX"};
    CHECK(mkdtemp(s.folder) != NULL);
    return s;
}

static const char *in(const struct scratch *s, const char *name, char out[64]) {
    snprintf(out, 64, "%s/%s", s->folder, name);
    return out;
}

static void make(const struct scratch *s, const char *name) {
    char path[64];
    int fd = open(in(s, name, path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    close(fd);
}

static void make_folder(const struct scratch *s, const char *name) {
    char path[64];
    CHECK_EQ(mkdir(in(s, name, path), 0700), 0);
}

static void make_socket(const struct scratch *s, const char *name) {
    char path[64], text[80];
    struct address a;
    snprintf(text, sizeof text, "unix:%s", in(s, name, path));
    CHECK_EQ(address_parse(&a, text), 0);
    int fd = address_listen(&a);
    CHECK(fd >= 0);
    close(fd);
}

static bool is_there(const struct scratch *s, const char *name) {
    char path[64];
    return access(in(s, name, path), F_OK) == 0;
}

/* Takes the test's own files away. */
static void scratch_free(const struct scratch *s) {
    static const char *const names[] = {"log",     "state.db", "n1.socket", "n2.sock",
                                        "n3/jobs", "n3",       "nodes"};
    char path[64];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        remove(in(s, names[i], path));
    CHECK_EQ(rmdir(s->folder), 0);
}

static void test_folder(void) {
    struct scratch s = scratch_new();
    make_socket(&s, "n0.sock");
    make_socket(&s, "p17.sock");
    make_socket(&s, "n1.socket"); /* none of ours */
    make(&s, "n2.sock");          /* no socket */
    make_socket(&s, "f3.sock");
    make_socket(&s, "s3.sock");
    make_socket(&s, "c17-00c0ffee.sock"); /* of a command that was killed */
    make(&s, "cluster");
    make(&s, "log");
    make(&s, "state.db");
    remains_folder(s.folder);
    CHECK(!is_there(&s, "n0.sock"));
    CHECK(!is_there(&s, "p17.sock"));
    CHECK(!is_there(&s, "f3.sock"));
    CHECK(!is_there(&s, "s3.sock"));
    CHECK(!is_there(&s, "c17-00c0ffee.sock"));
    CHECK(!is_there(&s, "cluster"));
    CHECK(is_there(&s, "n1.socket"));
    CHECK(is_there(&s, "n2.sock"));
    CHECK(is_there(&s, "log"));
    CHECK(is_there(&s, "state.db"));
    scratch_free(&s);
}

/* What was sent to nodes goes, however it is protected; nothing else of theirs does. */
static void test_files(void) {
    struct scratch s = scratch_new();
    char path[64];
    make_folder(&s, "n3");
    make_folder(&s, "n3/spool");
    make_folder(&s, "n3/spool/a");
    make(&s, "n3/spool/a/b");
    make_folder(&s, "n3/root");
    make(&s, "n3/root/b");
    make(&s, "n3/jobs");
    make_folder(&s, "nodes");
    make_folder(&s, "nodes/spool");
    make(&s, "log");
    CHECK_EQ(symlink("../log", in(&s, "n3/spool/log", path)), 0);
    CHECK_EQ(chmod(in(&s, "n3/spool/a", path), 0500), 0);
    CHECK_EQ(chmod(in(&s, "n3/root", path), 0), 0);
    remains_folder(s.folder);
    CHECK(!is_there(&s, "n3/spool"));
    CHECK(!is_there(&s, "n3/root"));
    CHECK(is_there(&s, "n3/jobs"));
    CHECK(is_there(&s, "nodes/spool"));
    CHECK(is_there(&s, "log"));
    CHECK_EQ(rmdir(in(&s, "nodes/spool", path)), 0);
    scratch_free(&s);
}

static void test_forget(void) {
    struct scratch s = scratch_new();
    make_folder(&s, "mm");
    make(&s, "mm/state");
    make_folder(&s, "n0");
    make(&s, "n0/state");
    make_folder(&s, "n3");
    make(&s, "n3/jobs"); /* none of ours: stays, and its folder */
    make_folder(&s, "nodes");
    make(&s, "state.db");
    remains_forget(s.folder);
    CHECK(!is_there(&s, "mm"));
    CHECK(!is_there(&s, "n0"));
    CHECK(is_there(&s, "n3/jobs"));
    CHECK(is_there(&s, "nodes"));
    CHECK(is_there(&s, "state.db"));
    scratch_free(&s);
}

static void test_group(void) {
    struct scratch s = scratch_new();
    CHECK_EQ(remains_note_group(s.folder, "/nowhere/at/all"), 0);
    CHECK(is_there(&s, "cgroup"));
    remains_folder(s.folder); /* it was never there: then it is gone */
    CHECK(!is_there(&s, "cgroup"));
    CHECK_EQ(remains_note_group(s.folder, ""), 0);
    CHECK_EQ(remains_note_rations(s.folder, "/nowhere/at/all"), 0);
    CHECK(is_there(&s, "rations"));
    remains_folder(s.folder);
    CHECK(!is_there(&s, "rations"));
    scratch_free(&s);
}

/* A child that starts another, tells its number, and ends. */
static pid_t start_orphan(void) {
    int pipes[2];
    pid_t orphan = 0;
    CHECK_EQ(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        pid_t child = fork();
        if (child == 0) {
            close(pipes[0]);
            close(pipes[1]);
            for (;;)
                pause();
        }
        _exit(write(pipes[1], &child, sizeof child) != sizeof child);
    }
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    CHECK_EQ(read(pipes[0], &orphan, sizeof orphan), sizeof orphan);
    close(pipes[0]);
    close(pipes[1]);
    return orphan;
}

static bool is_friend(void *context, pid_t pid) {
    return pid == *(const pid_t *)context;
}

static void test_strangers(void) {
    int status = 0;
    pid_t friend = fork();
    if (friend == 0)
        for (;;)
            pause();
    pid_t orphan = start_orphan();
    remains_strangers(is_friend, &friend);
    CHECK_EQ(waitpid(orphan, &status, 0), orphan); /* it has come to us */
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    CHECK_EQ(waitpid(friend, &status, WNOHANG), 0);
    orphan = start_orphan();
    remains_children();
    CHECK(kill(friend, 0) < 0 && errno == ESRCH);
    CHECK(kill(orphan, 0) < 0 && errno == ESRCH);
}

int main(void) {
    remains_adopt();
    TEST(test_folder);
    TEST(test_files);
    TEST(test_forget);
    TEST(test_group);
    TEST(test_strangers);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Tests of processes with pipes: their descriptors, where they run, that they end with us, and that none can be started. */
#include "os/piped.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

static int start(const char *script, struct piped_order o, struct piped *ret) {
    const char *argv[] = {"sh", "-c", script, NULL};
    o.argv = argv;
    return piped_start(&o, ret);
}

/* What comes until the end; our ends do not block, so it is waited for. */
static const char *all_of(int fd) {
    static char text[4096];
    size_t len = 0;
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        poll(&p, 1, -1);
        ssize_t n = read(fd, text + len, sizeof text - 1 - len);
        if (n <= 0) {
            text[len] = '\0';
            return n == 0 ? text : "an error";
        }
        len += (size_t)n;
    }
}

static int finish(struct piped *p) {
    int status = 0;
    if (p->in >= 0)
        close(p->in);
    close(p->out);
    close(p->err);
    CHECK_EQ(waitpid(p->pid, &status, 0), p->pid);
    return status;
}

static void test_streams(void) {
    struct piped p;
    CHECK_EQ(start("read a; echo out $a; echo err $a >&2; exit 3", (struct piped_order){0}, &p), 0);
    CHECK_EQ(write(p.in, "word\n", 5), 5);
    CHECK_STR(all_of(p.out), "out word\n");
    CHECK_STR(all_of(p.err), "err word\n");
    int status = finish(&p);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

/* Ours do not block, theirs do: programs do not expect otherwise. */
static void test_blocking(void) {
    struct piped p;
    char byte;
    CHECK_EQ(start("sleep 0.1; grep flags /proc/self/fdinfo/1; cat >/dev/null",
                   (struct piped_order){0}, &p),
             0);
    CHECK_EQ(read(p.out, &byte, 1), -1);
    CHECK_EQ(errno, EAGAIN);
    CHECK((fcntl(p.in, F_GETFL) & O_NONBLOCK) != 0);
    CHECK((fcntl(p.in, F_GETFD) & FD_CLOEXEC) != 0);
    close(p.in);
    p.in = -1;
    long flags = strtol(all_of(p.out) + strlen("flags:"), NULL, 8);
    CHECK((flags & O_ACCMODE) == O_WRONLY);
    CHECK((flags & O_NONBLOCK) == 0);
    finish(&p);
}

static void test_deaf(void) {
    struct piped p;
    CHECK_EQ(start("cat; echo end", (struct piped_order){.deaf = true}, &p), 0);
    CHECK_EQ(p.in, -1);
    CHECK_STR(all_of(p.out), "end\n");
    CHECK_EQ(finish(&p), 0);
}

static void test_folder(void) {
    struct piped p;
    CHECK_EQ(start("pwd", (struct piped_order){.deaf = true, .folder = "/"}, &p), 0);
    CHECK_STR(all_of(p.out), "/\n");
    CHECK_EQ(finish(&p), 0);
    CHECK_EQ(start("pwd", (struct piped_order){.folder = "/no/such/folder"}, &p), -ENOENT);
}

/* Session and group, as /proc has them: they are its own. */
static void test_session(void) {
    for (int own = 0; own < 2; own++) {
        struct piped p;
        char expected[64];
        CHECK_EQ(start("set -- $(cat /proc/$$/stat); echo $1 $5 $6",
                       (struct piped_order){.deaf = true, .session = own == 1}, &p),
                 0);
        pid_t session = own == 1 ? p.pid : getsid(0);
        snprintf(expected, sizeof expected, "%d %d %d\n", p.pid, p.pid, session);
        CHECK_STR(all_of(p.out), expected);
        finish(&p);
    }
}

/* What we block or ignore is not so there. */
static void test_signals(void) {
    struct piped p;
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, &before);
    signal(SIGPIPE, SIG_IGN);
    CHECK_EQ(
        start("grep -E 'SigBlk|SigIgn' /proc/self/status", (struct piped_order){.deaf = true}, &p),
        0);
    CHECK_STR(all_of(p.out), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
    finish(&p);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

static int lowest_free(void) {
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(fd);
    return fd;
}

static void test_not_started(void) {
    const char *none[] = {"/no/such/program", NULL}, *nobody[] = {"no-such-program", NULL},
               *folder[] = {"/", NULL};
    struct piped p = {.pid = -7};
    int before = lowest_free();
    CHECK_EQ(piped_start(&(struct piped_order){.argv = none}, &p), -ENOENT);
    CHECK_EQ(piped_start(&(struct piped_order){.argv = nobody, .deaf = true}, &p), -ENOENT);
    CHECK_EQ(piped_start(&(struct piped_order){.argv = folder}, &p), -EACCES);
    CHECK_EQ(p.pid, -7);
    CHECK_EQ(lowest_free(), before);          /* nothing is left open */
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1); /* nor to be waited for */
    CHECK_EQ(errno, ECHILD);
}

/* Whoever started it is killed: it is told who it was, and becomes our child. */
static void test_ends_with_us(void) {
    int say[2];
    pid_t grandchild = 0;
    int status;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    CHECK_EQ(pipe2(say, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        struct piped p = {.pid = 0};
        start("exec sleep 1000", (struct piped_order){.session = true}, &p);
        _exit(write(say[1], &p.pid, sizeof p.pid) != sizeof p.pid || pause());
    }
    CHECK_EQ(read(say[0], &grandchild, sizeof grandchild), sizeof grandchild);
    kill(child, SIGKILL);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    CHECK_EQ(waitpid(grandchild, &status, 0), grandchild);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(say[0]);
    close(say[1]);
}

int main(void) {
    TEST(test_streams);
    TEST(test_blocking);
    TEST(test_deaf);
    TEST(test_folder);
    TEST(test_session);
    TEST(test_signals);
    TEST(test_not_started);
    TEST(test_ends_with_us);
    return tap_finish();
}

/* SPDX-License-Identifier: MIT */
/* Pid namespaces for runs: made, ended by force and by themselves, gone with whoever made them.
 *
 * Whatever lives in a pen holds the writing end of a pipe: when the keeper's end is told, the pipe must have
 * ended already. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clone.h"
#include "os/pen.h"
#include "os/process.h"
#include "tap.h"

enum { PATIENCE_MS = 60 * 1000, AWAY = 5 };

/* What an inhabitant says of itself. */
struct word {
    pid_t inside;
    uid_t uid;
    uint32_t powers;
};

struct inhabitant {
    pid_t pid;
    int life; /* ends when nobody in the pen lives */
    int go;   /* closed: it, or whom it left, may end */
    struct word word;
};

static struct pens pens;

static void begin(void) {
    struct pens_trouble t = {""};
    CHECK_EQ(pens_init(&pens, &t), 0);
    CHECK(pens.open);
}

static void end(void) {
    pens_fini(&pens);
    CHECK_EQ(waitpid(-1, NULL, WNOHANG | __WALL), -1); /* no child is left, dead or alive */
    CHECK_EQ(errno, ECHILD);
}

static struct pen *take(void) {
    int r = -1;
    struct pen *pen = pens_take(&pens, &r);
    CHECK_EQ(r, 0);
    if (!CHECK(pen != NULL && pen->keeper > 0))
        exit(1);
    return pen;
}

/* ---- in the pen ---- */

static void await(int go) {
    char c;
    while (read(go, &c, 1) < 0 && errno == EINTR)
        ;
}

static void stay(int go) {
    await(go);
}

/* Processes that leave their parent and their session. */
static void fork_away(int go) {
    for (int i = 0; i < AWAY; i++)
        if (fork() == 0) {
            setsid();
            if (fork() != 0)
                _exit(0);
            await(go);
            _exit(0);
        }
    await(go);
}

static void leave_one(int go) {
    if (fork() == 0) {
        setsid();
        await(go);
    }
}

/* One that is a child of whoever started us: no keeper ever hears of it. */
static void leave_sibling(int go) {
    (void)go;
    if (syscall(SYS_clone, CLONE_PARENT, NULL, NULL, NULL, NULL) == 0)
        for (;;)
            pause();
}

static _Noreturn void live(int life, int go, void (*deed)(int)) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    struct word w = {.inside = getpid(), .uid = getuid()};
    for (int i = 1; i < 32; i++)
        if (i != SIGCHLD)
            signal(i, SIG_IGN);
    syscall(SYS_capget, &header, data);
    w.powers = data[0].effective | data[0].permitted | data[1].effective | data[1].permitted;
    if (write(life, &w, sizeof w) != sizeof w)
        _exit(1);
    deed(go);
    _exit(0);
}

/* ---- from outside ---- */

/* A child of ours in the pen. */
static struct inhabitant inhabit(struct pen *pen, void (*deed)(int)) {
    struct inhabitant i = {0};
    int life[2], go[2], told[2];
    if (pipe2(life, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0 || pipe2(told, O_CLOEXEC) < 0)
        exit(1);
    pid_t passing = fork();
    if (passing == 0) {
        close(life[0]);
        close(go[1]);
        if (clone_enter(pens.user, pen->end.fd) < 0)
            _exit(1);
        pid_t pid = (pid_t)syscall(SYS_clone, CLONE_PARENT, NULL, NULL, NULL, NULL);
        if (pid == 0)
            live(life[1], go[0], deed);
        _exit(write(told[1], &pid, sizeof pid) != sizeof pid);
    }
    close(life[1]);
    close(go[0]);
    CHECK_EQ(clone_wait(passing), 0);
    CHECK_EQ(read(told[0], &i.pid, sizeof i.pid), sizeof i.pid);
    CHECK_EQ(read(life[0], &i.word, sizeof i.word), sizeof i.word);
    close(told[0]);
    close(told[1]);
    pen->used = true;
    i.life = life[0];
    i.go = go[1];
    return i;
}

static bool nobody_lives(int life, int ms) {
    struct pollfd p = {.fd = life, .events = POLLIN};
    return poll(&p, 1, ms) == 1 && p.revents == POLLHUP;
}

/* The keeper has ended so, and all in the pen with it. */
static void check_end(struct pen *pen, struct inhabitant *i, int status) {
    CHECK_EQ(clone_wait(pen->keeper), status);
    CHECK(nobody_lives(i->life, 0));
    pen->keeper = 0;
    pens_give(&pens, pen, NULL);
    close(i->life);
    if (i->go >= 0)
        close(i->go);
}

static void test_kill(void) {
    begin();
    struct pen *pen = take();
    struct inhabitant i = inhabit(pen, fork_away);
    CHECK(!nobody_lives(i.life, 0));
    pen_kill(pen);
    CHECK_EQ(clone_wait(i.pid), SIGKILL);
    check_end(pen, &i, SIGKILL);
    end();
}

/* Nobody was killed or released: the next can have it. */
static void test_empty(void) {
    begin();
    struct pen *pen = take();
    pid_t keeper = pen->keeper;
    struct inhabitant i = inhabit(pen, leave_one);
    CHECK_EQ(clone_wait(i.pid), 0);
    CHECK(!pen_empty(pen)); /* one was left */
    close(i.go);
    CHECK(nobody_lives(i.life, PATIENCE_MS));
    if (pen->children >= 0)
        while (!pen_empty(pen)) /* it has closed its pipe but may not be quite gone */
            ;
    CHECK_EQ(pen->used, pen->children < 0);
    pens_give(&pens, pen, NULL);
    pen = take();
    CHECK_EQ(pen->keeper == keeper, pen->children >= 0);
    pens_give(&pens, pen, NULL);
    close(i.life);
    end();
}

/* Released, it stays for as long as what was left does. */
static void test_release(void) {
    begin();
    struct pen *pen = take();
    struct inhabitant i = inhabit(pen, leave_one);
    CHECK_EQ(clone_wait(i.pid), 0);
    pen_release(pen);
    pen_release(pen);
    CHECK_EQ(waitpid(pen->keeper, NULL, WNOHANG | __WALL), 0);
    CHECK(!nobody_lives(i.life, 0));
    close(i.go);
    i.go = -1;
    check_end(pen, &i, 0);
    end();
}

static void test_release_at_once(void) {
    begin();
    for (int n = 0; n < 50; n++) {
        struct pen *pen = take();
        struct inhabitant i = inhabit(pen, leave_sibling);
        CHECK_EQ(clone_wait(i.pid), 0);
        pen_release(pen);
        pid_t sibling; /* it is ended, and we have to wait for it */
        do
            sibling = waitpid(-1, NULL, 0);
        while (sibling == pen->keeper);
        CHECK(sibling > 0);
        check_end(pen, &i, 0);
    }
    end();
}

/* Numbers begin where the keeper says, which it does when it runs. */
static void await_keeper(const struct pen *pen) {
    while (atomic_load(&pen->word) == 0)
        sched_yield();
}

/* Who it is stays; what making the namespace has given is gone. Numbers do not begin with 2. */
static void test_who_and_what(void) {
    begin();
    int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
    struct pen *pair[2] = {take(), take()};
    CHECK(strcmp(pair[0]->first, pair[1]->first) != 0);
    for (int n = 0; n < 2; n++) {
        await_keeper(pair[n]);
        struct inhabitant i = inhabit(pair[n], stay);
        CHECK_EQ(i.word.uid, getuid());
        CHECK(geteuid() == 0 || i.word.powers == 0);
        CHECK(i.word.inside != i.pid);
        if (fd >= 0)
            CHECK_EQ(i.word.inside, strtol(pair[n]->first, NULL, 10) + 1);
        pen_kill(pair[n]);
        clone_wait(i.pid);
        check_end(pair[n], &i, SIGKILL);
    }
    if (fd >= 0)
        close(fd);
    end();
}

static void test_pool(void) {
    begin();
    struct pen *pen = take();
    pid_t keeper = pen->keeper;
    pens_give(&pens, pen, NULL); /* never used */
    pens_stock(&pens);
    CHECK(pens_keeps(&pens, keeper));
    pen = take();
    CHECK_EQ(pen->keeper, keeper);
    CHECK(!pens_keeps(&pens, keeper));
    pens_give(&pens, pen, NULL);
    kill(keeper, SIGKILL); /* somebody else does */
    struct pollfd p = {.fd = pen->end.fd, .events = POLLIN};
    CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
    pen = take();
    CHECK(pen->keeper != keeper);
    pens_give(&pens, pen, NULL);
    end();
}

/* A keeper holds nothing open that others wait to be closed. */
static void test_descriptors(void) {
    begin(); /* the first one has said that it is ready */
    struct pen *pen = take();
    CHECK_EQ(process_descriptors(pen->keeper), 0);
    CHECK(process_descriptors(getpid()) > 0);
    pens_give(&pens, pen, NULL);
    end();
}

/* ---- deaths of ours ---- */

/* Makes a pen with somebody in it, and waits to be killed. */
static _Noreturn void be_killed(int told, int life) {
    begin();
    struct pen *pen = take();
    int go[2];
    if (pipe2(go, O_CLOEXEC) < 0)
        _exit(1);
    pid_t passing = fork();
    if (passing == 0) {
        if (clone_enter(pens.user, pen->end.fd) < 0)
            _exit(1);
        if (syscall(SYS_clone, CLONE_PARENT, NULL, NULL, NULL, NULL) == 0)
            live(life, go[0], fork_away);
        _exit(0);
    }
    clone_wait(passing);
    close(life);
    if (write(told, &pen->keeper, sizeof pen->keeper) != sizeof pen->keeper)
        _exit(1);
    for (;;)
        pause();
}

static void test_dies_with_us(void) {
    int told[2], life[2];
    pid_t keeper = 0;
    struct word w;
    CHECK(pipe2(told, O_CLOEXEC) == 0 && pipe2(life, O_CLOEXEC) == 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t pid = fork();
    if (pid == 0) {
        close(life[0]);
        be_killed(told[1], life[1]);
    }
    close(life[1]);
    CHECK_EQ(read(told[0], &keeper, sizeof keeper), sizeof keeper);
    CHECK_EQ(read(life[0], &w, sizeof w), sizeof w);
    int pidfd = (int)syscall(SYS_pidfd_open, keeper, 0);
    CHECK(pidfd >= 0);
    CHECK(!nobody_lives(life[0], 0));
    kill(pid, SIGKILL);
    while (waitpid(-1, NULL, __WALL) > 0) /* what it leaves comes to us */
        ;
    CHECK(nobody_lives(life[0], 0));
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    CHECK_EQ(poll(&p, 1, PATIENCE_MS), 1);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    close(pidfd);
    close(life[0]);
    close(told[0]);
    close(told[1]);
}

int main(void) {
    struct pens_trouble t;
    if (pens_try(&t) < 0) {
        SKIP("pid namespaces", t.words);
        return tap_finish();
    }
    TEST(test_kill);
    TEST(test_empty);
    TEST(test_release);
    TEST(test_release_at_once);
    TEST(test_who_and_what);
    TEST(test_pool);
    TEST(test_descriptors);
    TEST(test_dies_with_us);
    return tap_finish();
}

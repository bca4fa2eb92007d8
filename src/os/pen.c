/* SPDX-License-Identifier: MIT */
/* Pid namespaces for runs: see pen.h. */
#include "os/pen.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/clone.h"

enum { SPARE = 1, MAKE_BYTES = 8 * 1024 };
enum { NUMBERS = 32768, NUMBER_MIN = 300 }; /* as the kernel has them if it does not say */
enum { PATIENCE_MS = 1, PATIENCE_TIMES = 2000 };
enum { WORD_MADE, WORD_READY, WORD_RELEASED };

/* ---- the keeper: beside us in our memory, so nothing but clone_call ---- */

/* We may be gone already when it asks to die with us. */
IN_CHILD static bool follow(const struct pen *pen) {
    struct pollfd gone = {.fd = pen->launcher, .events = POLLIN};
    struct timespec at_once = {0};
    return clone_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0) == 0 &&
           clone_call(SYS_ppoll, (long)&gone, 1, (long)&at_once, 0) == 0;
}

/* Processes of different runs should not have the same numbers: people name files by them. */
IN_CHILD static void set_first(const struct pen *pen) {
    long len = 0;
    while (pen->first[len] != '\0')
        len++;
    long fd = clone_call(SYS_openat, AT_FDCWD, (long)"/proc/sys/kernel/ns_last_pid",
                         O_WRONLY | O_CLOEXEC, 0);
    clone_call(SYS_write, fd, (long)pen->first, len, 0); /* if it cannot be, they begin with 2 */
}

/* SIGCHLD is ignored, so the kernel reaps; waiting ends when there is no child. */
IN_CHILD static int keep(void *argument) {
    struct pen *pen = argument;
    if (!follow(pen))
        clone_call(SYS_exit_group, 1, 0, 0, 0);
    clone_call(SYS_prctl, PR_SET_NAME, (long)"storm-keeper", 0, 0);
    set_first(pen);
    if (clone_call(SYS_close_range, 0, (long)~0U, 0, 0) < 0)
        clone_call(SYS_exit_group, 1, 0, 0, 0);
    uint32_t made = WORD_MADE;
    atomic_compare_exchange_strong(&pen->word, &made, WORD_READY);
    while (atomic_load(&pen->word) != WORD_RELEASED)
        clone_call(SYS_futex, (long)&pen->word, FUTEX_WAIT_PRIVATE, WORD_READY, 0);
    while (clone_call(SYS_wait4, -1, 0, __WALL, 0) != -ECHILD)
        ;
    clone_call(SYS_exit_group, 0, 0, 0, 0);
    return 0;
}

/* ---- making one ---- */

struct making {
    const struct pens *pens;
    struct pen *pen;
    volatile int result;
};

/* In a process that we wait for: enters the user namespace, and has the keeper as a child of ours. */
IN_CHILD static int make_keeper(void *argument) {
    struct making *m = argument;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct clone_order o = {.flags = CLONE_PARENT | CLONE_NEWPID,
                            .cgroup = -1,
                            .stack = m->pen->stack,
                            .stack_bytes = PEN_STACK_BYTES,
                            .function = keep,
                            .argument = m->pen};
    sigset_t all;
    if (m->pens->user >= 0 && setns(m->pens->user, CLONE_NEWUSER) < 0) {
        m->result = -errno;
        _exit(1);
    }
    sigaction(SIGCHLD, &ignore, NULL);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    m->result = clone_start(&o, m->pens->plain);
    _exit(0);
}

static int start_keeper(const struct pens *p, struct pen *pen) {
    _Alignas(16) uint8_t stack[MAKE_BYTES];
    struct making m = {.pens = p, .pen = pen, .result = -EIO};
    struct clone_order o = {.flags = CLONE_VFORK,
                            .cgroup = -1,
                            .stack = stack,
                            .stack_bytes = sizeof stack,
                            .function = make_keeper,
                            .argument = &m};
    pid_t maker = clone_start(&o, p->plain);
    if (maker < 0)
        return maker;
    clone_wait(maker);
    if (m.result < 0)
        return m.result;
    pen->keeper = m.result;
    return 0;
}

/* Spread over all there are: neighbours make theirs at the same time. */
static void choose_first(struct pens *p, char *out, size_t size) {
    uint32_t seed = (uint32_t)getpid() * 64 + p->made++;
    uint32_t range = p->numbers - NUMBER_MIN - NUMBER_MIN;
    snprintf(out, size, "%u",
             NUMBER_MIN + (uint32_t)((seed * 2654435761U * (uint64_t)range) >> 32));
}

/* A keeper has ended only when we have waited for all of our own in its pen. Where that took too long
 * it keeps its stack for ever. */
static void free_pen(struct pen *pen) {
    if (pen->end.fd >= 0)
        close(pen->end.fd);
    if (pen->children >= 0)
        close(pen->children);
    pen_kill(pen);
    if (pen->keeper > 0 && pen->used)
        return;
    if (pen->keeper > 0)
        clone_wait(pen->keeper);
    free(pen);
}

static int open_keeper(struct pen *pen) {
    char path[64];
    int pid = (int)pen->keeper;
    pen->end.fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pen->end.fd < 0)
        return -errno;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", pid, pid);
    pen->children = open(path, O_RDONLY | O_CLOEXEC);
    return 0;
}

static struct pen *make(struct pens *p, int *ret_error) {
    struct pen *pen = malloc(sizeof *pen);
    if (pen == NULL) {
        *ret_error = -ENOMEM;
        return NULL;
    }
    pen->keeper = 0;
    pen->end = (struct source){.fd = -1};
    pen->children = -1;
    pen->watched = pen->used = pen->ending = false;
    pen->launcher = p->self;
    atomic_init(&pen->word, WORD_MADE);
    list_init(&pen->link);
    choose_first(p, pen->first, sizeof pen->first);
    *ret_error = start_keeper(p, pen);
    if (*ret_error == 0)
        *ret_error = open_keeper(pen);
    if (*ret_error == 0)
        return pen;
    free_pen(pen);
    return NULL;
}

/* ---- one that is there ---- */

/* The list begins with a child if there is one at all, and there always is one while there are descendants:
 * a process passes its children on before it goes. */
bool pen_empty(struct pen *pen) {
    char some;
    if (pen->ending || pen->children < 0 || pread(pen->children, &some, 1, 0) != 0)
        return false;
    pen->used = false;
    return true;
}

/* Nobody else waits for it, so its number is its own. */
void pen_kill(struct pen *pen) {
    pen->ending = true;
    if (pen->keeper > 0)
        kill(pen->keeper, SIGKILL);
}

bool pen_ended(struct pen *pen) {
    if (pen->keeper > 0 && waitpid(pen->keeper, NULL, WNOHANG | __WALL) == pen->keeper)
        pen->keeper = 0;
    return pen->keeper == 0;
}

void pen_release(struct pen *pen) {
    pen->ending = true;
    if (atomic_exchange(&pen->word, WORD_RELEASED) != WORD_RELEASED)
        clone_call(SYS_futex, (long)&pen->word, FUTEX_WAKE_PRIVATE, 1, 0);
}

/* ---- a user namespace ---- */

static int put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = write(fd, text, strlen(text)) < 0 ? -errno : 0;
    close(fd);
    return r;
}

/* In it we are who we were, and nobody else is anybody. */
static int become_oneself(uid_t uid, gid_t gid) {
    char text[64];
    if (unshare(CLONE_NEWUSER) < 0)
        return -errno;
    int r = put("/proc/self/setgroups", "deny");
    if (r < 0 && r != -ENOENT)
        return r;
    snprintf(text, sizeof text, "%u %u 1", uid, uid);
    r = put("/proc/self/uid_map", text);
    if (r < 0)
        return r;
    snprintf(text, sizeof text, "%u %u 1", gid, gid);
    return put("/proc/self/gid_map", text);
}

static _Noreturn void show_namespace(int told, int seen) {
    char none;
    int r = become_oneself(geteuid(), getegid());
    if (write(told, &r, sizeof r) != sizeof r || read(seen, &none, 1) != 0)
        _exit(1);
    _exit(0);
}

/* A process makes it and stays until we have a descriptor of it. */
static int take_namespace(pid_t pid, int told) {
    char path[64];
    int r = -EIO;
    if (read(told, &r, sizeof r) != sizeof r)
        return -EIO;
    if (r < 0)
        return r;
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int open_user(void) {
    int told[2], seen[2];
    if (pipe2(told, O_CLOEXEC) < 0)
        return -errno;
    if (pipe2(seen, O_CLOEXEC) < 0) {
        int r = -errno;
        close(told[0]);
        close(told[1]);
        return r;
    }
    pid_t pid = fork();
    int r = pid < 0 ? -errno : 0;
    if (pid == 0) {
        close(told[0]);
        close(seen[1]);
        show_namespace(told[1], seen[0]);
    }
    close(told[1]);
    close(seen[0]);
    if (pid > 0)
        r = take_namespace(pid, told[0]);
    close(told[0]);
    close(seen[1]);
    if (pid > 0)
        clone_wait(pid);
    return r;
}

/* ---- the pool ---- */

void pens_stock(struct pens *p) {
    uint32_t have = 0;
    int r;
    LIST_EACH (l, &p->spare)
        have++;
    for (struct pen *pen; p->open && have < SPARE && (pen = make(p, &r)) != NULL; have++)
        list_push_back(&p->spare, &pen->link);
}

static uint32_t read_numbers(void) {
    unsigned value = 0;
    FILE *f = fopen("/proc/sys/kernel/pid_max", "re");
    if (f == NULL || fscanf(f, "%u", &value) != 1 || value < 4 * NUMBER_MIN)
        value = NUMBERS;
    if (f != NULL)
        fclose(f);
    return value;
}

/* One whose keeper lives: it could do all that it must. */
static int make_first(struct pens *p) {
    int r = 0;
    struct pen *pen = make(p, &r);
    if (pen == NULL)
        return r;
    r = -ETIMEDOUT;
    for (int i = 0; r == -ETIMEDOUT && i < PATIENCE_TIMES; i++) {
        if (atomic_load(&pen->word) == WORD_READY)
            r = 0;
        else if (pen_ended(pen))
            r = -EIO;
        else
            poll(NULL, 0, PATIENCE_MS);
    }
    if (r == 0)
        list_push_back(&p->spare, &pen->link);
    else
        free_pen(pen);
    return r;
}

/* Where clone3 is unknown or forbidden the old call may do. */
static int check_first(struct pens *p) {
    int r = make_first(p);
    if (r != -ENOSYS && r != -EINVAL && r != -EPERM)
        return r;
    p->plain = true;
    return make_first(p);
}

static int fail(struct pens *p, struct pens_trouble *t, const char *what, int error) {
    snprintf(t->words, sizeof t->words, "%s: %s", what, strerror(-error));
    pens_fini(p);
    return error;
}

int pens_init(struct pens *p, struct pens_trouble *t) {
    *p = (struct pens){.user = -1, .self = -1, .numbers = read_numbers()};
    list_init(&p->spare);
    if (!CLONE_CALLS)
        return fail(p, t, "not on this kind of processor", -ENOSYS);
    p->self = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (p->self < 0)
        return fail(p, t, "pidfd", -errno);
    if (geteuid() != 0) {
        p->user = open_user();
        if (p->user < 0)
            return fail(p, t, "user namespaces cannot be made", p->user);
    }
    int r = check_first(p);
    if (r < 0)
        return fail(p, t, "pid namespaces cannot be made", r);
    p->open = true;
    return 0;
}

void pens_fini(struct pens *p) {
    for (struct list *l; (l = list_pop_front(&p->spare)) != NULL;)
        free_pen(CONTAINER_OF(l, struct pen, link));
    if (p->user >= 0)
        close(p->user);
    if (p->self >= 0)
        close(p->self);
    p->user = p->self = -1;
    p->open = false;
}

int pens_try(struct pens_trouble *t) {
    struct pens p;
    int r = pens_init(&p, t);
    if (r == 0)
        pens_fini(&p);
    return r;
}

/* Somebody may have killed a keeper meanwhile. */
struct pen *pens_take(struct pens *p, int *ret_error) {
    for (struct list *l; (l = list_pop_front(&p->spare)) != NULL;) {
        struct pen *pen = CONTAINER_OF(l, struct pen, link);
        *ret_error = 0;
        if (!pen_ended(pen))
            return pen;
        free_pen(pen);
    }
    return make(p, ret_error);
}

void pens_give(struct pens *p, struct pen *pen, struct loop *l) {
    if (pen->watched)
        loop_remove(l, &pen->end);
    pen->watched = false;
    if (pen->keeper > 0 && !pen->used && !pen->ending)
        list_push_front(&p->spare, &pen->link);
    else
        free_pen(pen);
}

bool pens_keeps(const struct pens *p, pid_t pid) {
    LIST_EACH (l, &p->spare)
        if (CONTAINER_OF(l, struct pen, link)->keeper == pid)
            return true;
    return false;
}

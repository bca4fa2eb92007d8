/* SPDX-License-Identifier: MIT */
/* Starting processes: see spawn.h. */
#include "os/spawn.h"

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/child.h"

enum { STACK_BYTES = 64 * 1024 };

/* What the child reads and, if it fails, writes, while we wait for it to execute or to exit. */
struct birth {
    const struct spawner *spawner;
    const struct recipe *recipe; /* NULL: only a probe */
    const struct place *place;
    const char *file;
    char *const *arguments;
    int join; /* file to write to in order to enter the cgroup; -1: born there */
    volatile int error;
    volatile enum spawn_step step;
};

/* ---- in the child: shared memory, so nothing but calls to the kernel ---- */

#define IN_CHILD __attribute__((no_sanitize("address", "undefined")))

IN_CHILD static _Noreturn void give_up(struct birth *b, enum spawn_step step) {
    b->step = step;
    b->error = errno;
    _exit(127);
}

/* The parent may be gone already when we ask to die with it. */
IN_CHILD static void bind(struct birth *b) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        give_up(b, SPAWN_FORK);
    if (getppid() != b->spawner->self)
        _exit(127);
    if (b->join >= 0 && write(b->join, "0", 1) < 0)
        give_up(b, SPAWN_FORK);
    setsid();
}

IN_CHILD static void connect_stdio(struct birth *b) {
    const struct place *p = b->place;
    for (int i = 0; i < 3; i++)
        if (dup2(p->stdio[i], i) < 0)
            give_up(b, SPAWN_STDIO);
    if (p->terminal && ioctl(0, TIOCSCTTY, 0) < 0)
        give_up(b, SPAWN_STDIO);
}

IN_CHILD static void settle_in(struct birth *b) {
    const struct recipe *r = b->recipe;
    if (r->folder != NULL && chdir(r->folder) < 0)
        give_up(b, SPAWN_FOLDER);
    if (r->umask)
        umask((mode_t)r->spec.umask);
    if (b->spawner->raised &&
        prlimit(0, RLIMIT_NOFILE, &b->spawner->inherited.limits[RLIMIT_NOFILE], NULL) < 0)
        give_up(b, SPAWN_LIMITS);
    for (uint32_t i = 0; i < r->limit_count; i++)
        if (prlimit(0, (enum __rlimit_resource)r->limits[i].resource, &r->limits[i].limit, NULL) <
            0)
            give_up(b, SPAWN_LIMITS);
}

IN_CHILD static void reset_signals(const struct spawner *s) {
    sigset_t none;
    for (int i = 1; i <= CHILD_LAST_SIGNAL && s->ignored >> (i - 1) != 0; i++)
        if (s->ignored >> (i - 1) & 1)
            child_default(i);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

IN_CHILD static int child(void *argument) {
    struct birth *b = argument;
    bind(b);
    if (b->recipe == NULL)
        _exit(0);
    connect_stdio(b);
    settle_in(b);
    reset_signals(b->spawner);
    execve(b->file, b->arguments, b->recipe->environment);
    give_up(b, SPAWN_PROGRAM);
}

/* ---- in the parent ---- */

/* The call itself, on a stack of the child's own: it must not come back through ours. */
static long clone3_onto(struct clone_args *args, int (*function)(void *), void *argument) {
#if defined(__aarch64__)
    register long x0 __asm__("x0") = (long)args;
    register long x1 __asm__("x1") = sizeof *args;
    register long x8 __asm__("x8") = SYS_clone3;
    register int (*x10)(void *) __asm__("x10") = function;
    register void *x11 __asm__("x11") = argument;
    __asm__ volatile("svc #0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, xzr\n\t"
                     "mov x0, x11\n\t"
                     "blr x10\n\t"
                     "brk #1\n"
                     "1:"
                     : "+r"(x0)
                     : "r"(x1), "r"(x8), "r"(x10), "r"(x11)
                     : "memory", "cc");
    return x0;
#elif defined(__x86_64__)
    long result;
    register int (*r12)(void *) __asm__("r12") = function;
    register void *r13 __asm__("r13") = argument;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r13, %%rdi\n\t"
                     "call *%%r12\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(result)
                     : "0"((long)SYS_clone3), "D"(args), "S"(sizeof *args), "r"(r12), "r"(r13)
                     : "rcx", "r11", "memory", "cc");
    return result;
#else
    (void)args;
    (void)function;
    (void)argument;
    return -ENOSYS;
#endif
}

static pid_t start_clone3(struct spawner *s, struct birth *b) {
    struct clone_args args = {.flags = CLONE_VM | CLONE_VFORK | CLONE_CLEAR_SIGHAND,
                              .exit_signal = SIGCHLD,
                              .stack = (uintptr_t)s->stack,
                              .stack_size = STACK_BYTES};
    if (b->place->cgroup >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)b->place->cgroup;
    }
    return (pid_t)clone3_onto(&args, child, b);
}

/* Where clone3 is unknown or forbidden. Handlers of ours must not run in the child, so all signals
 * wait; the child enters its cgroup itself. */
static pid_t start_plain(struct spawner *s, struct birth *b) {
    sigset_t all, before;
    if (b->place->cgroup >= 0) {
        b->join = openat(b->place->cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC);
        if (b->join < 0)
            return -errno;
    }
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = clone(child, s->stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, b);
    int error = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (b->join >= 0)
        close(b->join);
    return pid < 0 ? -error : pid;
}

static pid_t start(struct spawner *s, struct birth *b) {
    if (!s->plain) {
        pid_t pid = start_clone3(s, b);
        if (pid != -ENOSYS && pid != -EINVAL && pid != -EPERM)
            return pid;
        s->plain = true;
    }
    return start_plain(s, b);
}

static pid_t attempt(struct spawner *s, struct recipe *r, const struct place *p,
                     enum spawn_step *ret_step) {
    struct birth b = {.spawner = s,
                      .recipe = r,
                      .place = p,
                      .file = recipe_file(r),
                      .arguments = recipe_arguments(r),
                      .join = -1};
    pid_t pid = start(s, &b);
    *ret_step = pid < 0 ? SPAWN_FORK : b.step;
    if (pid < 0 || b.error == 0)
        return pid;
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return -b.error;
}

/* A file that the kernel cannot execute is given to a shell, as execvp does. */
pid_t spawn(struct spawner *s, struct recipe *r, const struct place *p, uint32_t index,
            enum spawn_step *ret_step) {
    *ret_step = SPAWN_PROGRAM;
    if (r->error < 0)
        return r->error;
    recipe_turn(r, index);
    pid_t pid = attempt(s, r, p, ret_step);
    if (pid != -ENOEXEC || r->shell)
        return pid;
    r->shell = true;
    return attempt(s, r, p, ret_step);
}

static int try_cgroup(struct spawner *s, int cgroup) {
    int status = 0;
    struct place p = {.cgroup = cgroup};
    struct birth b = {.spawner = s, .place = &p, .join = -1};
    pid_t pid = start(s, &b);
    if (pid < 0)
        return pid;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return b.error != 0 ? -b.error : status == 0 ? 0 : -EIO;
}

/* Some kernels end what is born in a cgroup of which less was ever killed than of our own. */
int spawn_probe(struct spawner *s, int cgroup) {
    int r = try_cgroup(s, cgroup);
    if (r != -EIO || s->plain)
        return r;
    s->plain = true;
    return try_cgroup(s, cgroup);
}

/* ---- what we are ourselves ---- */

int spawner_init(struct spawner *s) {
    *s = (struct spawner){.self = getpid()};
    s->inherited.umask = umask(0);
    umask(s->inherited.umask);
    for (int i = 0; i < RLIM_NLIMITS; i++)
        if (prlimit(0, (enum __rlimit_resource)i, NULL, &s->inherited.limits[i]) < 0)
            return -errno;
    for (int i = 1; i <= CHILD_LAST_SIGNAL; i++)
        if (child_ignores(i))
            s->ignored |= UINT64_C(1) << (i - 1);
    s->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s->stack == MAP_FAILED)
        s->stack = NULL;
    return s->stack == NULL ? -ENOMEM : 0;
}

void spawner_fini(struct spawner *s) {
    if (s->stack != NULL)
        munmap(s->stack, STACK_BYTES);
    s->stack = NULL;
}

/* SPDX-License-Identifier: MIT */
/* Starting processes: see spawn.h. */
#include "os/spawn.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

#include "os/child.h"
#include "os/clone.h"

enum { STACK_BYTES = 64 * 1024, PASS_BYTES = 8 * 1024 };

/* What the child reads and, if it fails, writes, while we wait for it to execute or to exit. */
struct birth {
    const struct spawner *spawner;
    const struct recipe *recipe; /* NULL: only a probe */
    const struct place *place;
    const char *file;
    char *const *arguments;
    bool hold;           /* stopped before the first instruction of what it executes */
    volatile bool begun; /* some process has: the call works */
    volatile pid_t pid;  /* started by the passing process */
    int join;            /* file to write to in order to enter the cgroup; -1: born there */
    volatile int error;
    volatile enum spawn_step step;
};

/* ---- in the child: shared memory, so nothing but calls to the kernel ---- */

IN_CHILD static _Noreturn void give_up(struct birth *b, enum spawn_step step) {
    b->step = step;
    b->error = errno;
    _exit(127);
}

/* The parent may be gone already when we ask to die with it. In a pid namespace it is not to be seen, but
 * there we die with the namespace. */
IN_CHILD static void bind(struct birth *b) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        give_up(b, SPAWN_FORK);
    if (b->place->door < 0 && getppid() != b->spawner->self)
        _exit(127);
    if (b->join >= 0 && write(b->join, "0", 1) < 0)
        give_up(b, SPAWN_FORK);
    if (b->place->ration >= 0 && write(b->place->ration, "0", 1) < 0)
        give_up(b, SPAWN_LIMITS);
    if (b->place->terminal || b->place->cgroup < 0)
        setsid();
    else
        setpgid(0, 0);
}

/* Descriptors are the parent's until here; it waits, and puts its own three back. Copying all that it
 * has, only to close them when we execute, would cost more than all the rest that is done here. */
IN_CHILD static void connect_stdio(struct birth *b) {
    const struct place *p = b->place;
    for (int i = 0; i < 3; i++)
        if (dup2(p->stdio[i], i) < 0)
            give_up(b, SPAWN_STDIO);
    unsigned int last = STDERR_FILENO;
    if (p->bell > 0) { /* what lies between is closed when we execute, as all that is ours */
        last = (unsigned int)b->spawner->inherited.bell;
        if (dup2(p->bell, (int)last) < 0)
            give_up(b, SPAWN_STDIO);
    }
    if (b->spawner->sparing && close_range(last + 1, ~0U, CLOSE_RANGE_UNSHARE) < 0)
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
    if (b->place->processors != NULL &&
        syscall(SYS_sched_setaffinity, 0, b->place->processors_bytes, b->place->processors) < 0)
        give_up(b, SPAWN_LIMITS);
    if (b->spawner->hurried && setpriority(PRIO_PROCESS, 0, b->spawner->usual) < 0)
        give_up(b, SPAWN_LIMITS);
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
    if (b->hold && ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
        give_up(b, SPAWN_FORK);
    execve(b->file, b->arguments, b->recipe->environment);
    give_up(b, SPAWN_PROGRAM);
}

IN_CHILD static uint64_t shared(const struct spawner *s) {
    return s->sparing ? CLONE_FILES : 0;
}

/* A process that is started into a pid namespace: whoever has it started there must have entered it, and
 * we could not come back. So a passing process enters, starts the process as a child of ours, and ends. */
IN_CHILD static int pass(void *argument) {
    struct birth *b = argument;
    b->begun = true;
    int r = clone_enter(b->place->user, b->place->door);
    if (r < 0) {
        b->error = -r;
        _exit(127);
    }
    struct clone_order o = {.flags = CLONE_VFORK | CLONE_PARENT | shared(b->spawner),
                            .cgroup = -1,
                            .stack = b->spawner->stack,
                            .stack_bytes = STACK_BYTES,
                            .function = child,
                            .argument = b};
    b->pid = clone_start(&o, b->spawner->plain);
    _exit(0);
}

/* ---- in the parent ---- */

/* It tells nobody when it ends: we wait for it anyway. */
static pid_t start_behind(const struct spawner *s, struct birth *b) {
    _Alignas(16) uint8_t stack[PASS_BYTES];
    struct clone_order o = {.flags = CLONE_VFORK | shared(s),
                            .cgroup = -1,
                            .stack = stack,
                            .stack_bytes = sizeof stack,
                            .function = pass,
                            .argument = b};
    pid_t passing = clone_start(&o, s->plain);
    if (passing < 0)
        return passing;
    clone_wait(passing);
    if (b->pid == 0)
        return b->error != 0 ? -b->error : -EIO;
    return b->pid;
}

static void restore_stdio(const struct spawner *s) {
    for (int i = 0; s->sparing && i < 3; i++)
        if (s->stdio[i] < 0 || dup2(s->stdio[i], i) < 0)
            close(i);
}

static pid_t start_here(const struct spawner *s, struct birth *b) {
    struct clone_order o = {.flags = CLONE_VFORK | shared(s),
                            .exit_signal = SIGCHLD,
                            .cgroup = s->plain ? -1 : b->place->cgroup,
                            .stack = s->stack,
                            .stack_bytes = STACK_BYTES,
                            .function = child,
                            .argument = b};
    pid_t pid = b->place->door >= 0 ? start_behind(s, b) : clone_start(&o, s->plain);
    restore_stdio(s);
    return pid;
}

/* Where clone3 is unknown or forbidden. Handlers of ours must not run in the child, so all signals
 * wait; the child enters its cgroup itself. */
static pid_t start_plain(const struct spawner *s, struct birth *b) {
    sigset_t all, before;
    if (b->place->cgroup >= 0) {
        b->join = openat(b->place->cgroup, "cgroup.procs", O_WRONLY | O_CLOEXEC);
        if (b->join < 0)
            return -errno;
    }
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = start_here(s, b);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (b->join >= 0)
        close(b->join);
    return pid;
}

static pid_t start(struct spawner *s, struct birth *b) {
    if (!s->plain) {
        pid_t pid = start_here(s, b);
        if (b->begun || (pid != -ENOSYS && pid != -EINVAL && pid != -EPERM))
            return pid;
        s->plain = true;
    }
    return start_plain(s, b);
}

/* It has executed something, and is stopped for us to see. We let it go, stopped: whoever wants to may attach to
 * it, and SIGCONT sets it free. Should it have been ended meanwhile, that is found as always. */
static int hold_back(pid_t pid) {
    siginfo_t info;
    while (waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT | __WALL) < 0)
        if (errno != EINTR)
            return -errno;
    if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
        return 0;
    return ptrace(PTRACE_DETACH, pid, NULL, SIGSTOP) < 0 && errno != ESRCH ? -errno : 0;
}

static pid_t attempt(struct spawner *s, struct recipe *r, const struct place *p,
                     enum spawn_step *ret_step) {
    struct birth b = {.spawner = s,
                      .recipe = r,
                      .place = p,
                      .file = recipe_file(r),
                      .arguments = recipe_arguments(r),
                      .hold = recipe_holds(r),
                      .join = -1};
    pid_t pid = start(s, &b);
    *ret_step = pid < 0 ? SPAWN_FORK : b.step;
    if (pid > 0 && b.error == 0 && b.hold && hold_back(pid) < 0)
        kill(pid, SIGKILL); /* nobody could ever set it free */
    if (pid < 0 || b.error == 0)
        return pid;
    clone_wait(pid);
    return -b.error;
}

/* A file that the kernel cannot execute is given to a shell, as execvp does. */
pid_t spawn(struct spawner *s, struct recipe *r, const struct place *p, uint32_t index,
            enum spawn_step *ret_step) {
    *ret_step = r->step;
    if (r->error < 0)
        return r->error;
    recipe_turn(r, index);
    pid_t pid = attempt(s, r, p, ret_step);
    if (pid != -ENOEXEC || r->shell)
        return pid;
    r->shell = true;
    return attempt(s, r, p, ret_step);
}

static int try_place(struct spawner *s, const struct place *p) {
    struct birth b = {.spawner = s, .place = p, .join = -1};
    pid_t pid = start(s, &b);
    if (pid < 0)
        return pid;
    int status = clone_wait(pid);
    return b.error != 0 ? -b.error : status == 0 ? 0 : -EIO;
}

/* Some kernels end what is born in a cgroup of which less was ever killed than of our own. */
int spawn_probe(struct spawner *s, const struct place *p) {
    int r = try_place(s, p);
    if (r != -EIO || s->plain)
        return r;
    s->plain = true;
    return try_place(s, p);
}

/* ---- what we are ourselves ---- */

int spawn_aside(int fd) {
    int moved = fd < 0 || fd >= SPAWN_LOW_END ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, SPAWN_LOW_END);
    if (moved < 0)
        return fd;
    close(fd);
    return moved;
}

int spawner_init(struct spawner *s) {
    *s = (struct spawner){.self = getpid(), .stdio = {-1, -1, -1}};
    s->inherited.umask = umask(0);
    umask(s->inherited.umask);
    for (int i = 0; i < RLIM_NLIMITS; i++)
        if (prlimit(0, (enum __rlimit_resource)i, NULL, &s->inherited.limits[i]) < 0)
            return -errno;
    for (int i = 1; i <= CHILD_LAST_SIGNAL; i++)
        if (child_ignores(i))
            s->ignored |= UINT64_C(1) << (i - 1);
    s->sparing = close_range(~0U, ~0U, CLOSE_RANGE_UNSHARE) == 0;
    for (int i = 0; i < 3; i++) {
        s->stdio[i] = spawn_aside(fcntl(i, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
        if (s->stdio[i] < 0 && errno != EBADF)
            s->sparing = false; /* we could not put it back */
    }
    s->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s->stack == MAP_FAILED)
        s->stack = NULL;
    return s->stack == NULL ? -ENOMEM : 0;
}

void spawner_fini(struct spawner *s) {
    for (int i = 0; i < 3; i++)
        if (s->stdio[i] >= 0)
            close(s->stdio[i]);
    if (s->stack != NULL)
        munmap(s->stack, STACK_BYTES);
    s->stack = NULL;
}

/* SPDX-License-Identifier: MIT */
/* The first steps of a forked process: see child.h. */
#include "os/child.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bytes.h"

void child_follow(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
}

static bool is_fault(int signal) {
    return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
           signal == SIGABRT;
}

/* As the kernel has it: the handler comes first, the rest differs from processor to processor. */
struct disposition {
    void (*handler)(int);
    unsigned long rest[15];
};

enum { KERNEL_SET_BYTES = CHILD_LAST_SIGNAL / 8 };

bool child_ignores(int signal) {
    struct disposition now = {.handler = SIG_DFL};
    return syscall(SYS_rt_sigaction, signal, NULL, &now, KERNEL_SET_BYTES) == 0 &&
           now.handler == SIG_IGN;
}

/* Also between vfork and exec. */
__attribute__((no_sanitize("address", "undefined"))) void child_default(int signal) {
    static const struct disposition plain = {.handler = SIG_DFL};
    syscall(SYS_rt_sigaction, signal, &plain, NULL, KERNEL_SET_BYTES); /* fails where it may */
}

void child_forget_signals(void) {
    sigset_t none;
    for (int i = 1; i <= CHILD_LAST_SIGNAL; i++)
        if (!is_fault(i))
            child_default(i);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

void child_close_from(unsigned int first) {
    if (close_range(first, UINT_MAX, 0) == 0)
        return;
    long end = sysconf(_SC_OPEN_MAX); /* a kernel before 5.9 */
    for (int fd = (int)first; fd < end; fd++)
        close(fd);
}

void child_place(int fd, int at, int flags) {
    if (fd < 0)
        close(at);
    else if (fd != at)
        dup3(fd, at, flags);
    else
        fcntl(at, F_SETFD, flags & O_CLOEXEC ? FD_CLOEXEC : 0);
}

int child_secret(const uint64_t key[2]) {
    int fd[2];
    uint8_t bytes[16];
    store_le64(bytes, key[0]);
    store_le64(bytes + 8, key[1]);
    if (pipe2(fd, O_CLOEXEC) < 0)
        return -1;
    bool good = write(fd[1], bytes, sizeof bytes) == sizeof bytes;
    close(fd[1]);
    return good ? fd[0] : -1;
}

uint64_t child_raise_limits(void) {
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return 0;
    uint64_t before = r.rlim_cur;
    if (r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        setrlimit(RLIMIT_NOFILE, &r);
    }
    return before;
}

void child_set_files(uint64_t files) {
    struct rlimit r;
    if (files == 0 || getrlimit(RLIMIT_NOFILE, &r) < 0 || files > r.rlim_max)
        return;
    r.rlim_cur = files;
    setrlimit(RLIMIT_NOFILE, &r);
}

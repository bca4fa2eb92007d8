/* SPDX-License-Identifier: MIT */
/* A process that begins in a function of ours: see clone.h. */
#include "os/clone.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- calls ---- */

IN_CHILD long clone_call(long number, long a, long b, long c, long d) {
#if defined(__aarch64__)
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = 0;
    register long x8 __asm__("x8") = number;
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x8)
                     : "memory", "cc");
    return x0;
#elif defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory", "cc");
    return result;
#else
    (void)number, (void)a, (void)b, (void)c, (void)d;
    return -ENOSYS;
#endif
}

/* The call itself, on a stack of the child's own: it must not come back through ours. */
IN_CHILD static long clone3_onto(struct clone_args *args, int (*function)(void *), void *argument) {
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

/* ---- starting ---- */

IN_CHILD pid_t clone_start(const struct clone_order *o, bool plain) {
    if (plain) {
        int flags = (int)o->flags | CLONE_VM | o->exit_signal;
        pid_t pid = clone(o->function, o->stack + o->stack_bytes, flags, o->argument);
        return pid < 0 ? -errno : pid;
    }
    struct clone_args args = {.flags = o->flags | CLONE_VM | CLONE_CLEAR_SIGHAND,
                              .exit_signal = (uint64_t)o->exit_signal,
                              .stack = (uintptr_t)o->stack,
                              .stack_size = o->stack_bytes};
    if (o->cgroup >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)o->cgroup;
    }
    return (pid_t)clone3_onto(&args, o->function, o->argument);
}

int clone_wait(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, __WALL) < 0)
        if (errno != EINTR)
            return -errno;
    return status;
}

/* ---- pid namespaces ---- */

IN_CHILD int clone_enter(int user, int door) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    if (user >= 0 && setns(user, CLONE_NEWUSER) < 0)
        return -errno;
    if (setns(door, CLONE_NEWPID) < 0)
        return -errno;
    if (user >= 0 && syscall(SYS_capset, &header, none) < 0)
        return -errno;
    return 0;
}

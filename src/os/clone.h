/* SPDX-License-Identifier: MIT */
/* A process that begins in a function of ours and shares our memory.
 *
 * Such a process costs the same however large we are. With CLONE_VFORK we wait until it executes
 * something or exits, so it may use what we use. Without that it runs beside us, with our thread's own
 * variables, errno among them: then it must do nothing but clone_call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* For functions of such processes: what a sanitizer adds would look at another's stack. */
#define IN_CHILD __attribute__((no_sanitize("address", "undefined")))

struct clone_order {
    uint64_t flags; /* CLONE_...; memory is always shared */
    int exit_signal;
    int cgroup; /* folder to be born in; -1: where we are. Not with `plain` */
    uint8_t *stack;
    size_t stack_bytes;
    int (*function)(void *argument); /* must not return */
    void *argument;
};

/* The process's pid or -errno. `plain`: by the old call, where clone3 is unknown or forbidden; signal
 * handlers are then not reset. */
pid_t clone_start(const struct clone_order *o, bool plain);

/* Waits for a child, whatever it tells when it ends. Its status, or -errno. */
int clone_wait(pid_t pid);

/* Can clone_call be used here? */
#if defined(__aarch64__) || defined(__x86_64__)
enum { CLONE_CALLS = 1 };
#else
enum { CLONE_CALLS = 0 };
#endif

/* A system call that leaves errno alone: its result or -errno. */
long clone_call(long number, long a, long b, long c, long d);

/* For a process that is to start others in a pid namespace: enters the user namespace, unless it is -1,
 * and has those that it starts born behind the door. Keeps no power that it has won by that. */
int clone_enter(int user, int door);

/* SPDX-License-Identifier: MIT */
/* The calls of every turn, made directly.
 *
 * The library's own are places where a thread may be cancelled: in a process that has ever had a second
 * thread they look for that before and after. Nobody is cancelled here. Results and errno are the same. */
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline ssize_t call_recv(int fd, void *at, size_t len, int flags) {
#ifdef SYS_recvfrom
    return syscall(SYS_recvfrom, fd, at, len, flags, NULL, NULL);
#else
    return recv(fd, at, len, flags);
#endif
}

static inline ssize_t call_send(int fd, const void *at, size_t len, int flags) {
#ifdef SYS_sendto
    return syscall(SYS_sendto, fd, at, len, flags, NULL, 0);
#else
    return send(fd, at, len, flags);
#endif
}

static inline int call_epoll_wait(int fd, struct epoll_event *at, int count, int timeout_ms) {
    return (int)syscall(SYS_epoll_pwait, fd, at, count, timeout_ms, NULL, 0);
}

/* SPDX-License-Identifier: MIT */
/* The bare fan-out: see fanout.h. */
#include "os/fanout.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/sort.h"
#include "base/units.h"

enum { MESSAGE_BYTES = 64, ANSWER_BYTES = 8, WARM_UP = 20, BATCH = 64, PATIENCE_S = 30 };

/* Of the alarm, among the indices of sockets. */
#define ALARM UINT32_MAX

/* The one descriptor that an answering process keeps. */
enum { ANSWERER_FD = 3 };

struct fanout {
    struct fanout_config config;
    uint8_t *bytes; /* what is sent, and where answers are read to */
    int *fds;
    uint32_t fd_count;
    pid_t *pids;
    uint32_t pid_count;
    int epoll;
    int alarm; /* goes off if it takes far too long */
};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* ---- sockets ---- */

static int tcp_socket(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0)
        return fd;
    int r = -errno;
    close(fd);
    return r;
}

/* Takes the connection that comes from `fd`; anybody on this machine could have made another. */
static int accept_from(int listener, int fd) {
    struct sockaddr_in own, peer;
    socklen_t own_len = sizeof own, peer_len = sizeof peer;
    if (getsockname(fd, (struct sockaddr *)&own, &own_len) < 0)
        return -errno;
    for (;;) {
        int got = accept4(listener, (struct sockaddr *)&peer, &peer_len, SOCK_CLOEXEC);
        if (got < 0)
            return -errno;
        if (peer.sin_port == own.sin_port && peer.sin_addr.s_addr == own.sin_addr.s_addr)
            return got;
        close(got);
    }
}

/* Connects `fd` to a listener of ours; returns the listener's end. */
static int tcp_meet(int listener, int fd) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int one = 1;
    if (bind(listener, (struct sockaddr *)&a, sizeof a) < 0 || listen(listener, 8) < 0 ||
        getsockname(listener, (struct sockaddr *)&a, &len) < 0 ||
        connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
        return -errno;
    int got = accept_from(listener, fd);
    if (got >= 0)
        setsockopt(got, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return got;
}

static int tcp_pair(int ret[2]) {
    int listener = tcp_socket();
    int fd = tcp_socket();
    int got = listener < 0 ? listener : fd < 0 ? fd : tcp_meet(listener, fd);
    if (listener >= 0)
        close(listener);
    if (got < 0) {
        if (fd >= 0)
            close(fd);
        return got;
    }
    ret[0] = got;
    ret[1] = fd;
    return 0;
}

int fanout_pair(enum transport transport, int ret[2]) {
    if (transport == TRANSPORT_TCP)
        return tcp_pair(ret);
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret) < 0 ? -errno : 0;
}

static int watch(int epoll, int fd, uint32_t index) {
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = index};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

static bool pin(uint32_t cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu - 1, &set);
    return cpu == 0 || sched_setaffinity(0, sizeof set, &set) == 0;
}

/* ---- those who answer ---- */

static void answer(struct fanout *f, int fd, int epoll) {
    uint32_t have = 0;
    struct epoll_event e;
    for (;;) {
        if (epoll_wait(epoll, &e, 1, -1) < 1)
            continue;
        ssize_t got = recv(fd, f->bytes, FANOUT_BYTES_MAX, 0);
        if (got <= 0)
            return;
        have += (uint32_t)got;
        if (have < f->config.message_bytes)
            continue;
        have = 0;
        if (send(fd, f->bytes, f->config.answer_bytes, MSG_NOSIGNAL) < 0)
            return;
    }
}

/* A process of its own. It keeps nothing of its parent's but the socket: a descriptor that stayed
 * open here would hide somebody else's end. */
static _Noreturn void answerer_main(struct fanout *f, int fd, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    if (fd != ANSWERER_FD && dup2(fd, ANSWERER_FD) < 0)
        _exit(1);
    close_range(ANSWERER_FD + 1, ~0U, 0);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0 || !pin(f->config.answerer_cpu) || watch(epoll, ANSWERER_FD, 0) < 0)
        _exit(1);
    answer(f, ANSWERER_FD, epoll);
    _exit(0);
}

/* ---- the one who asks ---- */

static int start_one(struct fanout *f) {
    int pair[2];
    int r = fanout_pair(f->config.transport, pair);
    if (r < 0)
        return r;
    f->fds[f->fd_count++] = pair[0];
    pid_t parent = getpid();
    pid_t pid = fork();
    r = pid < 0 ? -errno : 0;
    if (pid == 0)
        answerer_main(f, pair[1], parent);
    close(pair[1]);
    if (r < 0)
        return r;
    f->pids[f->pid_count++] = pid;
    return watch(f->epoll, pair[0], f->fd_count - 1);
}

static int ask_all(struct fanout *f) {
    for (uint32_t i = 0; i < f->config.nodes; i++) {
        ssize_t sent = send(f->fds[i], f->bytes, f->config.message_bytes, MSG_NOSIGNAL);
        if (sent != (ssize_t)f->config.message_bytes)
            return sent < 0 ? -errno : -EIO; /* blocking sockets take all */
    }
    return 0;
}

static int hear_all(struct fanout *f) {
    struct epoll_event batch[BATCH];
    uint64_t left = (uint64_t)f->config.nodes * f->config.answer_bytes;
    while (left > 0) {
        int count = epoll_wait(f->epoll, batch, BATCH, -1);
        if (count < 0 && errno != EINTR)
            return -errno;
        for (int i = 0; i < count; i++) {
            if (batch[i].data.u32 == ALARM)
                return -ETIMEDOUT;
            ssize_t got = recv(f->fds[batch[i].data.u32], f->bytes, f->config.answer_bytes, 0);
            if (got <= 0)
                return got < 0 ? -errno : -ECONNRESET;
            left -= (uint64_t)got;
        }
    }
    return 0;
}

static int ask_rounds(struct fanout *f, struct fanout_result *ret) {
    uint32_t rounds = f->config.rounds;
    uint64_t *took = malloc(rounds * sizeof *took);
    if (took == NULL)
        return -ENOMEM;
    int r = 0;
    for (uint32_t i = 0; i < WARM_UP + rounds && r == 0; i++) {
        uint64_t began = now_ns();
        r = ask_all(f);
        if (r == 0)
            r = hear_all(f);
        if (i >= WARM_UP)
            took[i - WARM_UP] = now_ns() - began;
    }
    if (r == 0) {
        sort_u64(took, rounds);
        *ret = (struct fanout_result){.median_ns = took[rounds / 2], .min_ns = took[0]};
    }
    free(took);
    return r;
}

/* Once for all: a timeout of every single wait would be part of what is measured. */
static int set_alarm(struct fanout *f) {
    struct itimerspec t = {.it_value.tv_sec = PATIENCE_S};
    f->alarm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    if (f->alarm < 0 || timerfd_settime(f->alarm, 0, &t, NULL) < 0)
        return -errno;
    return watch(f->epoll, f->alarm, ALARM);
}

static int prepare(struct fanout *f) {
    uint32_t nodes = f->config.nodes;
    f->bytes = calloc(1, FANOUT_BYTES_MAX);
    f->fds = calloc(nodes, sizeof *f->fds);
    f->pids = calloc(nodes, sizeof *f->pids);
    f->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (f->bytes == NULL || f->fds == NULL || f->pids == NULL)
        return -ENOMEM;
    if (f->epoll < 0)
        return -errno;
    int r = set_alarm(f);
    for (uint32_t i = 0; i < nodes && r == 0; i++)
        r = start_one(f);
    return r == 0 && !pin(f->config.asker_cpu) ? -EINVAL : r;
}

/* Those who answer go when their socket ends. */
static void finish(struct fanout *f) {
    for (uint32_t i = 0; i < f->fd_count; i++)
        close(f->fds[i]);
    for (uint32_t i = 0; i < f->pid_count; i++)
        while (waitpid(f->pids[i], NULL, 0) < 0 && errno == EINTR)
            continue;
    if (f->epoll >= 0)
        close(f->epoll);
    if (f->alarm >= 0)
        close(f->alarm);
    free(f->bytes);
    free(f->fds);
    free(f->pids);
}

static int ask_and_hear(const struct fanout_config *config, struct fanout_result *ret) {
    struct fanout f = {.config = *config, .epoll = -1, .alarm = -1};
    int r = prepare(&f);
    if (r == 0)
        r = ask_rounds(&f, ret);
    finish(&f);
    return r;
}

struct report {
    int status;
    struct fanout_result result;
};

static _Noreturn void asker_main(const struct fanout_config *config, int to, pid_t parent) {
    struct report report = {.status = -ECANCELED};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        report.status = ask_and_hear(config, &report.result);
    ssize_t sent = write(to, &report, sizeof report);
    _exit(sent == (ssize_t)sizeof report ? 0 : 1);
}

/* In a process of its own: who has asked once before is slower by a tenth the next time, whatever
 * the kernel has kept of it. */
static int ask_elsewhere(const struct fanout_config *config, struct fanout_result *ret) {
    struct report report = {.status = -ECHILD};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        asker_main(config, ends[1], parent);
    int r = pid < 0 ? -errno : 0;
    close(ends[1]);
    if (pid > 0) {
        if (read(ends[0], &report, sizeof report) != (ssize_t)sizeof report)
            report.status = -ECHILD;
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        r = report.status;
    }
    close(ends[0]);
    if (r == 0)
        *ret = report.result;
    return r;
}

int fanout_run(const struct fanout_config *config, struct fanout_result *ret) {
    struct fanout_config c = *config;
    c.message_bytes = c.message_bytes ? c.message_bytes : MESSAGE_BYTES;
    c.answer_bytes = c.answer_bytes ? c.answer_bytes : ANSWER_BYTES;
    if (c.nodes < 1 || c.nodes > FANOUT_NODES_MAX || c.rounds < 1 || c.transport >= TRANSPORTS ||
        c.message_bytes > FANOUT_BYTES_MAX || c.answer_bytes > FANOUT_BYTES_MAX ||
        c.asker_cpu > CPU_SETSIZE || c.answerer_cpu > CPU_SETSIZE)
        return -EINVAL;
    return ask_elsewhere(&c, ret);
}

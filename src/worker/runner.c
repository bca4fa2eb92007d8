/* SPDX-License-Identifier: MIT */
/* One command line of a work step: see runner.h. */
#include "worker/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"

extern char **environ;

enum { WORDS_MAX = 64, PLAIN_MAX = 4096, PIECE = 65536, PIECES = 16 };
/* From the request to end to the end. */
#define GRACE_NS (5 * NS_PER_S)

static uint64_t time_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* ---- its beginning ---- */

struct running {
    pid_t pid;
    int end;       /* a descriptor that tells its end */
    int out, err;  /* -1: all has come */
    uint64_t stop; /* when it is to be asked to end, or, */
    bool asked;    /* if it was, to be ended; 0: never */
};

static int open_pipe(int *near, int *far) {
    int fd[2];
    if (pipe2(fd, O_CLOEXEC) < 0)
        return -errno;
    *near = fd[0];
    *far = fd[1];
    return fcntl(fd[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static void shut(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static int execute(pid_t *ret, char *const *argv, const int far[2]) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, far[0], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, far[1], STDERR_FILENO);
    int error = posix_spawnp(ret, argv[0], &files, &how, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return -error;
}

/* What is not found may be something that only a shell knows. */
static int start(const char *line, pid_t *ret, const int far[2]) {
    char copy[PLAIN_MAX], *words[WORDS_MAX + 1];
    size_t len = strlen(line);
    int r = -ENOENT;
    if (len < sizeof copy) {
        memcpy(copy, line, len + 1);
        if (chore_words(copy, words, WORDS_MAX) > 0)
            r = execute(ret, words, far);
    }
    char *const shell[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, (char *)line, NULL};
    return r == 0 ? 0 : execute(ret, shell, far);
}

static int begin(struct running *r, const char *line) {
    int far[2] = {-1, -1};
    *r = (struct running){.pid = -1, .end = -1, .out = -1, .err = -1};
    int status = open_pipe(&r->out, &far[0]);
    if (status == 0)
        status = open_pipe(&r->err, &far[1]);
    if (status == 0)
        status = start(line, &r->pid, far);
    shut(&far[0]);
    shut(&far[1]);
    if (status == 0)
        r->end = pidfd_open(r->pid, 0);
    return status;
}

/* ---- while it runs ---- */

static bool keep(struct runner_output *o, const uint8_t *piece, size_t len) {
    if (len == 0)
        return true;
    if (o->cap - o->len < len) {
        size_t cap = 2 * o->cap + len;
        uint8_t *at = realloc(o->at, cap);
        if (!at)
            return false;
        o->at = at;
        o->cap = cap;
    }
    memcpy(o->at + o->len, piece, len);
    o->len += len;
    return true;
}

/* What is there now; what there is no room for is counted. As much as a pipe can hold, and no more: who writes without end must not keep
 * us from the clock, or from the end of the line. */
static void take(struct runner *c, int *fd, struct runner_output *o, uint64_t *cut) {
    uint8_t piece[PIECE];
    for (int i = 0; i < PIECES && *fd >= 0; i++) {
        ssize_t n = read(*fd, piece, sizeof piece);
        if (n < 0)
            return;
        if (n == 0)
            shut(fd);
        size_t room = c->most - c->out.len - c->err.len;
        size_t kept = (size_t)n < room ? (size_t)n : room;
        if (!keep(o, piece, kept))
            kept = 0;
        *cut += (size_t)n - kept;
    }
}

static int wait_ms(const struct running *r) {
    uint64_t now = time_ns(CLOCK_MONOTONIC);
    if (r->stop == 0)
        return -1;
    return r->stop <= now ? 0 : (int)((r->stop - now + NS_PER_MS - 1) / NS_PER_MS % INT32_MAX);
}

static void look_at_clock(struct running *r) {
    if (r->stop == 0 || time_ns(CLOCK_MONOTONIC) < r->stop)
        return;
    kill(-r->pid, r->asked ? SIGKILL : SIGTERM);
    r->stop = time_ns(CLOCK_MONOTONIC) + GRACE_NS;
    r->asked = true;
}

/* Until its process has ended. False: it was to end at once. */
static bool attend(struct runner *c, struct running *r, uint64_t *cut) {
    for (;;) {
        struct pollfd p[] = {{.fd = r->out, .events = POLLIN},
                             {.fd = r->err, .events = POLLIN},
                             {.fd = r->end, .events = POLLIN},
                             {.fd = c->watched, .events = POLLIN}};
        if (poll(p, sizeof p / sizeof *p, wait_ms(r)) < 0 && errno != EINTR)
            return false;
        if (p[0].revents)
            take(c, &r->out, &c->out, cut);
        if (p[1].revents)
            take(c, &r->err, &c->err, cut);
        if (p[2].revents)
            return true;
        if (p[3].revents && !c->look(c->context))
            return false;
        look_at_clock(r);
    }
}

/* ---- its end ---- */

static void finish(struct runner *c, struct running *r, bool wanted, struct chore_result *ret) {
    take(c, &r->out, &c->out, &ret->cut);
    take(c, &r->err, &c->err, &ret->cut);
    /* Who still holds its output is of its group, and is not waited for. */
    if (!wanted || r->out >= 0 || r->err >= 0)
        kill(-r->pid, SIGKILL);
    siginfo_t info = {0};
    while (waitid(P_PID, (id_t)r->pid, &info, WEXITED) < 0 && errno == EINTR)
        continue;
    ret->end = (uint8_t)(r->asked                     ? CHORE_LATE
                         : info.si_code == CLD_EXITED ? CHORE_EXITED
                                                      : CHORE_SIGNALLED);
    ret->value = (uint32_t)info.si_status;
}

int runner_run(struct runner *c, const char *line, struct chore_result *ret) {
    struct running r;
    uint64_t began = time_ns(CLOCK_MONOTONIC);
    *ret = (struct chore_result){.began_ns = time_ns(CLOCK_REALTIME)};
    c->out.len = c->err.len = 0;
    int status = begin(&r, line);
    if (status == 0) {
        r.stop = c->limit_ns ? began + c->limit_ns : 0;
        bool wanted = r.end >= 0 && attend(c, &r, &ret->cut);
        finish(c, &r, wanted, ret);
        ret->ns = time_ns(CLOCK_MONOTONIC) - began;
        ret->out = bytes_of(c->out.at, c->out.len);
        ret->err = bytes_of(c->err.at, c->err.len);
        status = wanted ? 0 : -ECANCELED;
    }
    shut(&r.end);
    shut(&r.out);
    shut(&r.err);
    return status;
}

void runner_fini(struct runner *c) {
    free(c->out.at);
    free(c->err.at);
}

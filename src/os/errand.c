/* SPDX-License-Identifier: MIT */
/* Running a command: see errand.h. */
#include "os/errand.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Everything that it prints is read, also what there is no room for: it must not get stuck. */
static void keep_output(struct errand *e, int fd) {
    char spill[4096];
    e->output_len = 0;
    for (;;) {
        size_t room = e->output_cap - 1 - e->output_len;
        ssize_t n =
            room > 0 ? read(fd, e->output + e->output_len, room) : read(fd, spill, sizeof spill);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        if (room > 0)
            e->output_len += (size_t)n;
    }
    e->output[e->output_len] = '\0';
}

static int start(const struct errand *e, int out, pid_t *ret_pid) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int r = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    if (r == 0 && out >= 0)
        r = posix_spawn_file_actions_adddup2(&files, out, 1);
    else if (r == 0)
        r = posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    if (r == 0 && e->silent)
        r = posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    if (r == 0)
        r = posix_spawnp(ret_pid, e->argv[0], &files, &attributes, (char *const *)e->argv,
                         e->environment ? (char *const *)e->environment : environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return -r;
}

static int await(pid_t pid, int *ret_status) {
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    *ret_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return 0;
}

int errand_run(struct errand *e) {
    int ends[2] = {-1, -1};
    pid_t pid;
    if (e->output != NULL && pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    uint64_t begin = now_ns();
    int r = start(e, ends[1], &pid);
    if (ends[1] >= 0)
        close(ends[1]);
    if (r == 0 && e->output != NULL)
        keep_output(e, ends[0]);
    if (ends[0] >= 0)
        close(ends[0]);
    if (r == 0)
        r = await(pid, &e->status);
    e->ns = now_ns() - begin;
    return r;
}

const char **errand_environment(const char *prefix, const char *setting) {
    size_t count = 0, kept = 0;
    while (environ[count] != NULL)
        count++;
    const char **list = calloc(count + 2, sizeof *list);
    if (list == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], prefix, strlen(prefix)) != 0)
            list[kept++] = environ[i];
    list[kept] = setting;
    return list;
}

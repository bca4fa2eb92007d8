/* SPDX-License-Identifier: MIT */
/* Whether the state of a cluster can be read: see state.h.
 *
 * A manager that cannot read its state would be started again and again, and the command that brings it up would wait in vain. */
#include "cli/state.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "client/cluster.h"

static int start(char *const argv[], int out, pid_t *ret_pid) {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    int r = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    if (r == 0)
        r = posix_spawn(ret_pid, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    return -r;
}

/* What it prints, its last line cut off; its status, or -errno. */
static int ask(char *const argv[], char *words, size_t cap) {
    int ends[2], status = 0;
    size_t len = 0;
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    int r = start(argv, ends[1], &pid);
    close(ends[1]);
    for (ssize_t n = 1; r == 0 && n > 0 && len<cap - 1; len += n> 0 ? (size_t)n : 0)
        n = read(ends[0], words + len, cap - 1 - len);
    close(ends[0]);
    words[len] = '\0';
    words[strcspn(words, "\n")] = '\0';
    if (r < 0)
        return r;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

int state_check(const char *name, const char *folder, const char *manager_program) {
    char program[CLUSTER_PATH_MAX], path[CLUSTER_PATH_MAX + 16], words[512];
    char option[] = "--check";
    snprintf(path, sizeof path, "%s/state.db", folder);
    if (access(path, F_OK) < 0)
        return 0; /* it has no past */
    snprintf(program, sizeof program, "%s", manager_program);
    snprintf(path, sizeof path, "%s", folder);
    int status = ask((char *const[]){program, option, path, NULL}, words, sizeof words);
    if (status == 0)
        return 0;
    complain(name, "%s",
             status < 0         ? strerror(-status)
             : words[0] != '\0' ? words
                                : "its state cannot be read");
    return STATUS_STORM;
}

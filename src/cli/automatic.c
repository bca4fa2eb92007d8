/* SPDX-License-Identifier: MIT */
/* --auto: see automatic.h. */
#include "cli/automatic.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/complain.h"
#include "client/cluster.h"

enum { NODES_LEAST = 4 };

/* Who watches over it is there: it runs, or is about to. */
static bool is_there(const char *name) {
    char folder[CLUSTER_PATH_MAX];
    struct cluster c;
    struct cluster_trouble trouble;
    if (cluster_folder(name, folder, sizeof folder) < 0 || cluster_load(&c, folder, &trouble) < 0)
        return false;
    cluster_free(&c);
    return c.watcher <= 0 || kill(c.watcher, 0) == 0 || errno == EPERM;
}

/* What it says is not the program's output. */
static void become_up(const char *name) {
    char nodes[24];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    snprintf(nodes, sizeof nodes, "%ld", processors > NODES_LEAST ? processors : NODES_LEAST);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execl("/proc/self/exe", "storm", "up", "--cluster", name, "--local", nodes, (char *)NULL);
    _exit(STATUS_STORM);
}

int automatic_up(const char *cluster) {
    int status = 0;
    const char *name = cluster_pick(cluster);
    if (is_there(name))
        return 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        become_up(name);
    if (child < 0 || waitpid(child, &status, 0) != child) {
        complain("--auto", "%s", strerror(errno));
        return STATUS_STORM;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : STATUS_STORM;
}
